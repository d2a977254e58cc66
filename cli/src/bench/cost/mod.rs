//! What a span of a run cost, beside how long it took: processor time, memory, statements, and bytes of the
//! write-ahead log. Seconds tell that something is slow; these tell where.

mod process;
mod sampler;
mod statements;

use std::sync::Arc;

use serde::Serialize;
use sqlx::{Connection, Row};

use self::process::cpu_seconds_of_tree;
pub use self::process::{Memory, cpu_seconds, parent_of};
use self::sampler::Sampler;
use self::statements::Counted;
pub use self::statements::Statements;
use super::processes::{Pids, Processes};
use super::server::BenchServer;

/// See the module.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    pub cpu_seconds: Cpu,
    /// The same divided by the resources of the run, in microseconds.
    pub cpu_us_per_resource: Cpu,
    pub memory: ProcessMemory,
    pub statements: Statements,
    /// Bytes of write-ahead log that the whole server wrote, full-page images included.
    pub wal_bytes: i64,
    pub wal_bytes_per_resource: f64,
}

/// Processor time of each process.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Cpu {
    pub server: f64,
    pub worker: f64,
    /// All its processes, other databases' sessions included; None when the server is out of reach.
    pub postgres: Option<f64>,
    /// This process: the user of the run.
    pub bench: f64,
}

/// Of each process, at the end and at its highest.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ProcessMemory {
    pub server: Memory,
    pub worker: Memory,
    pub bench: Memory,
    /// All its processes together, each shared page once; None when the server is out of reach.
    pub postgres_pss_kib: Option<u64>,
    /// As far as a look every few seconds can tell.
    pub postgres_peak_pss_kib: Option<u64>,
}

/// A span that is being measured.
pub struct Meter {
    pids: Arc<Pids>,
    cpu: Cpu,
    statements: Counted,
    wal: i64,
    sampler: Sampler,
}

impl Meter {
    /// Starts the span.
    pub async fn start(server: &BenchServer, processes: &Processes) -> anyhow::Result<Self> {
        let pids = processes.pids();
        let statements = Counted::now(server).await?;
        let wal = wal_bytes(server).await?;
        let sampler = Sampler::start(Arc::clone(&pids), server.pid());
        Ok(Self { cpu: Cpu::now(&pids, server.pid()), pids, statements, wal, sampler })
    }

    /// Ends the span, in which `resources` were worked.
    #[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52 bytes")]
    pub async fn stop(self, server: &BenchServer, resources: u32) -> anyhow::Result<Cost> {
        let cpu = Cpu::now(&self.pids, server.pid()).minus(self.cpu);
        let wal_bytes = wal_bytes(server).await? - self.wal;
        let statements = Counted::now(server).await?.since(&self.statements, resources);
        let memory = self.sampler.stop().await;
        Ok(Cost {
            cpu_seconds: cpu,
            cpu_us_per_resource: cpu.times(1e6 / f64::from(resources.max(1))),
            memory,
            statements,
            wal_bytes,
            wal_bytes_per_resource: wal_bytes as f64 / f64::from(resources.max(1)),
        })
    }
}

impl Cpu {
    fn now(pids: &Pids, postgres: Option<u32>) -> Self {
        Self {
            server: cpu_seconds(pids.server()),
            worker: pids.worker_cpu_seconds(),
            postgres: postgres.map(cpu_seconds_of_tree),
            bench: cpu_seconds(std::process::id()),
        }
    }

    fn minus(self, before: Self) -> Self {
        Self {
            server: self.server - before.server,
            worker: self.worker - before.worker,
            postgres: self.postgres.zip(before.postgres).map(|(now, before)| now - before),
            bench: self.bench - before.bench,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            server: self.server * factor,
            worker: self.worker * factor,
            postgres: self.postgres.map(|seconds| seconds * factor),
            bench: self.bench * factor,
        }
    }
}

/// How much the server has ever written to its write-ahead log.
async fn wal_bytes(server: &BenchServer) -> anyhow::Result<i64> {
    let mut connection = server.connect().await?;
    let text = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let bytes = sqlx::query(text).fetch_one(&mut connection).await?.try_get(0)?;
    connection.close().await?;
    Ok(bytes)
}

impl Cost {
    /// For people.
    #[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52 bytes")]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mib =
            |memory: &Memory| format!("{} MiB (peak {})", memory.rss_kib / 1024, memory.peak_rss_kib / 1024);
        let text = |seconds: Option<f64>| seconds.map_or("?".to_owned(), |seconds| format!("{seconds:.2}"));
        let whole = |micros: Option<f64>| micros.map_or("?".to_owned(), |micros| format!("{micros:.0}"));
        let (cpu, each, memory) = (&self.cpu_seconds, &self.cpu_us_per_resource, &self.memory);
        let mut lines = vec![
            (
                "cpu",
                format!(
                    "server {:.2} s, worker {:.2} s, postgres {} s, bench {:.2} s",
                    cpu.server,
                    cpu.worker,
                    text(cpu.postgres),
                    cpu.bench
                ),
            ),
            (
                "cpu each",
                format!(
                    "server {:.0} µs, worker {:.0} µs, postgres {} µs, bench {:.0} µs a resource",
                    each.server,
                    each.worker,
                    whole(each.postgres),
                    each.bench
                ),
            ),
            (
                "memory",
                format!(
                    "server {}, worker {}, bench {}",
                    mib(&memory.server),
                    mib(&memory.worker),
                    mib(&memory.bench)
                ),
            ),
        ];
        if let (Some(now), Some(peak)) = (memory.postgres_pss_kib, memory.postgres_peak_pss_kib) {
            lines.push(("postgres", format!("{} MiB in all (peak {})", now / 1024, peak / 1024)));
        }
        let statements = &self.statements;
        let unit = if statements.source == "pg_stat_statements" { "statements" } else { "transactions" };
        lines
            .push(("SQL", format!("{} {unit}, {:.3} a resource", statements.total, statements.per_resource)));
        lines.extend(statements.top.iter().take(3).map(|statement| {
            let query: String = statement.query.chars().take(60).collect();
            ("", format!("{:.1} s in {} calls: {query}", statement.total_ms / 1000.0, statement.calls))
        }));
        lines.push((
            "WAL",
            format!(
                "{:.1} MiB, {:.0} B a resource",
                self.wal_bytes as f64 / 1_048_576.0,
                self.wal_bytes_per_resource
            ),
        ));
        lines
    }
}
