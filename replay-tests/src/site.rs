//! One installation for one test: a database, ports that stay, servers and workers that come and go.

use crate::api::Api;
use crate::history::History;
use crate::ledger::Ledger;
use crate::process::Process;
use crate::programs::programs;
use converge_event_store::{PgOptions, PgStore, Store};
use embedded_postgres::testkit::TestDatabase;
use embedded_postgres::{EmbeddedPostgres, Options};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sqlx::PgPool;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use uuid::Uuid;

/// How long a test waits for what must happen; never how long anything takes.
const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(20);

/// Where the data is.
enum Database {
    /// On the test run's PostgreSQL, which outlives every server of the test.
    Shared(TestDatabase),
    /// On an embedded PostgreSQL of the server's own, which goes with it.
    Embedded(PathBuf),
}

/// The addresses of one server process.
#[derive(Debug)]
pub struct Addresses {
    pub http: String,
    pub broker: String,
    _guard: TcpListener,
}

/// How the pretended cloud behaves, and how many tasks the worker takes at once.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    pub latency_ms: u64,
    pub fault_rate: f64,
    pub parallel: usize,
}

impl Default for Knobs {
    fn default() -> Self {
        Self { latency_ms: 0, fault_rate: 0.0, parallel: 32 }
    }
}

/// See the module.
pub struct Site {
    database: Database,
    /// Where the first server listens, after every restart.
    pub addresses: Addresses,
    pub api: Api,
    pub ledger: Ledger,
    scratch: TempDir,
}

impl Site {
    /// PostgreSQL outlives the servers.
    pub async fn on_shared_postgres() -> Self {
        let database = TestDatabase::create().await;
        Self::new(|_| Database::Shared(database))
    }

    /// Each server starts PostgreSQL itself, on the same folder, and takes it along.
    pub fn on_embedded_postgres() -> Self {
        Self::new(|scratch| Database::Embedded(scratch.join("data")))
    }

    fn new(database: impl FnOnce(&Path) -> Database) -> Self {
        // PostgreSQL does not run as root, and must get through to its folder.
        let open = std::fs::Permissions::from_mode(0o755);
        let scratch = tempfile::Builder::new().prefix("converge-site-").permissions(open).tempdir().unwrap();
        let addresses = free_addresses();
        Self {
            database: database(scratch.path()),
            api: Api::new(&addresses.http),
            ledger: Ledger::at(scratch.path().join("ledger")),
            addresses,
            scratch,
        }
    }

    /// Starts a server with every role at the site's addresses; returns when it says it is ready.
    pub async fn serve(&self) -> Process {
        let server = self.serve_as("all", &self.addresses);
        self.ready(server, &self.api).await
    }

    /// Starts a server process in a role, without waiting.
    pub fn serve_as(&self, role: &str, addresses: &Addresses) -> Process {
        let mut command = Command::new(&programs().converge);
        command.args(["serve", "--role", role, "--listen", host_port(&addresses.http)]);
        command.args(["--broker-listen", host_port(&addresses.broker)]).env_remove("DATABASE_URL");
        match &self.database {
            Database::Shared(database) => command.env("DATABASE_URL", database.url()),
            Database::Embedded(folder) => command.arg("--data-dir").arg(folder),
        };
        Process::start(&mut command, self.log("server"))
    }

    /// Waits until a started server is ready.
    pub async fn ready(&self, mut server: Process, api: &Api) -> Process {
        let deadline = Instant::now() + PATIENCE;
        while !api.is_ready().await {
            assert!(server.runs(), "the server has ended:\n{}", server.tail());
            assert!(Instant::now() < deadline, "the server does not get ready:\n{}", server.tail());
            tokio::time::sleep(POLL).await;
        }
        assert!(server.runs(), "somebody else answers at this server's address:\n{}", server.tail());
        server
    }

    /// Starts the example's worker against the site's broker.
    pub fn work(&self, knobs: Knobs) -> Process {
        self.work_at(&self.addresses.broker, knobs)
    }

    /// Starts the example's worker against a broker.
    pub fn work_at(&self, broker: &str, knobs: Knobs) -> Process {
        let mut command = Command::new(&programs().landing_zone);
        command
            .env("BROKER_ADDR", broker)
            .env("WORKER_MAX_PARALLEL", knobs.parallel.to_string())
            .env("DEMO_LATENCY_MS", knobs.latency_ms.to_string())
            .env("DEMO_FAULT_RATE", knobs.fault_rate.to_string())
            .env("DEMO_LEDGER", self.ledger.path());
        Process::start(&mut command, self.log("worker"))
    }

    /// Runs the command line against the site's server.
    pub fn converge(&self, arguments: &[&str]) -> Output {
        self.command_line(arguments).output().expect("the command line runs")
    }

