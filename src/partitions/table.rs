//! A table that is partitioned by a range of its IDs, and its partitions, from the catalog.

use crate::monitor::{GeneratorCall, StoredExpression};
use crate::newest_id::Newest;
use crate::postgres::encoding::{from_server, to_server};
use crate::postgres::query::{execute, rows, text};
use crate::postgres::user_table::{UserTable, query_for_rows};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::partitions::{Bound, Bounds};
use pgrx::prelude::*;
use pgrx::spi::quote_identifier;
use std::ffi::CStr;
use std::ptr;

/// How a table is partitioned.
pub enum Key {
    /// Not at all.
    None,
    /// By a range of one column that holds IDs, in the order of numbers.
    OfIds,
    /// By any other range.
    OtherRange,
    /// By hash or list.
    Descend,
}

/// A table.
pub struct Table {
    /// Its OID.
    pub relid: pg_sys::Oid,
    /// The quoted name with its schema.
    pub name: String,
    /// The name.
    relname: String,
    /// Its schema.
    pub namespace: pg_sys::Oid,
    /// Its schema, quoted.
    pub schema: String,
    /// Its owner.
    pub owner: pg_sys::Oid,
    /// Whether the caller may act as its owner.
    pub is_owned: bool,
    persistence: String,
    replica_identity: String,
    /// Quoted, if new partitions get another one than the default.
    tablespace: Option<String>,
    /// Quoted, if new partitions get another one than the default.
    access_method: Option<String>,
    /// How it is partitioned.
    pub key: Key,
    /// The column of the key; `None` if it is an expression.
    key_column: Option<String>,
}

