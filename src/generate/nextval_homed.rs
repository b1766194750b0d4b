//! The SQL functions that generate homed IDs: IDs whose hash leads to the shard that generates them.

use super::batch::{HomedBatch, OwnedHomed};
use crate::authority::Asked;
use crate::denied::Denied;
use crate::error::Error;
use crate::layout_type::{SqlLayout, unpacked};
use crate::postgres::arguments::{arguments, function_info_v1, oid};
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::call::guarded;
use crate::postgres::memory;
use crate::postgres::report::Raise;
use crate::sequence;
use pg_snowflake_ids::layout::Layout;
use pg_snowflake_policies::homed::{Class, HashRange, Home, Homed, hash_ranges};
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin};
use pgrx::prelude::*;
use std::ffi::c_int;

const NEXTVAL: &str = "snowflake_nextval_homed";
const NEXTVALS: &str = "snowflake_nextvals_homed";
const NEXTVAL_IN_RANGES: &str = "snowflake_nextval_homed_in_ranges";
const NEXTVALS_IN_RANGES: &str = "snowflake_nextvals_homed_in_ranges";

/// The arguments of a call that say which IDs are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
struct InPartition {
    shard_id: i32,
    modulus: i32,
    generators: i32,
    layout: u64,
}

impl InPartition {
    fn check(self) -> Result<(Layout, Homed<'static>), Error> {
        let InPartition { shard_id, modulus, generators, layout } = self;
        let layout = unpacked(layout);
        let homed = Homed::in_partition(&layout, shard_id, modulus, generators).map_err(|invalid| Denied::NotHomed { invalid, layout })?;
        Ok((layout, homed))
    }
}

/// `snowflake_nextval_homed(seq regclass, shard_id int, modulus int, generators int, layout snowflake_layout) → bigint`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_nextval_homed_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: five arguments, none of them NULL: the function is STRICT.
    let [seq, shard_id, modulus, generators, layout] = unsafe { arguments(fcinfo) };
    let [shard_id, modulus, generators] = [shard_id, modulus, generators].map(|int| int.value.value() as i32);
    let wanted = InPartition { shard_id, modulus, generators, layout: layout.value.value() as u64 };
    match next_homed_id_fast(oid(seq), wanted) {
        Some(id) => id.into(),
        None => next_homed_id_guarded(oid(seq), wanted).into(),
    }
}

/// The fast path. The arguments are usually those of the previous call, and comparing them costs less than checking them.
fn next_homed_id_fast(seq: pg_sys::Oid, wanted: InPartition) -> Option<i64> {
    static LAST: BackendLocal<Option<(InPartition, Homed<'static>)>> = BackendLocal::new(None);
    // SAFETY: generating an ID does not generate another.
    let last = unsafe { LAST.get() };
    let homed = match last {
        Some((last, homed)) if *last == wanted => homed,
        _ => {
            let InPartition { shard_id, modulus, generators, layout } = wanted;
            let homed = Homed::in_partition(&Layout::unpack(layout)?, shard_id, modulus, generators).ok()?;
            &mut last.insert((wanted, homed)).1
        }
    };
    // SAFETY: called by an SQL function, and no frame up to the server's holds anything with a destructor.
    unsafe { sequence::next_homed_fast(seq, wanted.layout, homed, Asked::Class(homed.class)) }
}

/// The slow path, which raises the errors.
#[cold]
fn next_homed_id_guarded(seq: pg_sys::Oid, wanted: InPartition) -> i64 {
    let call = || {
        let id = wanted.check().and_then(|(layout, homed)| sequence::next_homed(seq, layout, &homed, Asked::Class(homed.class)));
        id.unwrap_or_else(|error| error.raise(NEXTVAL, seq))
    };
    // SAFETY: called directly from the server, at the bottom of Rust's frames.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(call) }
}

function_info_v1!(pg_finfo_snowflake_nextval_homed_wrapper);

/// `snowflake_nextvals_homed(seq regclass, shard_id int, modulus int, count int, generators int, layout) → setof bigint`
#[pg_extern(sql = false)]
fn snowflake_nextvals_homed(
    seq: pg_sys::Oid,
    shard_id: i32,
    modulus: i32,
    count: i32,
    generators: i32,
    layout: SqlLayout,
) -> SetOfIterator<'static, i64> {
    let wanted = InPartition { shard_id, modulus, generators, layout: layout.0.pack() };
    let (layout, homed) = wanted.check().unwrap_or_else(|error| error.raise(NEXTVALS, seq));
    batch(NEXTVALS, seq, layout, OwnedHomed::InPartition(homed), count)
}

