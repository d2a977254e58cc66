//! Reads `postmaster.pid`, the file in which a running server says who it is, where it listens and how far its
//! start has come. Its lines are, in order: process id, data directory, start time, port, socket directory,
//! listen address, shared memory key, status (the last since PostgreSQL 10).

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

/// How far a server has come, from line 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Starting, recovering, or a standby; not yet for us.
    Starting,
    /// Accepts connections.
    Ready,
    /// On its way out.
    Stopping,
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Postmaster {
    pub(crate) pid: i32,
    pub(crate) port: u16,
    pub(crate) socket_dir: PathBuf,
    pub(crate) status: Status,
}

impl Postmaster {
    /// Reads the file of a data directory; `None` when there is none or it is not complete yet.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(file(data)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let status = match lines.get(7).copied().unwrap_or_default() {
            "ready" => Status::Ready,
            "stopping" => Status::Stopping,
            _ => Status::Starting,
        };
        Some(Self {
            pid: lines.first()?.parse().ok().filter(|pid| *pid > 0)?,
            port: lines.get(3).and_then(|port| port.parse().ok()).unwrap_or(5432),
            socket_dir: PathBuf::from(lines.get(4).copied().unwrap_or_default()),
            status,
        })
    }

    /// Whether the process that wrote the file still runs. After SIGKILL the file stays, and its number may by
    /// now belong to anybody (in a container the same small numbers come back at every start), so where the
    /// system shows command lines the process must also look like a server.
    pub(crate) fn alive(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let exists = match test_kill_process(pid) {
            Ok(()) => true,
            Err(errno) => errno == rustix::io::Errno::PERM,
        };
        exists
            && match std::fs::read(format!("/proc/{}/cmdline", self.pid)) {
                Ok(line) => looks_like_a_server(&line),
                // No such file system (macOS): believe the number.
                Err(_) => !Path::new("/proc/self/cmdline").exists(),
            }
    }

    /// Whether the socket accepts connections, which a stale file cannot fake.
    pub(crate) fn accepts(&self) -> bool {
        UnixStream::connect(self.socket_dir.join(format!(".s.PGSQL.{}", self.port))).is_ok()
    }
}

/// Replaces the process number in a file that a killed server left behind by one that nobody can have.
///
/// A starting server refuses when the number in the file exists, and after a restart of a container it usually
/// does, as somebody else. Removing the file would help and is wrong: its seventh line names the shared memory by
/// which the server finds out whether *sessions* of the killed one still run and write. With the number replaced
/// that check stays. The caller has made sure that no server runs.
pub(crate) fn disown(data: &Path) -> std::io::Result<()> {
    let path = file(data);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    std::fs::write(&path, format!("{NOBODY}\n{rest}"))
}

/// Greater than any process number that a kernel gives out.
const NOBODY: i32 = i32::MAX;

/// The file of a data directory.
fn file(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

/// The command line of a server starts with the program's path; a zombie has an empty one.
fn looks_like_a_server(command_line: &[u8]) -> bool {
    let program = command_line.split(|byte| *byte == 0 || *byte == b' ').next().unwrap_or_default();
    let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [b"postgres".as_slice(), b"postmaster", b"postgres:"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_line_tells_whether_it_is_ready() {
        let text = "4711\n/srv/data\n1700000000\n5432\n/srv/run\n\n  1234  5\nready   \n";
        let read = Postmaster::parse(text).unwrap();
        assert_eq!(
            read,
            Postmaster {
                pid: 4711,
                port: 5432,
                socket_dir: PathBuf::from("/srv/run"),
                status: Status::Ready
            }
        );
        assert_eq!(Postmaster::parse(&text.replace("ready", "starting")).unwrap().status, Status::Starting);
        assert_eq!(Postmaster::parse(&text.replace("ready", "stopping")).unwrap().status, Status::Stopping);
        assert_eq!(Postmaster::parse("4711\n/srv/data\n").unwrap().status, Status::Starting);
    }

    #[test]
    fn a_half_written_file_is_not_believed() {
        assert_eq!(Postmaster::parse(""), None);
        assert_eq!(Postmaster::parse("-12\n"), None);
    }

    #[test]
    fn disowning_a_file_keeps_the_line_that_names_the_shared_memory() {
        let dir = tempfile::tempdir().unwrap();
        disown(dir.path()).unwrap();
        assert!(!file(dir.path()).exists());
        let text = "4711\n/srv/data\n1700000000\n5432\n/srv/run\n\n  1234  5\nready   \n";
        std::fs::write(file(dir.path()), text).unwrap();
        disown(dir.path()).unwrap();
        let left = std::fs::read_to_string(file(dir.path())).unwrap();
        assert_eq!(left, text.replace("4711", "2147483647"));
        assert!(!Postmaster::parse(&left).unwrap().alive());
    }

    #[test]
    fn a_number_that_belongs_to_another_program_by_now_is_not_a_server() {
        let myself = i32::try_from(std::process::id()).unwrap();
        let stale = Postmaster { pid: myself, port: 1, socket_dir: PathBuf::new(), status: Status::Ready };
        assert!(!stale.alive());
        assert!(looks_like_a_server(b"/usr/lib/postgresql/15/bin/postgres\0-D\0/srv\0"));
        assert!(!looks_like_a_server(b""));
    }
}
