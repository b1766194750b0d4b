//! Measurements and their medians, confidence intervals and ratios.

use std::fmt::{self, Display, Formatter};

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Nanoseconds per ID of a statement that takes many, with the loop.
    StatementNs,
    /// The same without the loop.
    IdNs,
    /// Nanoseconds per transaction of one ID, with the loop.
    TransactionNs,
    /// The same without the loop.
    FirstIdNs,
    /// CPU seconds of the backend for 1,000,000 IDs, with the loop.
    IdCpuSeconds,
    /// WAL records for 1,000,000 IDs.
    WalRecords,
    /// WAL bytes for 1,000,000 IDs.
    WalBytes,
    /// Duplicates among 1,000,000 IDs of one statement.
    Repeats,
    /// Instructions per ID, without the loop.
    Instructions,
    /// Instructions of the first ID of a transaction, without the loop.
    FirstIdInstructions,
    /// Instructions per ID in layout `instagram`, without the loop.
    InstructionsOfInstagram,
    /// The same in layout `postgres`.
    InstructionsOfPostgres,
    /// Transactions per second of this many clients, 100 IDs each.
    TakingTps(u32),
    /// CPU microseconds of the server for each of these transactions, over all rounds.
    TakingCpuUs(u32),
    /// Transactions per second of this many clients, one inserted row each.
    InsertingTps(u32),
    /// CPU microseconds of the server for each of these transactions, over all rounds.
    InsertingCpuUs(u32),
    /// The same with `synchronous_commit` off: transactions per second.
    InsertingAsyncTps(u32),
    /// Their CPU microseconds.
    InsertingAsyncCpuUs(u32),
    /// Instructions of a transaction that inserts one row by a prepared statement.
    InsertInstructions,
    /// Seconds of an INSERT of many rows.
    BulkSeconds,
    /// CPU seconds of its backend.
    BulkCpuSeconds,
    /// The bytes of the primary key afterwards.
    KeyBytes,
    /// WAL bytes for each of its rows.
    BulkWalBytes,
    /// Nanoseconds per ID taken from this many sequences in turn, without the loop.
    InTurnNs(u32),
    /// IDs per second of one backend without a pause, as a fraction of the limit of layout `postgres`, the default.
    ShareOfPostgres,
    /// The same for layout `twitter`.
    ShareOfTwitter,
    /// Distinct hashes of many IDs.
    DistinctHashes,
    /// Seconds of a HashAggregate that groups by them.
    AggregateSeconds,
    /// The most kilobytes of memory that it uses.
    AggregateKilobytes,
    /// Seconds of a hash join of them with themselves.
    JoinSeconds,
    /// Rows per second of several clients that fill a large table.
    LargeRowsPerSecond,
    /// WAL bytes for each of these rows.
    LargeWalBytes,
    /// Full-page images in that WAL, for 1,000 rows.
    LargeFullPageImages,
    /// Checkpoints that began meanwhile.
    LargeCheckpoints,
    /// Pages of the key that were read into `shared_buffers`, for 1,000 rows.
    LargeKeyReads,
    /// The bytes of the primary key afterwards.
    LargeKeyBytes,
    /// How full its leaf pages are, in percent.
    LargeLeafDensity,
    /// Microseconds of a transaction that reads any row of that table by its ID.
    LargeReadUs,
    /// Pages that it reads into `shared_buffers`.
    LargeReadPages,
    /// Microseconds of a transaction that reads one of the rows inserted last.
    LargeRecentReadUs,
    /// Pages that it reads into `shared_buffers`.
    LargeRecentReadPages,
    /// Milliseconds of a query for the rows of a span of time, for 1,000 rows.
    LargeSpanMs,
    /// The bytes of the index that this needs besides the primary key.
    LargeTimeIndexBytes,
    /// Nanoseconds per row of a query that reads something of each ID, with the scan.
    ScanNs,
    /// The same without the scan.
    ReadNs,
    /// Nanoseconds per row of the same query with two parallel workers, with the scan.
    ParallelScanNs,
    /// The same without the scan.
    ParallelReadNs,
    /// Rows per second of a query for the rows of a span of time.
    SpanRowsPerSecond,
    /// The bytes of the index that it uses.
    SpanIndexBytes,
    /// Seconds of the removal of a table's oldest month.
    RetentionSeconds,
    /// WAL bytes that it writes.
    RetentionWalBytes,
    /// Claims per second that the nodes need to renew each lease after a third of it.
    RegistryClaimsWanted,
    /// Claims per second that the registry has answered.
    RegistryClaims,
    /// The fraction of them that was answered within a third of the lease.
    RegistryShareInTime,
    /// The longest time from when a renewal was due to its answer, in milliseconds.
    RegistryWorstDelayMs,
    /// Spans that ended before they were renewed.
    RegistrySpansEnded,
    /// WAL bytes per second.
    RegistryWalBytes,
    /// Transactions per second.
    RegistryCommits,
    /// CPU seconds of the registry's processes per second.
    RegistryCpu,
    /// The fraction of the updates of the shards that were HOT.
    RegistryHotShare,
    /// The bytes of the table of the shards and its index at the end.
    RegistryTableBytes,
    /// Kilobytes of private memory of a node's backend.
    RegistryPrivateKilobytes,
    /// Kilobytes of memory of the machine for each node, with those of the simulated node.
    RegistryMachineKilobytes,
    /// Seconds until all nodes that start at once have their leases.
    RegistryStartSeconds,
    /// Seconds of a restart of the registry with all nodes connected.
    RegistryRestartSeconds,
    /// Seconds from the begin of that restart until all nodes have renewed.
    RegistryOutageSeconds,
    /// Spans that ended meanwhile.
    RegistrySpansEndedByOutage,
}

