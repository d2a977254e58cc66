//! One error enum for the crate. Every variant tells a person what to do next, because this is the first thing
//! a new user meets when the machine is not as expected.

use std::path::{Path, PathBuf};

/// Why the embedded server could not be started, used or stopped.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No usable binaries on this machine; `install` is a command to paste.
    #[error(
        "no PostgreSQL {minimum} or newer found (looked in: {searched}). Install it with:\n    {install}\n\
         or point CONVERGE_PG_BIN at the directory that holds `postgres` and `initdb`, \
         or set DATABASE_URL to use a server of your own",
        minimum = crate::binaries::MAJOR_MIN
    )]
    BinariesNotFound {
        /// The places that were tried, in order.
        searched: String,
        /// The install command for this system.
        install: String,
    },
    /// `CONVERGE_PG_BIN` (or [`crate::Options::binaries`]) names a directory without usable binaries.
    #[error("{dir} does not hold usable `postgres` and `initdb` programs: {why}", dir = dir.display())]
    BinariesUnusable {
        /// The directory named.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The data directory was made by another major version and no such binaries are installed.
    #[error(
        "{dir} was created by PostgreSQL {wanted}, and only {found} is installed; install {wanted}, \
         or move the directory away to start anew",
        dir = data_dir.display()
    )]
    VersionMismatch {
        /// The data directory.
        data_dir: PathBuf,
        /// The major version that made it.
        wanted: u32,
        /// The major versions found.
        found: String,
    },
    /// Running as root and no unprivileged user exists to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and none of SUDO_UID, `postgres` and `nobody` names a user to run it as"
    )]
    NoUnprivilegedUser,
    /// The server's user cannot reach the data directory.
    #[error(
        "the server runs as {user}, which may not enter {ancestor}; choose a data directory outside of it",
        ancestor = ancestor.display()
    )]
    NotTraversable {
        /// The first ancestor the user cannot enter.
        ancestor: PathBuf,
        /// The user.
        user: String,
    },
    /// The kernel limits the length of a socket's path.
    #[error(
        "the socket path {path} has {length} bytes and the limit is {limit}; choose a shorter data directory",
        path = path.display()
    )]
    SocketPathTooLong {
        /// The path that would be needed.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The greatest length allowed, in bytes.
        limit: usize,
    },
    /// `initdb` failed.
    #[error("initdb failed: {output}")]
    InitFailed {
        /// What it printed, shortened.
        output: String,
    },
    /// The server ended before it was ready.
    #[error("PostgreSQL ended while starting ({status}); the end of {log} says:\n{tail}", log = log.display())]
    StartFailed {
        /// Its exit status.
        status: String,
        /// The log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The server was not ready in time.
    #[error(
        "PostgreSQL on {dir} was not ready after {seconds} s; the end of its log says:\n{tail}",
        dir = data_dir.display()
    )]
    NotReady {
        /// The data directory.
        data_dir: PathBuf,
        /// How long it was waited for.
        seconds: u64,
        /// The log's last lines.
        tail: String,
    },
    /// A file, directory or process operation failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The verb.
        action: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A statement on the running server failed.
    #[error("the embedded server answered with an error: {0}")]
    Database(#[from] sqlx::Error),
}

impl EmbeddedError {
    /// For `map_err`: keeps the verb and the path beside the system's answer.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
