//! Starts, reuses and stops one server.
//!
//! **Ownership.** The process that starts a server holds an exclusive lock on `owner.lock` until it ends; the
//! kernel drops the lock at any death. So a second process can tell three cases apart:
//!
//! * lock taken: a live process owns the server. Wait until it is ready, use it, never stop it.
//! * lock free, server running: the owner has just died and the watchdog is about to stop the server. Using it
//!   now would mean losing it a moment later, so wait for its end first. Should it live on (somebody
//!   started it by hand, or the watchdog was killed too), use it and leave it alone.
//! * lock free, no server: ours to start. A `postmaster.pid` that stayed behind from a killed server is disowned
//!   only here, under the lock and after its process turned out to be no server.
//!
//! All of it is blocking file and process work of half a second, done on the runtime's blocking pool, and nothing
//! of it depends on the runtime later: a server may outlive the runtime that started it, as in test binaries.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, Executor, PgConnection};

use crate::directory::{Layout, give};
use crate::postmaster::{self, Postmaster, Status};
use crate::settings::settings;
use crate::url::socket_url;
use crate::watchdog::Watched;
use crate::{Binaries, Durability, EmbeddedError, ServerUser};

/// Crash recovery of a busy server replays up to `max_wal_size`; that fits well within this.
const READY_SECONDS_MAX: u64 = 120;
/// How long a server whose owner died is given to stop.
const ORPHAN_STOP_MAX: Duration = Duration::from_secs(15);
/// A fast shutdown writes one checkpoint.
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// What to start. Make one with [`Options::new`] and change what differs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where everything of this server lives; created when missing. See [`crate::default_data_dir`].
    pub data_dir: PathBuf,
    /// Whether commits must survive a crash.
    pub durability: Durability,
    /// Delete `data_dir` when the server has stopped, also if that is because this process is gone. For tests:
    /// the directory must not be used again, since its end and a new start could meet.
    pub remove_when_stopped: bool,
    /// The directory of the binaries, instead of searching.
    pub binaries: Option<PathBuf>,
    /// Further `-c name=value` settings; they win over ours.
    pub settings: Vec<(String, String)>,
}

impl Options {
    /// A durable server on `data_dir`.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), ..Self::default() }
    }

    /// A test server on `data_dir`: no fsync, and the directory goes with it.
    #[must_use]
    pub fn throw_away(data_dir: impl Into<PathBuf>) -> Self {
        Self { durability: Durability::ThrowAway, remove_when_stopped: true, ..Self::new(data_dir) }
    }
}

/// A running server. Dropping it stops the server without waiting; [`EmbeddedPostgres::stop`] waits.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    layout: Layout,
    socket_dir: PathBuf,
    port: u16,
    pid: i32,
    /// `None` when somebody else started the server.
    owned: Option<Owned>,
}

/// What the owner of a server holds. The order matters: fields drop from first to last, so the pipe closes (and
/// the watchdog acts) before the lock is free.
#[derive(Debug)]
struct Owned {
    child: Child,
    pipe: Option<ChildStdin>,
    durability: Durability,
    remove: bool,
    _lock: File,
}

impl EmbeddedPostgres {
    /// Starts a server on the directory, making one first if it is empty, or uses the one that already runs
    /// there. About half a second from nothing to ready.
    ///
    /// # Errors
    /// See [`EmbeddedError`]; each says what to do.
    pub async fn start(options: Options) -> Result<Self, EmbeddedError> {
        let data_dir = options.data_dir.clone();
        match tokio::task::spawn_blocking(move || start(&options)).await {
            Ok(result) => result,
            Err(join) => Err(EmbeddedError::io("start a server on", &data_dir)(std::io::Error::other(join))),
        }
    }