impl Measure {
    /// Whether it counts. All others are times or rates, which vary with the load of the machine more than a count does.
    pub fn is_exact(self) -> bool {
        self.is_instructions()
            || matches!(
                self,
                Measure::WalRecords
                    | Measure::WalBytes
                    | Measure::Repeats
                    | Measure::KeyBytes
                    | Measure::BulkWalBytes
                    | Measure::DistinctHashes
                    | Measure::AggregateKilobytes
                    | Measure::LargeWalBytes
                    | Measure::LargeFullPageImages
                    | Measure::LargeCheckpoints
                    | Measure::LargeKeyReads
                    | Measure::LargeKeyBytes
                    | Measure::LargeLeafDensity
                    | Measure::LargeReadPages
                    | Measure::LargeRecentReadPages
                    | Measure::LargeTimeIndexBytes
                    | Measure::SpanIndexBytes
                    | Measure::RetentionWalBytes
                    | Measure::RegistrySpansEnded
                    | Measure::RegistrySpansEndedByOutage
                    | Measure::RegistryTableBytes
                    | Measure::RegistryPrivateKilobytes
                    | Measure::RegistryMachineKilobytes
            )
    }

    /// Whether it counts instructions of the processor.
    pub fn is_instructions(self) -> bool {
        matches!(
            self,
            Measure::Instructions
                | Measure::FirstIdInstructions
                | Measure::InstructionsOfInstagram
                | Measure::InstructionsOfPostgres
                | Measure::InsertInstructions
        )
    }
}