impl Table {
    /// `None` if there is no such relation.
    pub fn read(relid: pg_sys::Oid) -> Option<Self> {
        let sql = "SELECT format('%s.%I', c.relnamespace::regnamespace, c.relname), c.relname::text, c.relnamespace,
                c.relnamespace::regnamespace::text, c.relowner, pg_has_role(c.relowner, 'USAGE'), c.relpersistence::text,
                c.relreplident::text, quote_ident(s.spcname), quote_ident(m.amname), p.partstrat::text,
                p.partnatts = 1 AND f.opfname = 'integer_ops' AND f.opfnamespace = 'pg_catalog'::regnamespace, a.atttypid,
                a.attname::text
            FROM pg_class AS c
            LEFT JOIN pg_tablespace AS s ON s.oid = c.reltablespace
            LEFT JOIN pg_am AS m ON m.oid = c.relam
            LEFT JOIN pg_partitioned_table AS p ON p.partrelid = c.oid
            LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0] AND a.attnum > 0
            LEFT JOIN pg_opclass AS o ON o.oid = p.partclass[0]
            LEFT JOIN pg_opfamily AS f ON f.oid = o.opcfamily
            WHERE c.oid = $1";
        rows(sql, &[relid.into()], |row| {
            // SAFETY: the type is one of the catalog.
            let is_bigint = |typid| unsafe { call!(IsBinaryCoercible(typid, pg_sys::INT8OID)) };
            let key = match row.nullable::<String>(11).as_deref() {
                None => Key::None,
                Some("r") if row.nullable(12) == Some(true) && row.nullable(13).is_some_and(is_bigint) => Key::OfIds,
                Some("r") => Key::OtherRange,
                Some(_) => Key::Descend,
            };
            Table {
                relid,
                name: row.get(1),
                relname: row.get(2),
                namespace: row.get(3),
                schema: row.get(4),
                owner: row.get(5),
                is_owned: row.get(6),
                persistence: row.get(7),
                replica_identity: row.get(8),
                tablespace: row.nullable(9),
                access_method: row.nullable(10),
                key,
                key_column: row.nullable(14),
            }
        })
        .pop()
    }

    /// Its partition key as SQL. Core waits for the table's lock to print it.
    pub fn key(&self) -> String {
        rows("SELECT pg_get_partkeydef($1)", &[self.relid.into()], |row| row.nullable(1)).pop().flatten().unwrap_or_default()
    }

    /// The layouts of which the default of the key's column generates IDs. `None` stands for a layout that is not a constant.
    pub fn generated_layouts(&self, top: pg_sys::Oid) -> Vec<Option<Layout>> {
        GeneratorCall::layouts(self.generator_calls(top))
    }

    /// The calls of generators in the default of the key's column: that of this table or of `top`, a table above it, or if
    /// neither generates any, those of the partitions. `None` stands for a default that cannot be read.
    pub fn generator_calls(&self, top: pg_sys::Oid) -> Vec<Option<GeneratorCall>> {
        let generated = |relations: &str| {
            let sql = format!(
                "SELECT DISTINCT coalesce(d.adbin, t.typdefaultbin)::text
                FROM pg_partitioned_table AS p
                JOIN pg_attribute AS k ON k.attrelid = p.partrelid AND k.attnum = p.partattrs[0]
                JOIN pg_attribute AS a ON a.attname = k.attname AND a.attrelid IN ({relations})
                JOIN pg_type AS t ON t.oid = a.atttypid
                LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                WHERE p.partrelid = $1 AND coalesce(d.adbin, t.typdefaultbin) IS NOT NULL"
            );
            let defaults = rows(&sql, &[self.relid.into(), top.into()], |row| row.get(1));
            StoredExpression::calls_in_texts(defaults)
        };
        let of_tables = generated("$1, $2");
        if !of_tables.is_empty() {
            return of_tables;
        }
        generated("SELECT inhrelid FROM pg_inherits WHERE inhparent = $1 AND $2 IS NOT NULL")
    }

    /// The newest IDs that are not above `at_most`, with those of the default partition; `None` if they are not known: a partition that
    /// cannot be read may have them. Waits for no lock, and leaves none behind.
    pub fn newest_ids(&self, count: usize, at_most: i64) -> Option<Vec<i64>> {
        let column = to_server(self.key_column.as_ref()?);
        let newest = Newest { column: &column, count, at_most };
        let partitions = self.partitions();
        let default = partitions.iter().find(|partition| partition.is_default);
        let mut ids = default.map_or(Some(Vec::new()), |default| newest.of_partition(default.relid))?;
        let mut in_ranges = 0;
        for partition in by_bounds(partitions).iter().rev() {
            pgrx::check_for_interrupts!();
            let of_partition = match newest.of_partition(partition.relid) {
                // It has older IDs only.
                None if in_ranges > 0 => break,
                of_partition => of_partition?,
            };
            in_ranges += of_partition.len();
            ids.extend(of_partition);
            if in_ranges >= count {
                break;
            }
        }
        Some(newest.of(ids))
    }

    /// The tables with a foreign key that references this one.
    pub fn referencing(&self) -> Vec<pg_sys::Oid> {
        self.foreign_keys("conrelid", "confrelid")
    }

    /// The tables that a foreign key of this one references.
    pub fn referenced(&self) -> Vec<pg_sys::Oid> {
        self.foreign_keys("confrelid", "conrelid")
    }

    fn foreign_keys(&self, wanted: &str, own: &str) -> Vec<pg_sys::Oid> {
        let sql = format!("SELECT DISTINCT {wanted} FROM pg_constraint WHERE contype = 'f' AND {own} = $1 ORDER BY 1");
        rows(&sql, &[self.relid.into()], |row| row.get(1))
    }

    /// Those of its partitions that have bounds, in their order, as of now.
    pub fn partitions_by_bounds(&self) -> Vec<Partition> {
        by_bounds(self.partitions())
    }

    /// The query for the row with an ID.
    pub fn row_of(&self, id: i64) -> String {
        let key = self.key_column.as_ref().map(quote_identifier).unwrap_or_default();
        query_for_rows(&self.name, &key, id)
    }

    /// The newest ID before another, whatever its partition; `None` if there is none. Default partitions are not read, nor those
    /// that are or contain foreign tables.
    pub fn newest_id_before(&self, id: i64) -> Option<i64> {
        let key = quote_identifier(self.key_column.as_ref()?);
        let mut partitions = self.partitions_by_bounds();
        partitions
            .retain(|partition| partition.foreign_table.is_none() && partition.bounds.is_some_and(|bounds| bounds.from < Bound::At(id)));
        partitions.iter().rev().find_map(|partition| {
            pgrx::check_for_interrupts!();
            // Only of this partition, even if a schema has been renamed.
            let before = format!("WHERE {key}::bigint < $1 AND (tableoid = $2 OR tableoid IN (SELECT relid FROM pg_partition_tree($2)))");
            let arguments = [id.into(), partition.relid.into()];
            let partition = UserTable::open_as(self.owner, partition.relid);
            let newest = format!("max({key}::bigint)");
            partition.select(&newest, &before, &arguments, |row| row.nullable(1)).pop().flatten()
        })
    }

    /// Its partitions, as of now.
    pub fn partitions(&self) -> Vec<Partition> {
        // With the OID of the partition, pg_get_expr() would wait for its lock. A bound refers to no column. pg_partition_tree() would
        // leave out what is being detached.
        let sql = "WITH RECURSIVE tree AS (
                SELECT inhrelid AS partition, inhrelid, inhparent, inhdetachpending FROM pg_inherits WHERE inhparent = $1
                UNION ALL
                SELECT t.partition, i.inhrelid, i.inhparent, i.inhdetachpending
                FROM tree AS t JOIN pg_inherits AS i ON i.inhparent = t.inhrelid
            ), named AS (
                SELECT t.*, relkind, format('%s.%I', relnamespace::regnamespace, relname) AS name,
                    format('ALTER TABLE %s DETACH PARTITION %s.%I FINALIZE;', inhparent::regclass, relnamespace::regnamespace, relname)
                        AS finalize
                FROM tree AS t
                JOIN pg_class ON oid = inhrelid
            ), whole AS (
                SELECT partition, min(name) FILTER (WHERE relkind = 'f') AS foreign_table,
                    min(finalize) FILTER (WHERE inhdetachpending) AS finalize
                FROM named GROUP BY partition
            )
            SELECT c.oid, p.name, w.foreign_table, pg_get_expr(c.relpartbound, 0), p.inhdetachpending, c.relname::text, w.finalize
            FROM named AS p
            JOIN whole AS w USING (partition)
            JOIN pg_class AS c ON c.oid = p.partition
            WHERE p.inhrelid = p.partition
            ORDER BY c.oid";
        rows(sql, &[self.relid.into()], |row| {
            let bounds = row.nullable::<String>(4).unwrap_or_default();
            Partition {
                parent: self.relid,
                relid: row.get(1),
                name: row.get(2),
                foreign_table: row.nullable(3),
                is_default: bounds == "DEFAULT",
                bounds: Bounds::parse(&bounds),
                is_detach_pending: row.get(5),
                relname: row.get(6),
                finalize: row.nullable(7),
            }
        })
    }

    /// The name of a partition, truncated to the length of a name in the server's encoding.
    pub fn partition_name(&self, suffix: &str) -> String {
        let (name, suffix) = (to_server(&self.relname), to_server(suffix));
        // SAFETY: C strings; the result is one too.
        unsafe {
            let name = call!(makeObjectName(name.as_ptr(), suffix.as_ptr(), ptr::null()));
            from_server(CStr::from_ptr(name))
        }
    }

    /// The name in the table's schema, quoted.
    pub fn qualified(&self, name: &str) -> String {
        format!("{}.{}", self.schema, quote_identifier(name))
    }

    /// Whether a relation or a type has that name, which a table would need for itself and for its row type. Core renames
    /// the type of an array.
    pub fn is_name_taken(&self, name: &str) -> bool {
        let sql = "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = $1 AND relname = $2::name)
            OR EXISTS (SELECT FROM pg_type WHERE typnamespace = $1 AND typname = $2::name AND typelem = 0)";
        rows(sql, &[self.namespace.into(), text(name)], |row| row.get(1))[0]
    }

    /// The statements that create a partition as `CREATE TABLE … PARTITION OF` would. Attaching it adds the indexes, the
    /// foreign keys, the triggers and the identity.
    pub fn create_statements(&self, partition: &str, bounds: Bounds) -> [String; 2] {
        let persistence = match self.persistence.as_str() {
            "t" => "TEMPORARY ",
            "u" => "UNLOGGED ",
            _ => "",
        };
        let using = |word: &str, name: &Option<String>| name.as_ref().map_or_else(String::new, |name| format!(" {word} {name}"));
        [
            format!(
                "CREATE {persistence}TABLE {partition} (LIKE {} INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING CONSTRAINTS \
                 INCLUDING STORAGE INCLUDING COMPRESSION){}{}",
                self.name,
                using("USING", &self.access_method),
                using("TABLESPACE", &self.tablespace)
            ),
            format!("ALTER TABLE {} ATTACH PARTITION {partition} {bounds}", self.name),
        ]
    }

    /// Gives a new partition the replica identity of the table. Core leaves that to the user, but without it a published
    /// table would refuse to update the rows of the partition.
    pub fn copy_replica_identity(&self, partition: &str) {
        let identity = match self.replica_identity.as_str() {
            "f" => "FULL".to_owned(),
            "n" => "NOTHING".to_owned(),
            "i" => {
                let sql = "SELECT quote_ident(c.relname)
                    FROM pg_index AS p
                    JOIN pg_inherits AS h ON h.inhparent = p.indexrelid
                    JOIN pg_index AS i ON i.indexrelid = h.inhrelid AND i.indrelid = $2::regclass
                    JOIN pg_class AS c ON c.oid = i.indexrelid
                    WHERE p.indrelid = $1 AND p.indisreplident";
                let index = rows(sql, &[self.relid.into(), text(partition)], |row| row.get::<String>(1)).pop();
                let Some(index) = index else { return };
                format!("USING INDEX {index}")
            }
            _ => return,
        };
        execute(&format!("ALTER TABLE {partition} REPLICA IDENTITY {identity}"), &[]);
    }
}