    /// Runs the command line in the background; the second value gives what it prints, line by line, and waits for more.
    pub fn follow_words(&self, arguments: &[&str]) -> (Process, impl Iterator<Item = String> + Send + use<>) {
        let mut command = self.command_line(arguments);
        let (process, lines) = Process::start_answering(&mut command, self.log("follow"));
        (process, lines.map_while(Result::ok))
    }

    fn command_line(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&programs().converge);
        command.args(arguments).env("CONVERGE_SERVER", &self.addresses.http);
        command
    }

    /// The store, read beside the servers. An embedded one must be running.
    pub async fn store(&self) -> PgStore {
        PgStore::connect(&self.url().await, PgOptions::default()).await.expect("the store opens")
    }

    /// A few connections to the database itself.
    pub async fn pool(&self) -> PgPool {
        PgPool::connect(&self.url().await).await.expect("the database answers")
    }

    async fn url(&self) -> String {
        match &self.database {
            Database::Shared(database) => database.url().to_owned(),
            Database::Embedded(_) => self.beside().await.url("converge"),
        }
    }

    /// The embedded PostgreSQL that a server of the site runs; ours to use, not to stop.
    async fn beside(&self) -> EmbeddedPostgres {
        let Database::Embedded(folder) = &self.database else { panic!("this site's PostgreSQL is shared") };
        let postgres = EmbeddedPostgres::start(Options::new(folder)).await.expect("it can be joined");
        assert!(!postgres.is_owner(), "the server's PostgreSQL does not run");
        postgres
    }

    /// SIGKILL for server and PostgreSQL at once: what a power cut does, but for the kernel's caches.
    pub async fn cut_power(&self, server: Process) {
        let postgres = self.beside().await.pid();
        server.kill();
        kill_process(Pid::from_raw(postgres).unwrap(), Signal::KILL).expect("PostgreSQL ran");
    }

    /// Waits until `probe` gives something. On the way it may look at the log, which is read on.
    pub async fn until<T>(
        &self,
        what: &str,
        store: &dyn Store,
        mut probe: impl AsyncFnMut(&History) -> Option<T>,
    ) -> (T, History) {
        let mut history = History::default();
        let deadline = Instant::now() + PATIENCE;
        loop {
            history.read_on(store).await;
            if let Some(found) = probe(&history).await {
                return (found, history);
            }
            if Instant::now() > deadline {
                panic!("not in time: {what}\n{}\n{}", history.tail(40), self.tails());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the API calls the resource Ready.
    pub async fn until_ready(&self, kind: &str, name: &str) {
        self.until_state(kind, name, "Ready", |state| state.is_some_and(|(phase, _)| phase == "Ready")).await;
    }

    /// Waits until the API knows no such resource.
    pub async fn until_gone(&self, kind: &str, name: &str) {
        self.until_state(kind, name, "gone", |state| state.is_none()).await;
    }

    /// Waits until the API's `(phase, why)` of a resource is as wanted; answers it.
    pub async fn until_state(
        &self,
        kind: &str,
        name: &str,
        wanted: &str,
        is_wanted: impl Fn(Option<&(String, String)>) -> bool,
    ) -> Option<(String, String)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let state = self.api.state(kind, name).await;
            if is_wanted(state.as_ref()) {
                return state;
            }
            if Instant::now() > deadline {
                panic!("{kind}/{name} is not {wanted} in time, but {state:?}\n{}", self.tails());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Applies the example's kinds.
    pub async fn apply_kinds(&self) {
        self.api.apply(&kinds()).await;
    }

    fn log(&self, name: &str) -> PathBuf {
        self.scratch.path().join(format!("{name}.log"))
    }

    fn tails(&self) -> String {
        let tail = |name: &str| {
            let text = std::fs::read_to_string(self.log(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {name}\n{}", lines[lines.len().saturating_sub(25)..].join("\n"))
        };
        format!("{}\n{}", tail("server"), tail("worker"))
    }
}

/// The example's five kinds.
pub fn kinds() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/landing-zone/kinds");
    documents(&folder)
}

/// Every JSON document of a folder whose name says that it is a kind.
pub fn documents(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().ends_with(".kind.json")).collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).expect("JSON")).collect()
}

/// Two ports to come back to, ours until the value is dropped, also while no server listens: they go with a third, on which
/// we listen ourselves, and whoever does not get that one keeps off all three. They lie below the range from which
/// systems take the ports of outgoing connections, so that none of those sits on them while a server is down.
pub fn free_addresses() -> Addresses {
    let bind = |port: u16| TcpListener::bind(("127.0.0.1", port));
    loop {
        let first = 20_000 + 3 * (Uuid::new_v4().as_u128() % 4_000) as u16;
        let Ok(guard) = bind(first) else { continue };
        let (http, broker) = (first + 1, first + 2);
        if bind(http).is_ok() && bind(broker).is_ok() {
            let url = |port| format!("http://127.0.0.1:{port}");
            return Addresses { http: url(http), broker: url(broker), _guard: guard };
        }
    }
}

fn host_port(url: &str) -> &str {
    url.trim_start_matches("http://")
}
