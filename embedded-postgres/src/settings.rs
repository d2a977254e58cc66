//! The server's settings, given on its command line so that a data directory carries none of them: what the
//! server runs with is what this file says, for an old directory too.

use std::path::Path;

/// Whether what is committed must survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Commits are on disk. For everything but tests.
    #[default]
    Durable,
    /// Nothing is ever flushed: a server that is deleted with its data after the test run.
    ThrowAway,
}

/// `name=value` pairs for `-c`, in order; later ones win.
pub(crate) fn settings(durability: Durability, run: &Path) -> Vec<(&'static str, String)> {
    let fixed = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let mut all = fixed(&[
        // The socket alone: `trust` authentication is only right where the file system keeps others out.
        ("listen_addresses", ""),
        ("port", "5432"),
        ("unix_socket_permissions", "0700"),
        // Nobody outside needs it, and parallel plans of small queries only add processes on small machines.
        ("max_parallel_workers_per_gather", "0"),
        ("timezone", "UTC"),
        ("log_timezone", "UTC"),
        ("lc_messages", "C"),
        ("log_min_duration_statement", "5000"),
    ]);
    all.push(("unix_socket_directories", run.display().to_string()));
    all.extend(match durability {
        Durability::Durable => fixed(&[
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("full_page_writes", "on"),
            ("max_connections", "100"),
            // A quarter of a gigabyte holds the hot heads and the queue of a million resources' working set and
            // still fits a laptop.
            ("shared_buffers", "256MB"),
            // Full-page images are most of the log's volume right after a checkpoint: fewer checkpoints and
            // compressed images cut what the one disk of such a machine must flush.
            ("max_wal_size", "2GB"),
            ("wal_compression", "on"),
            ("checkpoint_timeout", "15min"),
            ("checkpoint_completion_target", "0.9"),
            // Heads are updated all the time; vacuum early so that HOT chains stay short, and unthrottled.
            ("autovacuum_vacuum_scale_factor", "0.05"),
            ("autovacuum_vacuum_cost_delay", "0"),
            ("autovacuum_naptime", "15s"),
        ]),
        Durability::ThrowAway => fixed(&[
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("full_page_writes", "off"),
            // Many tests run at once, each with a pool of its own.
            ("max_connections", "300"),
            ("shared_buffers", "128MB"),
            ("wal_level", "minimal"),
            ("max_wal_senders", "0"),
            ("max_wal_size", "1GB"),
            ("checkpoint_timeout", "1h"),
            // A worker of autovacuum inside a template database would make cloning it wait.
            ("autovacuum", "off"),
        ]),
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(durability: Durability, name: &str) -> String {
        let all = settings(durability, Path::new("/srv/run"));
        all.into_iter().rfind(|(key, _)| *key == name).map(|(_, value)| value).unwrap()
    }

    #[test]
    fn only_a_throw_away_server_may_lose_a_commit() {
        for name in ["fsync", "synchronous_commit", "full_page_writes"] {
            assert_eq!(value(Durability::Durable, name), "on");
            assert_eq!(value(Durability::ThrowAway, name), "off");
        }
    }

    #[test]
    fn no_server_listens_on_the_network() {
        for durability in [Durability::Durable, Durability::ThrowAway] {
            assert_eq!(value(durability, "listen_addresses"), "");
        }
    }
}
