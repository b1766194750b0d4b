//! Queries and statements of our own, by SPI. The SQL declarations of the functions that use them set `search_path`, or the SQL names
//! the schema of each operator, function and type, so that each is core's or ours.

use crate::postgres::backend_local::BackendLocal;
use crate::postgres::encoding::{Text, to_server};
use crate::postgres::memory;
use crate::postgres::timestamp::Instant;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::PgOid;
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiError, SpiHeapTupleData, SpiTupleTable};

/// A row of a query's result.
pub struct Row<'a>(SpiHeapTupleData<'a>);

impl Row<'_> {
    /// A column, by its number from 1 on; `None` if it is null.
    pub fn nullable<T: Field>(&self, column: usize) -> Option<T> {
        T::of(self, column)
    }

    /// A column that is never null.
    pub fn get<T: Field>(&self, column: usize) -> T {
        self.nullable(column).unwrap_or_else(|| panic!("column {column} is null"))
    }
}

/// A type that a row can hold.
pub trait Field: Sized {
    /// The column's value; `None` if it is null.
    fn of(row: &Row, column: usize) -> Option<Self>;
}

macro_rules! fields {
    ($($field:ty as $datum:ty: $from:expr),*) => {
        $(impl Field for $field {
            fn of(row: &Row, column: usize) -> Option<Self> {
                let datum = row.0.get::<$datum>(column);
                datum.unwrap_or_else(|error| panic!("column {column}: {error}")).map($from)
            }
        })*
    };
}
fields!(
    bool as bool: From::from,
    i16 as i16: From::from,
    i32 as i32: From::from,
    i64 as i64: From::from,
    pg_sys::Oid as pg_sys::Oid: From::from,
    pgrx::Uuid as pgrx::Uuid: From::from,
    Instant as Instant: From::from,
    Multirange as Multirange: From::from,
    String as Text: |text| text.0
);

/// The bytes of an `int8multirange`, with their length.
pub struct Multirange(pub Vec<u8>);

impl FromDatum for Multirange {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the caller's datum is a varlena.
        (!is_null).then(|| unsafe {
            let varlena = call!(pg_detoast_datum(datum.cast_mut_ptr()));
            let size = pgrx::varlena::varsize_any(varlena);
            Multirange(memory::copied(std::slice::from_raw_parts(varlena.cast::<u8>(), size)))
        })
    }
}

impl IntoDatum for Multirange {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        None
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::INT8MULTIRANGEOID
    }
}

/// A name or another text as an argument.
pub fn text(text: &str) -> DatumWithOid<'static> {
    Text(text.to_owned()).into()
}

/// The rows of a query, which sees what the calling statement sees. Also for a parallel worker, which may start no command.
pub fn rows_of_snapshot<T>(sql: &str, arguments: &[DatumWithOid], read: impl Fn(&Row) -> T) -> Vec<T> {
    collected(|each| select(sql, arguments, each), read)
}

/// The rows of a query that writes nothing, which sees the database as of now. It assigns no transaction ID, so a standby can run it; a
/// parallel worker cannot.
pub fn rows_of_latest_snapshot<T>(sql: &str, arguments: &[DatumWithOid], read: impl Fn(&Row) -> T) -> Vec<T> {
    // SAFETY: the snapshot is popped below, and by the end of the transaction or savepoint after an ERROR.
    unsafe { call!(PushActiveSnapshot(call!(GetLatestSnapshot()))) };
    let rows = rows_of_snapshot(sql, arguments, read);
    // SAFETY: as above.
    unsafe { call!(PopActiveSnapshot()) };
    rows
}

/// The rows of a query, which sees the database as of now.
pub fn rows<T>(sql: &str, arguments: &[DatumWithOid], read: impl Fn(&Row) -> T) -> Vec<T> {
    collected(|each| update(sql, arguments, each), read)
}

/// What is done with each row.
type Each<'a> = &'a mut dyn FnMut(&Row);

/// What `read` makes of the rows that `run` finds. A catalog can have any number of them.
fn collected<T>(run: impl FnOnce(Each), read: impl Fn(&Row) -> T) -> Vec<T> {
    let mut rows = Vec::new();
    run(&mut |row| {
        memory::check();
        memory::reserve(&mut rows, 1);
        rows.push(read(row));
    });
    rows
}

fn select(sql: &str, arguments: &[DatumWithOid], each: Each) {
    Spi::connect(|client| visit(client.select(&to_server(sql), None, arguments), sql, each));
}

fn update(sql: &str, arguments: &[DatumWithOid], each: Each) {
    // Use SPI's update() also for a query: its select() would use the caller's snapshot, which is older than the locks.
    Spi::connect_mut(|client| visit(client.update(&to_server(sql), None, arguments), sql, each));
}

fn update_kept(statement: &OwnedPreparedStatement, sql: &str, arguments: &[DatumWithOid], each: Each) {
    Spi::connect_mut(|client| visit(client.update(statement, None, arguments), sql, each));
}

fn visit(found: Result<SpiTupleTable, SpiError>, sql: &str, each: Each) {
    found.unwrap_or_else(|error| panic!("{sql}: {error}")).for_each(|row| each(&Row(row)));
}

/// Executes a statement.
pub fn execute(sql: &str, arguments: &[DatumWithOid]) {
    rows(sql, arguments, |_| ());
}

/// The statements that this session has planned and keeps, by their SQL. Their memory is released when the session ends.
static KEPT: BackendLocal<Vec<(String, &'static OwnedPreparedStatement)>> = BackendLocal::new(Vec::new());

/// As [`rows()`], for one of a few statements that a session executes again and again: it is parsed and planned only the first time.
/// The server plans it again after a change of a table, also after one that has replaced the extension's. The same SQL must always
/// have arguments of the same types.
pub fn rows_kept<T>(sql: &str, arguments: &[DatumWithOid], read: impl Fn(&Row) -> T) -> Vec<T> {
    let statement = kept(sql).unwrap_or_else(|| keep(sql, arguments));
    collected(|each| update_kept(statement, sql, arguments, each), read)
}

/// As [`execute()`], for such a statement.
pub fn execute_kept(sql: &str, arguments: &[DatumWithOid]) {
    rows_kept(sql, arguments, |_| ());
}

fn kept(sql: &str) -> Option<&'static OwnedPreparedStatement> {
    // SAFETY: comparing texts runs no SQL.
    unsafe { KEPT.get() }.iter().find(|(key, _)| key == sql).map(|&(_, found)| found)
}

/// Prepares a statement and keeps it. After an ERROR nothing is kept, and the next call prepares it.
fn keep(sql: &str, arguments: &[DatumWithOid]) -> &'static OwnedPreparedStatement {
    Spi::connect_mut(|client| {
        let types: Vec<PgOid> = arguments.iter().map(|argument| argument.oid().into()).collect();
        let prepared = client.prepare_mut(&to_server(sql), &types).unwrap_or_else(|error| panic!("{sql}: {error}"));
        memory::check();
        let key = memory::copied_text(sql);
        // SAFETY: what follows runs no SQL.
        let kept = unsafe { KEPT.get() };
        memory::reserve(kept, 1);
        // From here on, nothing fails.
        let statement: &'static OwnedPreparedStatement = Box::leak(Box::new(prepared.keep()));
        kept.push((key, statement));
        statement
    })
}