    /// A URL for one of its databases, for libpq and sqlx.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        socket_url(&self.socket_dir, self.port, database)
    }

    /// The directory given at start, absolute.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.layout.base
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether this value started the server and will stop it.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.owned.is_some()
    }

    /// Creates a database unless it exists. Safe to call from several processes at once.
    ///
    /// # Errors
    /// [`EmbeddedError::Database`].
    pub async fn create_database(&self, name: &str) -> Result<(), EmbeddedError> {
        let mut connection = PgConnection::connect(&self.url("postgres")).await?;
        let created = connection.execute(format!("CREATE DATABASE {}", quote(name)).as_str()).await;
        connection.close().await?;
        match created {
            Ok(_) => Ok(()),
            // 42P04: it is there. 23505: somebody creates it at this moment, and the loser of the race sees the
            // unique index of the catalogue before the check by name.
            Err(sqlx::Error::Database(error))
                if matches!(error.code().as_deref(), Some("42P04" | "23505")) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stops the server if this value started it, and waits for its end. Sessions are closed at once (fast
    /// shutdown), what is committed is on disk. A server of somebody else stays.
    ///
    /// # Errors
    /// [`EmbeddedError::Io`] when the process cannot be signalled or waited for.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        let Some(owned) = self.owned.take() else { return Ok(()) };
        let layout = self.layout.clone();
        match tokio::task::spawn_blocking(move || owned.stop(&layout)).await {
            Ok(result) => result,
            Err(join) => Err(EmbeddedError::io("stop", &self.layout.base)(std::io::Error::other(join))),
        }
    }
}

impl Owned {
    fn stop(mut self, layout: &Layout) -> Result<(), EmbeddedError> {
        let failed = || EmbeddedError::io("stop the server on", &layout.base);
        let signal =
            |child: &Child, signal: Signal| match i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // The child is not reaped before `try_wait` says so, so the number is still its own.
                Some(pid) => kill_process(pid, signal).map_err(std::io::Error::from),
                None => Ok(()),
            };
        let deadline = Instant::now() + STOP_MAX;
        // Nobody will open a throw-away server's data again, so it need not write its last checkpoint.
        let how = match self.durability {
            Durability::Durable => Signal::INT,
            Durability::ThrowAway => Signal::QUIT,
        };
        if self.child.try_wait().map_err(failed())?.is_none() {
            signal(&self.child, how).map_err(failed())?;
        }
        while self.child.try_wait().map_err(failed())?.is_none() {
            if Instant::now() > deadline {
                // Immediate shutdown: no checkpoint, the next start recovers. Never SIGKILL, which would leave
                // the other processes of the server behind.
                tracing::warn!(data_dir = %layout.base.display(), "the server takes too long to stop; stopping it at once");
                signal(&self.child, Signal::QUIT).map_err(failed())?;
                self.child.wait().map_err(failed())?;
                break;
            }
            std::thread::sleep(POLL);
        }
        // Tells the watchdog that there is nothing left to signal. It may be gone already.
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(b"stopped\n");
        }
        if self.remove {
            std::fs::remove_dir_all(&layout.base).map_err(EmbeddedError::io("remove", &layout.base))?;
        }
        Ok(())
    }
}