/// Those that have bounds, in their order.
fn by_bounds(mut partitions: Vec<Partition>) -> Vec<Partition> {
    partitions.retain(|partition| partition.bounds.is_some());
    partitions.sort_unstable_by_key(|partition| partition.bounds);
    partitions
}

/// A partition of a table.
pub struct Partition {
    /// The table.
    pub parent: pg_sys::Oid,
    /// Its OID.
    pub relid: pg_sys::Oid,
    /// The quoted name with its schema.
    pub name: String,
    /// The name.
    pub relname: String,
    /// The foreign table that it is or contains, quoted with its schema.
    pub foreign_table: Option<String>,
    /// Whether it is the default partition.
    pub is_default: bool,
    /// Its range; `None` for the default partition, and if the table is not partitioned by a range of IDs.
    pub bounds: Option<Bounds>,
    /// Whether a `DETACH … CONCURRENTLY` was interrupted or is still under way. No row is inserted into it.
    pub is_detach_pending: bool,
    /// The command that completes the detachment of it, or of a partition below it.
    pub finalize: Option<String>,
}

impl Partition {
    /// Whether it has a row, read as the owner of the table.
    pub fn has_rows(&self, owner: pg_sys::Oid) -> bool {
        !UserTable::open_as(owner, self.relid).select("", "LIMIT 1", &[], |_| ()).is_empty()
    }
}
