//! Runs the program and reads its report.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use embedded_postgres::testkit::TestDatabase;
use serde_json::Value;
use tokio::process::Command;

/// Longer than any of these runs takes on the slowest machine. The program's own limit on a step is shorter, so that a run
/// that hangs says where.
const HANG: Duration = Duration::from_secs(400);
const STEP_SECONDS: &str = "180";

/// One JSON report.
pub struct Report(Value);

/// A scenario on the tests' server, where commits cost nothing.
pub async fn bench(args: &[&str]) -> Report {
    let database = TestDatabase::create().await;
    run(args, &["--database-url", database.url()]).await
}

/// A scenario on a server of its own, as users run it.
pub async fn on_an_embedded_server(args: &[&str]) -> Report {
    // PostgreSQL's own user must be able to reach it.
    let folder = std::env::temp_dir().join(format!("converge-bench-{}", uuid::Uuid::now_v7().simple()));
    let report = run(args, &["--data-dir", folder.to_str().unwrap()]).await;
    assert!(is_empty(&folder), "the server's data stayed behind");
    // It may never have been made.
    let _ = std::fs::remove_dir(&folder);
    report
}

async fn run(args: &[&str], server: &[&str]) -> Report {
    let mut command = Command::new(env!("CARGO_BIN_EXE_converge"));
    command.arg("bench").args(args).args(server).arg("--json").env_remove("DATABASE_URL");
    if args.first() != Some(&"floor") {
        command.args(["--timeout", STEP_SECONDS]);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(HANG, command.output()).await.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["scenario"], args[0]);
    Report(report)
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

impl Report {
    /// The value at a path of fields, such as `memory.server`.
    pub fn at(&self, path: &str) -> &Value {
        let value = path.split('.').try_fold(&self.0, |value, field| value.get(field));
        value.unwrap_or_else(|| panic!("there is no `{path}` in {:#}", self.0))
    }

    pub fn number(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap_or_else(|| panic!("`{path}` is {}", self.at(path)))
    }

    pub fn count(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_else(|| panic!("`{path}` is {}", self.at(path)))
    }

    pub fn positive(&self, paths: &[&str]) {
        for path in paths {
            let number = self.number(path);
            assert!(number.is_finite() && number > 0.0, "`{path}` is {number}");
        }
    }

    /// A figure without its machine and its settings is a rumour.
    pub fn describes_where_it_ran(&self) {
        assert!(self.count("machine.cores") > 0);
        for text in ["machine.processor", "machine.system", "postgres.version", "postgres.wal_compression"] {
            assert!(!self.at(text).as_str().unwrap().is_empty(), "{text}");
        }
        assert!(["on", "off"].contains(&self.at("postgres.fsync").as_str().unwrap()));
    }

    pub fn says_what_it_cost(&self) {
        self.positive(&[
            "statements.total",
            "statements.per_resource",
            "wal_bytes",
            "wal_bytes_per_resource",
        ]);
        if !cfg!(target_os = "linux") {
            return;
        }
        self.positive(&["cpu_seconds.server", "cpu_us_per_resource.server"]);
        for process in ["server", "worker", "bench"] {
            let (now, peak) = (
                self.count(&format!("memory.{process}.rss_kib")),
                self.count(&format!("memory.{process}.peak_rss_kib")),
            );
            assert!(now > 0 && peak >= now, "{process}: {now} KiB, peak {peak}");
        }
    }

    pub fn was_probed(&self) {
        assert!(self.at("probe.questions.last_error").is_null(), "{}", self.at("probe"));
        assert!(self.at("probe.subscriber.error").is_null(), "{}", self.at("probe"));
        assert!(self.count("probe.questions.resource.count") > 0);
        let (events, behind) =
            (self.count("probe.subscriber.events"), self.count("probe.subscriber.behind_at_end"));
        assert!(events > 0 && behind >= 0, "{events} events, {behind} behind");
    }
}
