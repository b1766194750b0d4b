//! What is measured.

use thousands::Separable;

/// A measure: its name in the CSV, its title for people, how many decimals are shown, how many rounds a full run needs for its limits,
/// and whether it counts. All others are times or rates, which vary with the load of the machine more than a count does.
#[derive(Debug, PartialEq)]
pub struct Measure {
    pub name: &'static str,
    pub title: &'static str,
    pub decimals: usize,
    pub rounds: usize,
    pub is_counted: bool,
}

/// The numbers of clients of the loads.
pub const CLIENTS: [u32; 3] = [1, 8, 32];

/// Rounds of inserts for each other round. The disk is faster in one second than in the next, so many short turns show a difference
/// that few long ones hide.
pub const INSERT_ROUNDS: usize = 2;

/// The median of fewer rounds is not reliable.
const ROUNDS: usize = 9;
const ROUNDS_OF_INSERTS: usize = INSERT_ROUNDS * ROUNDS;

/// At most so many rounds of the large tables, since a turn takes most of a minute.
pub const LARGE_ROUNDS: usize = 3;

#[rustfmt::skip]
pub const MEASURES: [Measure; 30] = [
    timed("ns_per_id", "ns for an ID in one session", 0, ROUNDS),
    timed("ns_per_id_with_loop", "ns for an ID with the loop", 0, ROUNDS),
    timed("ns_per_first_id", "ns for the first ID of a transaction", 0, ROUNDS),
    timed("ns_per_transaction_with_loop", "ns for a transaction of one ID", 0, ROUNDS),
    timed("ms_of_a_connection", "ms for a connection with one `INSERT`", 2, ROUNDS),
    timed("ms_of_load", "ms to load the library", 2, ROUNDS),
    counted("mb_of_the_library", "MB of the library", 2, 1),
    counted("instructions_per_id", "instructions of an ID", 0, 1),
    counted("instructions_per_first_id", "instructions of the first ID of a transaction", 0, 1),
    counted("wal_records_per_1000000_ids", "WAL records of 1,000,000 IDs", 0, ROUNDS),
    counted("repeats_in_1000000_ids", "duplicates in 1,000,000 IDs of one session", 0, 1),
    timed("tps_of_100_ids_1_clients", "transactions of 100 IDs per second, 1 client", 0, ROUNDS),
    timed("tps_of_100_ids_8_clients", "transactions of 100 IDs per second, 8 clients", 0, ROUNDS),
    timed("tps_of_100_ids_32_clients", "transactions of 100 IDs per second, 32 clients", 0, ROUNDS),
    timed("tps_of_an_insert_1_clients", "one-row `INSERT`s per second, 1 client", 0, ROUNDS_OF_INSERTS),
    timed("tps_of_an_insert_8_clients", "one-row `INSERT`s per second, 8 clients", 0, ROUNDS_OF_INSERTS),
    timed("tps_of_an_insert_32_clients", "one-row `INSERT`s per second, 32 clients", 0, ROUNDS_OF_INSERTS),
    timed("tps_of_an_insert_async_1_clients", "one-row `INSERT`s per second, 1 client, `synchronous_commit` off", 0, ROUNDS_OF_INSERTS),
    timed("tps_of_an_insert_async_8_clients", "one-row `INSERT`s per second, 8 clients, `synchronous_commit` off", 0, ROUNDS_OF_INSERTS),
    timed("tps_of_an_insert_async_32_clients", "one-row `INSERT`s per second, 32 clients, `synchronous_commit` off", 0, ROUNDS_OF_INSERTS),
    counted("instructions_per_insert", "instructions of a one-row `INSERT`", 0, 1),
    timed("bulk_insert_s", "s for 1,000,000 rows in one `INSERT`", 2, ROUNDS),
    counted("primary_key_bytes", "bytes of their primary key", 0, ROUNDS),
    timed("large_rows_per_s", "rows per second, key larger than `shared_buffers`", 0, LARGE_ROUNDS),
    counted("large_wal_bytes_per_row", "WAL bytes of a row, key larger than `shared_buffers`", 0, LARGE_ROUNDS),
    counted("large_key_bytes", "bytes of a key larger than `shared_buffers`", 0, LARGE_ROUNDS),
    timed("ns_per_row", "ns per row above the scan", 1, ROUNDS),
    timed("ns_per_row_with_scan", "ns per row with the scan", 1, ROUNDS),
    timed("ns_per_row_with_scan_parallel", "ns per row with the scan, two parallel workers", 1, ROUNDS),
    timed("span_rows_per_s", "rows per second, in a tenth of the whole time", 0, ROUNDS),
];

const fn timed(name: &'static str, title: &'static str, decimals: usize, rounds: usize) -> Measure {
    Measure { name, title, decimals, rounds, is_counted: false }
}

const fn counted(name: &'static str, title: &'static str, decimals: usize, rounds: usize) -> Measure {
    Measure { name, title, decimals, rounds, is_counted: true }
}

pub fn measure(name: &str) -> &'static Measure {
    let measure = MEASURES.iter().find(|measure| measure.name == name);
    measure.unwrap_or_else(|| panic!("there is no measure {name}"))
}

/// 1234567.8 as 1,234,568; with one decimal as 1234567.8.
pub fn figure(value: f64, decimals: usize) -> String {
    match decimals {
        0 => (value.round() as i64).separate_with_commas(),
        _ => format!("{value:.decimals$}"),
    }
}