fn start(options: &Options) -> Result<EmbeddedPostgres, EmbeddedError> {
    let user = ServerUser::choose()?;
    let layout = Layout::at(&options.data_dir)?;
    layout.prepare(&user)?;
    let lock = layout.owner_file(&user)?;
    let lock_failed = || EmbeddedError::io("lock", &layout.base);
    let deadline = Instant::now() + Duration::from_secs(READY_SECONDS_MAX);
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(lock_failed()(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if let Some(reused) = running(&layout) {
            return Ok(reused);
        }
        if Instant::now() > deadline {
            return Err(not_ready(&layout));
        }
        std::thread::sleep(POLL);
    }
    let orphan_deadline = Instant::now() + ORPHAN_STOP_MAX;
    while Postmaster::read(&layout.data()).is_some_and(|postmaster| postmaster.alive()) {
        if Instant::now() > orphan_deadline {
            lock.unlock().map_err(lock_failed())?;
            return running(&layout).ok_or_else(|| not_ready(&layout));
        }
        std::thread::sleep(POLL);
    }
    launch(options, layout, &user, lock)
}

/// The server that runs on the directory, ready for use, as one of somebody else.
fn running(layout: &Layout) -> Option<EmbeddedPostgres> {
    let postmaster = Postmaster::read(&layout.data())?;
    (postmaster.status == Status::Ready && postmaster.alive() && postmaster.accepts()).then(|| {
        EmbeddedPostgres {
            layout: layout.clone(),
            socket_dir: postmaster.socket_dir,
            port: postmaster.port,
            pid: postmaster.pid,
            owned: None,
        }
    })
}

/// Starts a server; the caller holds the lock and has seen that none runs.
fn launch(
    options: &Options,
    layout: Layout,
    user: &ServerUser,
    lock: File,
) -> Result<EmbeddedPostgres, EmbeddedError> {
    let data = layout.data();
    let wanted = layout.version();
    let binaries = Binaries::find(options.binaries.as_deref(), wanted.map(|major| (major, data.as_path())))?;
    if wanted.is_none() {
        initialise(options, &layout, user, &binaries)?;
    }
    postmaster::disown(&data).map_err(EmbeddedError::io("rewrite postmaster.pid in", &data))?;
    remove_stale_socket_lock(&layout)?;

    let deadline = Instant::now() + Duration::from_secs(READY_SECONDS_MAX);
    let orphan_deadline = Instant::now() + ORPHAN_STOP_MAX;
    let (child, pipe) = loop {
        match attempt(options, &layout, user, &binaries, deadline) {
            // The main process was killed and one of its sessions still runs. It ends as soon as it looks up
            // from what it does; until then the server itself refuses to start beside it, and rightly.
            Err(EmbeddedError::StartFailed { tail, .. })
                if tail.contains("shared memory block") && Instant::now() < orphan_deadline =>
            {
                std::thread::sleep(POLL * 10);
            }
            other => break other?,
        }
    };
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    tracing::debug!(pid, data_dir = %layout.base.display(), major = binaries.major(), "embedded PostgreSQL is ready");
    let owned = Owned {
        child,
        pipe: Some(pipe),
        durability: options.durability,
        remove: options.remove_when_stopped,
        _lock: lock,
    };
    Ok(EmbeddedPostgres { socket_dir: layout.run(), port: 5432, pid, layout, owned: Some(owned) })
}

/// One start, until the server is ready or has ended. On every failure the pipe is dropped, so that the watchdog
/// stops what may still be running.
fn attempt(
    options: &Options,
    layout: &Layout,
    user: &ServerUser,
    binaries: &Binaries,
    deadline: Instant,
) -> Result<(Child, ChildStdin), EmbeddedError> {
    let data = layout.data();
    let postgres = binaries.postgres();
    let log_path = layout.log();
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path);
    let log = log.map_err(EmbeddedError::io("open", &log_path))?;
    give(&log_path, user)?;
    let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
    let ours =
        settings(options.durability, &layout.run()).into_iter().map(|(name, value)| (name.to_owned(), value));
    for (name, value) in ours.chain(options.settings.iter().cloned()) {
        arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    let watched = Watched {
        user,
        durability: options.durability,
        data: &data,
        remove: options.remove_when_stopped.then_some(layout.base.as_path()),
        log,
        postgres: &postgres,
        arguments,
    };
    let failed = || EmbeddedError::io("start", &postgres);
    let mut child = watched.spawn().map_err(failed())?;
    let pipe = child.stdin.take().ok_or_else(|| failed()(std::io::Error::other("no pipe")))?;
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    loop {
        // The id is compared, so that a file of an earlier server is never taken for this one's.
        if Postmaster::read(&data).is_some_and(|read| read.pid == pid && read.status == Status::Ready) {
            return Ok((child, pipe));
        }
        if let Some(status) = child.try_wait().map_err(failed())? {
            return Err(EmbeddedError::StartFailed {
                status: status.to_string(),
                log: log_path,
                tail: layout.log_tail(),
            });
        }
        if Instant::now() > deadline {
            return Err(not_ready(layout));
        }
        std::thread::sleep(POLL);
    }
}

/// The socket's own lock file names a process too, and trusts the number alone. The directory is this data
/// directory's and the data directory is ours by now, so a file in it is always one that was left behind.
fn remove_stale_socket_lock(layout: &Layout) -> Result<(), EmbeddedError> {
    let path = layout.run().join(".s.PGSQL.5432.lock");
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

/// Makes the data directory beside its final place and renames it: a program killed half way through `initdb`
/// leaves nothing that looks like a data directory.
fn initialise(
    options: &Options,
    layout: &Layout,
    user: &ServerUser,
    binaries: &Binaries,
) -> Result<(), EmbeddedError> {
    let unfinished = layout.base.join("data.unfinished");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(EmbeddedError::io("remove", &unfinished))?;
    }
    let mut command = user.command(&binaries.initdb());
    command
        .arg("-D")
        .arg(&unfinished)
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"])
        .current_dir(&layout.base)
        .stdin(Stdio::null());
    if options.durability == Durability::ThrowAway {
        command.arg("--no-sync");
    }
    let output = command.output().map_err(EmbeddedError::io("run", &binaries.initdb()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(EmbeddedError::InitFailed { output: text.chars().take(2000).collect() });
    }
    let data = layout.data();
    std::fs::rename(&unfinished, &data).map_err(EmbeddedError::io("rename to", &data))?;
    let base = File::open(&layout.base).and_then(|dir| dir.sync_all());
    base.map_err(EmbeddedError::io("flush", &layout.base))
}

fn not_ready(layout: &Layout) -> EmbeddedError {
    EmbeddedError::NotReady {
        data_dir: layout.base.clone(),
        seconds: READY_SECONDS_MAX,
        tail: layout.log_tail(),
    }
}

/// A name as an SQL identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