/// The name in the CSV.
impl Display for Measure {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Measure::StatementNs => write!(f, "ns_per_id_with_loop"),
            Measure::IdNs => write!(f, "ns_per_id"),
            Measure::TransactionNs => write!(f, "ns_per_transaction_with_loop"),
            Measure::FirstIdNs => write!(f, "ns_per_first_id"),
            Measure::IdCpuSeconds => write!(f, "cpu_s_per_1000000_ids"),
            Measure::WalRecords => write!(f, "wal_records_per_1000000_ids"),
            Measure::WalBytes => write!(f, "wal_bytes_per_1000000_ids"),
            Measure::Repeats => write!(f, "repeats_in_1000000_ids"),
            Measure::Instructions => write!(f, "instructions_per_id"),
            Measure::FirstIdInstructions => write!(f, "instructions_per_first_id"),
            Measure::InstructionsOfInstagram => write!(f, "instructions_per_id_of_instagram"),
            Measure::InstructionsOfPostgres => write!(f, "instructions_per_id_of_postgres"),
            Measure::TakingTps(clients) => write!(f, "tps_of_100_ids_{clients}_clients"),
            Measure::TakingCpuUs(clients) => write!(f, "cpu_us_of_100_ids_{clients}_clients"),
            Measure::InsertingTps(clients) => write!(f, "tps_of_an_insert_{clients}_clients"),
            Measure::InsertingCpuUs(clients) => write!(f, "cpu_us_of_an_insert_{clients}_clients"),
            Measure::InsertingAsyncTps(clients) => {
                write!(f, "tps_of_an_insert_async_{clients}_clients")
            }
            Measure::InsertingAsyncCpuUs(clients) => {
                write!(f, "cpu_us_of_an_insert_async_{clients}_clients")
            }
            Measure::InsertInstructions => write!(f, "instructions_per_insert"),
            Measure::BulkSeconds => write!(f, "bulk_insert_s"),
            Measure::BulkCpuSeconds => write!(f, "bulk_insert_cpu_s"),
            Measure::KeyBytes => write!(f, "primary_key_bytes"),
            Measure::BulkWalBytes => write!(f, "bulk_insert_wal_bytes_per_row"),
            Measure::InTurnNs(sequences) => write!(f, "ns_per_id_of_{sequences}_sequences"),
            Measure::ShareOfPostgres => write!(f, "share_of_the_limit_postgres"),
            Measure::ShareOfTwitter => write!(f, "share_of_the_limit_twitter"),
            Measure::DistinctHashes => write!(f, "distinct_hashes"),
            Measure::AggregateSeconds => write!(f, "hash_aggregate_s"),
            Measure::AggregateKilobytes => write!(f, "hash_aggregate_kb"),
            Measure::JoinSeconds => write!(f, "hash_join_s"),
            Measure::LargeRowsPerSecond => write!(f, "large_rows_per_s"),
            Measure::LargeWalBytes => write!(f, "large_wal_bytes_per_row"),
            Measure::LargeFullPageImages => write!(f, "large_full_page_images_per_1000_rows"),
            Measure::LargeCheckpoints => write!(f, "large_checkpoints"),
            Measure::LargeKeyReads => write!(f, "large_key_reads_per_1000_rows"),
            Measure::LargeKeyBytes => write!(f, "large_key_bytes"),
            Measure::LargeLeafDensity => write!(f, "large_leaf_density_percent"),
            Measure::LargeReadUs => write!(f, "large_read_us"),
            Measure::LargeReadPages => write!(f, "large_read_pages"),
            Measure::LargeRecentReadUs => write!(f, "large_recent_read_us"),
            Measure::LargeRecentReadPages => write!(f, "large_recent_read_pages"),
            Measure::LargeSpanMs => write!(f, "large_span_ms_per_1000_rows"),
            Measure::LargeTimeIndexBytes => write!(f, "large_time_index_bytes"),
            Measure::ScanNs => write!(f, "ns_per_row_with_scan"),
            Measure::ReadNs => write!(f, "ns_per_row"),
            Measure::ParallelScanNs => write!(f, "ns_per_row_with_scan_parallel"),
            Measure::ParallelReadNs => write!(f, "ns_per_row_parallel"),
            Measure::SpanRowsPerSecond => write!(f, "span_rows_per_s"),
            Measure::SpanIndexBytes => write!(f, "span_index_bytes"),
            Measure::RetentionSeconds => write!(f, "retention_s"),
            Measure::RetentionWalBytes => write!(f, "retention_wal_bytes"),
            Measure::RegistryClaimsWanted => write!(f, "registry_claims_wanted_per_s"),
            Measure::RegistryClaims => write!(f, "registry_claims_per_s"),
            Measure::RegistryShareInTime => write!(f, "registry_share_in_time"),
            Measure::RegistryWorstDelayMs => write!(f, "registry_worst_delay_ms"),
            Measure::RegistrySpansEnded => write!(f, "registry_spans_ended"),
            Measure::RegistryWalBytes => write!(f, "registry_wal_bytes_per_s"),
            Measure::RegistryCommits => write!(f, "registry_commits_per_s"),
            Measure::RegistryCpu => write!(f, "registry_cpu_cores"),
            Measure::RegistryHotShare => write!(f, "registry_share_of_hot_updates"),
            Measure::RegistryTableBytes => write!(f, "registry_table_bytes"),
            Measure::RegistryPrivateKilobytes => write!(f, "registry_private_kb_per_backend"),
            Measure::RegistryMachineKilobytes => write!(f, "registry_machine_kb_per_node"),
            Measure::RegistryStartSeconds => write!(f, "registry_start_s"),
            Measure::RegistryRestartSeconds => write!(f, "registry_restart_s"),
            Measure::RegistryOutageSeconds => write!(f, "registry_outage_s"),
            Measure::RegistrySpansEndedByOutage => write!(f, "registry_spans_ended_by_outage"),
        }
    }
}

