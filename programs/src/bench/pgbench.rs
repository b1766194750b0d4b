//! Runs of pgbench, and what it reports.

use pg_snowflake_harness::Cluster;

/// More threads would compete with the server for the processors.
const THREADS: u32 = 2;

/// The result that pgbench reports.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub tps: f64,
    pub transactions: u32,
}

impl Outcome {
    /// Of that many transactions of each client, in a database or with a connection string. Statements are prepared.
    pub fn of(
        server: &Cluster,
        database: &str,
        clients: u32,
        transactions: u32,
        script: &str,
    ) -> Self {
        let options = [
            "--protocol=prepared".to_owned(),
            format!("--client={clients}"),
            format!("--jobs={}", clients.min(THREADS)),
            format!("--transactions={transactions}"),
        ];
        let said = server.pgbench(database, &options, script);
        Self::read(&said).unwrap_or_else(|| panic!("pgbench does not report its rate:\n{said}"))
    }

    fn read(said: &str) -> Option<Self> {
        let after = |label: &str| {
            let figure = said.lines().find_map(|line| line.strip_prefix(label))?;
            figure.trim_start().split([' ', '/']).next()
        };
        Some(Outcome {
            tps: after("tps = ")?.parse().ok()?,
            transactions: after("number of transactions actually processed:")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn pgbenchs_output_is_parsed() {
        let said = "transaction type: -\nnumber of clients: 8\n\
            number of transactions actually processed: 8000/8000\nnumber of failed transactions: 0 (0.000%)\n\
            latency average = 0.386 ms\ninitial connection time = 11.234 ms\n\
            tps = 20711.432146 (without initial connection time)\n";
        assert_eq!(Outcome::read(said), Some(Outcome { tps: 20711.432146, transactions: 8000 }));
        assert_eq!(Outcome::read("tps = 1.0\n"), None);
    }
}
