//! Prometheus and the exporters, with the files of a copy of `monitoring/`.

use pg_snowflake_examples::program::{Program, free_ports, program};
use pg_snowflake_harness::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use tempfile::TempDir;

/// The jobs of the exporters in `prometheus.yml`.
pub const JOBS: [&str; 2] = ["postgres_exporter", "sql_exporter"];

/// A server of Prometheus that scrapes both exporters, each of which reads a database.
pub struct Prometheus {
    port: u16,
    /// They end before the folder is removed.
    _programs: [Program; 3],
    _dir: TempDir,
}

/// An alert that fires.
#[derive(Debug)]
pub struct Alert {
    pub labels: BTreeMap<String, String>,
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [job, name, severity] = ["job", "alertname", "severity"].map(|label| &self.labels[label]);
        write!(f, "{job}: {name} {severity}")
    }
}

impl Prometheus {
    /// From a folder with the files and the programs. In the copies of the files, what lasts minutes takes a second.
    pub fn start(dir: TempDir, server: &Cluster) -> Self {
        let [port, of_postgres_exporter, of_sql_exporter] = free_ports();
        let socket = server.dir().display();
        edit(&dir, "rules.yml", |line| match line.trim_start().strip_prefix("for: ") {
            Some(time) => line.replace(time, "1s"),
            None => line.replace("[1m]", "[5s]"),
        });
        edit(&dir, "prometheus.yml", |line| {
            line.replace("15s", "1s").replace(":9187", &format!(":{of_postgres_exporter}")).replace(":9237", &format!(":{of_sql_exporter}"))
        });
        edit(&dir, "postgres_exporter.yml", |line| line.replace("cache_seconds: 60", "cache_seconds: 0"));
        edit(&dir, "sql_exporter.yml", |line| {
            line.replace("60s", "1s").replace("15s", "1s").replace("@/app?host=/run/postgresql", &format!("@/postgres?host={socket}"))
        });
        let mut postgres_exporter = program(&dir, "prometheus-postgres-exporter");
        postgres_exporter
            .args(["--extend.query-path=postgres_exporter.yml", "--disable-default-metrics"])
            .args(["--disable-settings-metrics", "--no-collector.database", "--no-collector.bgwriter"])
            .arg(format!("--web.listen-address=127.0.0.1:{of_postgres_exporter}"))
            .env("DATA_SOURCE_NAME", format!("user=snowflake_exporter host={socket} dbname=postgres"));
        let mut sql_exporter = program(&dir, "prometheus-sql-exporter");
        sql_exporter
            .arg("-config.file=sql_exporter.yml")
            .arg(format!("-web.listen-address=127.0.0.1:{of_sql_exporter}"))
            .env("LOGLEVEL", "error");
        let mut prometheus = program(&dir, "prometheus");
        prometheus.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]).arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let programs = [(postgres_exporter, "1.log"), (sql_exporter, "2.log"), (prometheus, "3.log")];
        let programs = programs.map(|(command, log)| Program::start(command, dir.path().join(log)));
        Prometheus { port, _programs: programs, _dir: dir }
    }

    pub fn wait_for(&self, what: &str, is_so: impl FnMut() -> bool) {
        assert!(comes_true(is_so), "no {what}; {:?} fire", self.firing());
    }

    /// The alerts that fire. None while Prometheus starts.
    pub fn firing(&self) -> Vec<Alert> {
        let answer = self.get("alerts", &[]);
        let alerts = answer["data"]["alerts"].as_array().into_iter().flatten();
        let firing = alerts.filter(|alert| alert["state"] == "firing");
        firing.map(|alert| Alert { labels: labels(&alert["labels"]) }).collect()
    }

    /// The names of our metrics in the last scrapes of a job.
    pub fn metrics_of(&self, job: &str) -> BTreeSet<String> {
        self.series_of(job).into_iter().filter_map(|mut labels| labels.remove("__name__")).collect()
    }

    /// The series of our metrics in the last scrapes of a job, without the labels of the job.
    pub fn series_of(&self, job: &str) -> BTreeSet<BTreeMap<String, String>> {
        let answer = self.get("query", &[("query", &format!("{{__name__=~'pg_snowflake_.+', job='{job}'}}"))]);
        let result = answer["data"]["result"].as_array().into_iter().flatten();
        result
            .map(|series| {
                let mut labels = labels(&series["metric"]);
                // sql_exporter has no name for a socket.
                labels.retain(|name, _| !["job", "instance", "server"].contains(&name.as_str()));
                labels
            })
            .collect()
    }

    /// An answer of the API; null while Prometheus starts.
    fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let request = minreq::get(format!("http://127.0.0.1:{}/api/v1/{path}", self.port));
        let request = parameters.iter().fold(request, |request, (name, value)| request.with_param(name, value));
        let Ok(answer) = request.send() else { return Value::Null };
        serde_json::from_slice(answer.as_bytes()).unwrap_or_default()
    }
}

fn labels(labels: &Value) -> BTreeMap<String, String> {
    let labels = labels.as_object().into_iter().flatten();
    labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// Changes the lines of a file of the folder.
fn edit(dir: &TempDir, file: &str, change: impl Fn(&str) -> String) {
    let path = dir.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    let changed: String = text.lines().map(|line| change(line) + "\n").collect();
    assert_ne!(changed, text, "{file} has changed");
    fs::write(path, changed).unwrap();
}