/// One measurement, as in the CSV.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// The name of what was measured.
    measure: String,
    /// The contender's name.
    contender: String,
    /// The round, from 0.
    round: usize,
    /// The figure, in the unit of the measure.
    value: f64,
}

/// All measurements of a run.
#[derive(Debug, Default, PartialEq)]
pub struct Samples(Vec<Sample>);

impl Samples {
    /// Adds a measurement.
    pub fn add(&mut self, round: usize, contender: &str, measure: Measure, value: f64) {
        let (measure, contender) = (measure.to_string(), contender.to_owned());
        self.0.push(Sample { measure, contender, round, value });
    }

    /// Whether anything was measured of the contender.
    pub fn has(&self, contender: &str) -> bool {
        self.0.iter().any(|sample| sample.contender == contender)
    }

    /// Adds another measure: one less the empty loop's in the same round.
    pub fn subtract_loop(&mut self, with_loop: Measure, without: Measure, the_loop: &str) {
        let of_the_loop: Vec<Sample> = self.of(with_loop, the_loop).cloned().collect();
        let remains = |sample: &Sample| {
            let of_the_loop = of_the_loop.iter().find(|other| other.round == sample.round)?;
            let value = sample.value - of_the_loop.value;
            Some(Sample { measure: without.to_string(), value, ..sample.clone() })
        };
        let with_loop = with_loop.to_string();
        let others = self
            .0
            .iter()
            .filter(|sample| sample.measure == with_loop && sample.contender != the_loop);
        let remains: Vec<Sample> = others.filter_map(remains).collect();
        self.0.extend(remains);
    }

    fn of(&self, measure: Measure, contender: &str) -> impl Iterator<Item = &Sample> {
        let measure = measure.to_string();
        self.0
            .iter()
            .filter(move |sample| sample.measure == measure && sample.contender == contender)
    }

    /// The measurements of a contender in all rounds; `None` if there are none.
    pub fn spread(&self, measure: Measure, contender: &str) -> Option<Spread> {
        Spread::of(self.of(measure, contender).map(|sample| sample.value).collect())
    }

    /// One figure divided by another, round by round, so that a disturbance affects both.
    pub fn ratio(&self, over: (Measure, &str), under: (Measure, &str)) -> Option<Spread> {
        let ratio = |over: &Sample| {
            let under = self.of(under.0, under.1).find(|under| under.round == over.round)?;
            Some(over.value / under.value)
        };
        Spread::of(self.of(over.0, over.1).filter_map(ratio).collect())
    }

    /// One line per measurement.
    pub fn to_csv(&self) -> String {
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record(["measure", "contender", "round", "value"])
            .expect("memory can be written");
        for Sample { measure, contender, round, value } in &self.0 {
            csv.write_record([measure, contender, &round.to_string(), &value.to_string()])
                .expect("memory can be written");
        }
        String::from_utf8(csv.into_inner().expect("memory can be written"))
            .expect("all of it is text")
    }

    /// What [`to_csv`](Self::to_csv) has written.
    ///
    /// # Errors
    /// If a line is not a measurement.
    pub fn from_csv(text: &str) -> csv::Result<Self> {
        let sample = |line: csv::Result<_>| {
            line.map(|(measure, contender, round, value)| Sample {
                measure,
                contender,
                round,
                value,
            })
        };
        let lines = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
        lines.map(sample).collect::<csv::Result<_>>().map(Self)
    }
}

/// A median and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half is below it.
    pub median: f64,
    /// With a probability of at least 95 %, the median of infinitely many measurements lies in it, if they do not depend on each
    /// other. Fewer than six measurements show less: then it is from the smallest to the largest.
    pub interval: [f64; 2],
    /// The number of measurements.
    pub count: usize,
}

impl Spread {
    /// The width of the interval, as a fraction of the median.
    pub fn width(&self) -> f64 {
        (self.interval[1] - self.interval[0]) / self.median.abs()
    }

    /// `None` without measurements.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let left_out = left_out_of_interval(values.len());
        Some(Spread {
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            interval: [values[left_out], values[values.len() - 1 - left_out]],
            count: values.len(),
        })
    }
}