/// `snowflake_nextval_homed_in_ranges(seq regclass, shard_id int, ranges int8multirange, layout) → bigint`
#[pg_extern(sql = false)]
fn snowflake_nextval_homed_in_ranges(seq: pg_sys::Oid, shard_id: i32, ranges: Multirange, layout: SqlLayout) -> i64 {
    let SqlLayout(layout) = layout;
    let id = checked_shard(shard_id, layout).and_then(|class| {
        with_ranges(ranges, layout, |ranges| {
            let homed = Homed::new(class, Home::Ranges(ranges));
            let asked = Asked::Class(class);
            // SAFETY: called in a transaction. The guard of this function is around the frames, and `ranges` is borrowed from a
            // variable of the backend.
            let fast = unsafe { guarded(|| sequence::next_homed_fast(seq, layout.pack(), &homed, asked)) };
            match fast {
                Some(id) => Ok(id),
                None => sequence::next_homed(seq, layout, &homed, asked),
            }
        })
    });
    id.unwrap_or_else(|error| error.raise(NEXTVAL_IN_RANGES, seq))
}

/// `snowflake_nextvals_homed_in_ranges(seq regclass, shard_id int, ranges int8multirange, count int, layout) → setof bigint`
#[pg_extern(sql = false)]
fn snowflake_nextvals_homed_in_ranges(
    seq: pg_sys::Oid,
    shard_id: i32,
    ranges: Multirange,
    count: i32,
    layout: SqlLayout,
) -> SetOfIterator<'static, i64> {
    let SqlLayout(layout) = layout;
    let (class, ranges) = checked_shard(shard_id, layout)
        .and_then(|class| Ok((class, with_ranges(ranges, layout, |ranges| Ok(memory::copied(ranges)))?)))
        .unwrap_or_else(|error| error.raise(NEXTVALS_IN_RANGES, seq));
    batch(NEXTVALS_IN_RANGES, seq, layout, OwnedHomed::InRanges(class, ranges), count)
}

/// `name` is the SQL function called.
fn batch(name: &'static str, seq: pg_sys::Oid, layout: Layout, homed: OwnedHomed, count: i32) -> SetOfIterator<'static, i64> {
    if count < 0 {
        messages::negative_count(count).raise();
    }
    Asked::Class(homed.get().class).class(layout).unwrap_or_else(|denied| Error::from(denied).raise(name, seq));
    SetOfIterator::new(HomedBatch::new(name, seq, layout, homed, count.into()))
}

/// With ranges, IDs have one shard number.
fn checked_shard(shard: i32, layout: Layout) -> Result<Class, Error> {
    let checked = layout.checked_shard(shard).ok_or(Denied::ShardOutOfRange { shard, layout });
    Ok(Class::one(checked?))
}

/// An `int8multirange`.
struct Multirange(pg_sys::Datum);

// SAFETY: the SQL declarations use `int8multirange` for it.
unsafe impl<'fcx> ArgAbi<'fcx> for Multirange {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the datum of a multirange is a pointer, as wide as an i64; the function is strict.
        let datum: i64 = unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict function");
        Multirange(datum.into())
    }
}

