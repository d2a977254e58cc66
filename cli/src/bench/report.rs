//! Prints a result: one JSON document on stdout, or lines for people.

use serde::Serialize;

use super::machine::Machine;
use super::server::ServerSettings;

/// One run.
#[derive(Debug, Serialize)]
pub struct Report<T> {
    pub scenario: &'static str,
    pub machine: Machine,
    pub postgres: ServerSettings,
    #[serde(flatten)]
    pub result: T,
}

impl<T: Serialize> Report<T> {
    /// Prints it; `lines` are the figures for people, as name and value.
    pub fn print(&self, json: bool, lines: &[(&str, String)]) -> anyhow::Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        let (machine, postgres) = (&self.machine, &self.postgres);
        println!("{} ({} build)", self.scenario, machine.build);
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in lines {
            println!("  {name:width$}  {value}");
        }
        println!(
            "on {} cores, {}, {} MiB, {}",
            machine.cores, machine.processor, machine.memory_mib, machine.system
        );
        println!(
            "with PostgreSQL {}, fsync {}, synchronous_commit {}, shared_buffers {}, one bare commit {} µs",
            postgres.version,
            postgres.fsync,
            postgres.synchronous_commit,
            postgres.shared_buffers,
            postgres.commit_us
        );
        println!(
            "with full_page_writes {}, max_wal_size {}, wal_compression {}, checkpoint_timeout {}",
            postgres.full_page_writes,
            postgres.max_wal_size,
            postgres.wal_compression,
            postgres.checkpoint_timeout
        );
        if machine.build == "debug" {
            println!("a debug build: take no figure but the floor from here");
        }
        Ok(())
    }
}