/// How many of the smallest, and of the largest, lie outside the confidence interval of the median.
///
/// Whatever the distribution, a measurement is below the median with a probability of 1/2. So the number of those below it is
/// that of heads among `count` coins, as in the sign test. On each side, the interval misses the median with a probability of
/// at most 2.5 %.
fn left_out_of_interval(count: usize) -> usize {
    // Logarithms, since a power of 1/2 would be 0 for many.
    let mut exactly = 0.5_f64.ln() * count as f64;
    let mut at_most = exactly.exp();
    let mut below = 0;
    while at_most <= 0.025 {
        below += 1;
        exactly += ((count - below + 1) as f64 / below as f64).ln();
        at_most += exactly.exp();
    }
    below.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{Measure, Samples, Spread, left_out_of_interval};

    fn samples(values: &[(usize, &'static str, f64)]) -> Samples {
        let mut samples = Samples::default();
        for &(round, contender, value) in values {
            samples.add(round, contender, Measure::IdNs, value);
        }
        samples
    }

    #[test]
    fn half_of_the_measurements_are_below_the_median_whatever_the_order() {
        let cases = [
            (vec![7.0], 7.0),
            (vec![4.0, 1.0, 3.0, 2.0], 2.5),
            (vec![9.0, 1.0, 5.0, 3.0, 7.0], 5.0),
            (vec![1.0, 1.0, 1.0, 1000.0, 1.0], 1.0),
        ];
        for (values, median) in cases {
            let spread = Spread::of(values.clone()).unwrap();
            assert_eq!((spread.median, spread.count), (median, values.len()), "{values:?}");
        }
        assert_eq!(Spread::of(vec![]), None);
    }

    /// As tables of the sign test have it.
    #[test]
    fn the_interval_is_between_two_measurements() {
        let cases = [
            (1, 1, 1),
            (3, 1, 3),
            (5, 1, 5),
            (6, 1, 6),
            (8, 1, 8),
            (9, 2, 8),
            (12, 3, 10),
            (18, 5, 14),
            (27, 8, 20),
            (100, 40, 61),
        ];
        for (count, lowest, highest) in cases {
            let values = (1..=count).rev().map(f64::from).collect();
            let interval = Spread::of(values).unwrap().interval;
            assert_eq!(interval, [lowest, highest].map(f64::from), "{count}");
        }
        assert!((900..1000).contains(&left_out_of_interval(2_000)));
    }

    #[test]
    fn a_ratio_is_of_the_same_round() {
        // The machine was ten times as slow in round 1, and round 3 has only one figure.
        let samples = samples(&[
            (0, "ours", 10.0),
            (0, "core", 20.0),
            (1, "core", 200.0),
            (1, "ours", 100.0),
            (2, "ours", 10.0),
            (2, "core", 20.0),
            (3, "ours", 1.0),
        ]);
        let ratio = samples.ratio((Measure::IdNs, "ours"), (Measure::IdNs, "core")).unwrap();
        let half = Spread { median: 0.5, interval: [0.5, 0.5], count: 3 };
        assert_eq!(ratio, half);
        assert_eq!(samples.ratio((Measure::IdNs, "ours"), (Measure::WalBytes, "core")), None);
    }

    #[test]
    fn the_loop_of_the_same_round_is_subtracted() {
        let mut samples = Samples::default();
        for (round, contender, value) in
            [(0, "loop", 3.0), (0, "ours", 10.0), (1, "ours", 30.0), (1, "loop", 9.0)]
        {
            samples.add(round, contender, Measure::StatementNs, value);
        }
        samples.subtract_loop(Measure::StatementNs, Measure::IdNs, "loop");
        let without: Vec<f64> =
            samples.of(Measure::IdNs, "ours").map(|sample| sample.value).collect();
        assert_eq!(without, [7.0, 21.0]);
        assert_eq!(samples.spread(Measure::IdNs, "loop"), None);
    }

    #[test]
    fn the_csv_has_a_line_for_each_measurement_and_is_read_back() {
        let samples = samples(&[(0, "ours", 10.5), (1, "core", 20.0)]);
        let csv = samples.to_csv();
        assert_eq!(
            csv,
            "measure,contender,round,value\nns_per_id,ours,0,10.5\nns_per_id,core,1,20\n"
        );
        assert_eq!(Samples::from_csv(&csv).unwrap(), samples);
        assert!(Samples::from_csv("measure,contender,round,value\nns_per_id,ours,0\n").is_err());
    }
}