// SAFETY: the SQL declarations are written by hand; this only names the type to pgrx.
unsafe impl SqlTranslatable for Multirange {
    const TYPE_IDENT: &'static str = "pg_snowflake::generate::homed::Multirange";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("int8multirange"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

/// How many multiranges a session keeps, and of how many bytes: some defaults are called in turn.
const MAX_KEPT: usize = 8;
const MAX_KEPT_BYTES: usize = 1 << 16;

/// A multirange, and its ranges of hashes.
struct Parsed {
    bytes: Vec<u8>,
    ranges: Vec<HashRange>,
}

/// Calls `f` with the ranges of hashes. A default has the same ones for each row, so they are kept.
fn with_ranges<T>(Multirange(datum): Multirange, layout: Layout, f: impl FnOnce(&[HashRange]) -> Result<T, Error>) -> Result<T, Error> {
    static KEPT: BackendLocal<Vec<Parsed>> = BackendLocal::new(Vec::new());
    // SAFETY: a varlena of the server, in memory once it is detoasted. Generating an ID does not generate another.
    unsafe {
        check_count(datum);
        let packed = call!(pg_detoast_datum_packed(datum.cast_mut_ptr()));
        let bytes = content(packed);
        let kept = KEPT.get();
        if let Some(parsed) = kept.iter().find(|parsed| parsed.bytes == bytes) {
            return f(&parsed.ranges);
        }
        let multirange = call!(pg_detoast_datum(packed)).cast::<MultirangeType>();
        let mut ranges = Vec::new();
        memory::reserve(&mut ranges, (*multirange).rangeCount as usize);
        let ranges = hash_ranges(ranges, bounds(multirange)).map_err(|invalid| Denied::NotHomed { invalid, layout })?;
        if bytes.len() > MAX_KEPT_BYTES {
            return f(&ranges);
        }
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        let bytes = memory::copied(bytes);
        f(&kept.push_mut(Parsed { bytes, ranges }).ranges)
    }
}

/// How many ranges a multirange may have: more than a distributed table can have shards: 64,000.
const MAX_RANGES: usize = 65_536;

/// Refuses a multirange with too many ranges by its size and its head, before it is read from disk or decompressed.
///
/// # Safety
/// The datum is an `int8multirange`.
unsafe fn check_count(datum: pg_sys::Datum) {
    // SAFETY: as the caller promises. The first bytes of a multirange are its head, also of a compressed one.
    let count = unsafe {
        // Each range has two bounds of 8 bytes, of which only the first and the last can be infinite, and is then not stored.
        if call!(toast_raw_datum_size(datum)) < 16 * MAX_RANGES {
            return;
        }
        let head = size_of::<MultirangeType>() as i32;
        let head = call!(pg_detoast_datum_slice(datum.cast_mut_ptr(), 0, head));
        (*head.cast::<MultirangeType>()).rangeCount as usize
    };
    if count > MAX_RANGES {
        messages::too_many_ranges(count, MAX_RANGES).raise();
    }
}

/// The bytes after the length.
///
/// # Safety
/// A varlena that is not compressed, for as long as the result is used.
unsafe fn content<'a>(varlena: *const pg_sys::varlena) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe {
        let size = pgrx::varlena::varsize_any_exhdr(varlena);
        std::slice::from_raw_parts(pgrx::varlena::vardata_any(varlena).cast::<u8>(), size)
    }
}

/// `MultirangeType` (utils/multirangetypes.h), the beginning of a multirange that is not packed.
#[repr(C)]
#[allow(nonstandard_style, reason = "the names are C's")]
struct MultirangeType {
    vl_len_: c_int,
    multirangetypid: pg_sys::Oid,
    rangeCount: u32,
}

unsafe extern "C-unwind" {
    fn multirange_get_bounds(
        rangetyp: *mut pg_sys::TypeCacheEntry,
        multirange: *const MultirangeType,
        i: u32,
        lower: *mut pg_sys::RangeBound,
        upper: *mut pg_sys::RangeBound,
    );
}

/// The first and the last number of each range; `i64::MIN` and `i64::MAX` are infinite.
///
/// # Safety
/// An `int8multirange` that is not packed, for as long as the result is used.
unsafe fn bounds(multirange: *const MultirangeType) -> impl Iterator<Item = (i64, i64)> {
    // SAFETY: as the caller promises; a range type of core.
    let (int8range, count) = unsafe {
        let flags = pg_sys::TYPECACHE_RANGE_INFO as c_int;
        (call!(lookup_type_cache(pg_sys::INT8RANGEOID, flags)), (*multirange).rangeCount)
    };
    (0..count).map(move |i| {
        let (mut lower, mut upper) = Default::default();
        // SAFETY: as above; it only reads, so it raises no error.
        unsafe { multirange_get_bounds(int8range, multirange, i, &mut lower, &mut upper) };
        let number = |bound: pg_sys::RangeBound| bound.val.value() as i64;
        let first = match lower.infinite {
            true => i64::MIN,
            false => number(lower).saturating_add(i64::from(!lower.inclusive)),
        };
        let last = match upper.infinite {
            true => i64::MAX,
            false => number(upper).saturating_sub(i64::from(!upper.inclusive)),
        };
        (first, last)
    })
}
