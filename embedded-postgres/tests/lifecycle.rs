//! The life of an embedded server: started, used by several, killed at every level, and gone at the end.
//!
//! Killing "the program" needs a program to kill, so some tests run this very test binary again, filtered to one
//! ignored helper test that starts a server and waits.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use embedded_postgres::{EmbeddedError, EmbeddedPostgres, Options};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sqlx::{Connection, Executor, PgConnection, Row};

const PATIENCE: Duration = Duration::from_secs(60);
const HELPER_DIR: &str = "EMBEDDED_POSTGRES_TEST_DIR";

/// A directory directly below /tmp: the server's user may enter it when the tests run as root.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        Self(
            Path::new("/tmp")
                .join(format!("converge-life-{}", &uuid::Uuid::new_v4().simple().to_string()[..12])),
        )
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn exists(pid: i32) -> bool {
    // A zombie still has a number; nobody runs under it.
    let zombie = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'));
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() && !zombie
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn setting(server: &EmbeddedPostgres, name: &str) -> String {
    let mut connection = PgConnection::connect(&server.url("postgres")).await.unwrap();
    let row = sqlx::query(&format!("SHOW {name}")).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    row.get(0)
}

async fn count_notes(server: &EmbeddedPostgres) -> i64 {
    let mut connection = PgConnection::connect(&server.url("app")).await.unwrap();
    let row = sqlx::query("SELECT count(*) FROM note").fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    row.get(0)
}

async fn write_note(server: &EmbeddedPostgres) {
    server.create_database("app").await.unwrap();
    let mut connection = PgConnection::connect(&server.url("app")).await.unwrap();
    connection
        .execute("CREATE TABLE IF NOT EXISTS note (id int); INSERT INTO note VALUES (1)")
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// Runs the helper below in a process of its own and waits until its server is ready.
fn spawn_owner(dir: &Path) -> (std::process::Child, i32) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "helper_that_owns_a_server", "--nocapture"])
        .env(HELPER_DIR, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if let Some((_, pid)) = line.unwrap().split_once("server pid ") {
            return (child, pid.trim().parse().unwrap());
        }
    }
    child.wait().unwrap();
    panic!("the helper started no server");
}

#[tokio::test]
#[ignore = "a helper process for the other tests"]
async fn helper_that_owns_a_server() {
    let Some(dir) = std::env::var_os(HELPER_DIR) else { return };
    let server = EmbeddedPostgres::start(Options::new(dir)).await.unwrap();
    write_note(&server).await;
    println!("server pid {}", server.pid());
    // Ends when the parent closes the pipe or kills this process.
    let _ = std::io::stdin().read(&mut [0]);
}

#[tokio::test]
async fn stop_leaves_nothing_running_and_the_data_is_there_at_the_next_start() {
    let dir = Dir::new();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert!(server.is_owner());
    write_note(&server).await;
    let pid = server.pid();
    server.stop().await.unwrap();
    assert!(!exists(pid));
    assert!(!dir.0.join("data/postmaster.pid").exists());

    let again = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert_eq!(count_notes(&again).await, 1);
    again.stop().await.unwrap();
}

#[tokio::test]
async fn dropping_the_value_stops_the_server_too() {
    let dir = Dir::new();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    let pid = server.pid();
    drop(server);
    wait_until("the dropped server has stopped", || !exists(pid));
}

#[tokio::test]
async fn a_durable_server_flushes_and_listens_on_no_address() {
    let dir = Dir::new();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert_eq!(setting(&server, "fsync").await, "on");
    assert_eq!(setting(&server, "synchronous_commit").await, "on");
    assert_eq!(setting(&server, "full_page_writes").await, "on");
    assert_eq!(setting(&server, "listen_addresses").await, "");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_running_server_is_reused_and_its_user_does_not_stop_it() {
    let dir = Dir::new();
    let owner = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    let guest = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert_eq!(guest.pid(), owner.pid());
    assert!(!guest.is_owner());
    write_note(&guest).await;
    guest.stop().await.unwrap();
    assert!(exists(owner.pid()));
    assert_eq!(count_notes(&owner).await, 1);
    owner.stop().await.unwrap();
}

#[tokio::test]
async fn two_starts_at_once_give_one_server() {
    let dir = Dir::new();
    let (one, two) = tokio::join!(
        EmbeddedPostgres::start(Options::new(&dir.0)),
        EmbeddedPostgres::start(Options::new(&dir.0))
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.pid(), two.pid());
    assert_ne!(one.is_owner(), two.is_owner());
    let (owner, guest) = if one.is_owner() { (one, two) } else { (two, one) };
    guest.stop().await.unwrap();
    owner.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_killed_with_sigkill_recovers_what_was_committed() {
    let dir = Dir::new();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    write_note(&server).await;
    let pid = server.pid();
    kill(pid);
    server.stop().await.unwrap();
    assert!(dir.0.join("data/postmaster.pid").exists(), "a killed server leaves its file behind");

    let again = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert_ne!(again.pid(), pid);
    assert_eq!(count_notes(&again).await, 1);
    again.stop().await.unwrap();
}

#[tokio::test]
async fn the_server_does_not_outlive_a_program_killed_with_sigkill() {
    let dir = Dir::new();
    let (mut program, server_pid) = spawn_owner(&dir.0);
    assert!(exists(server_pid));
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until("the watchdog has stopped the server", || !exists(server_pid));
    assert!(!dir.0.join("data/postmaster.pid").exists(), "it was a clean stop");
}

#[tokio::test]
async fn a_start_right_after_the_program_was_killed_gets_a_server_that_stays() {
    let dir = Dir::new();
    let (mut program, server_pid) = spawn_owner(&dir.0);
    program.kill().unwrap();
    program.wait().unwrap();
    // At once: the old server may well be up still, and must not be taken for one to reuse.
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert!(server.is_owner());
    assert_ne!(server.pid(), server_pid);
    assert_eq!(count_notes(&server).await, 1);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_program_and_its_server_killed_together_leave_a_directory_that_starts() {
    let dir = Dir::new();
    let (mut program, server_pid) = spawn_owner(&dir.0);
    kill(server_pid);
    program.kill().unwrap();
    program.wait().unwrap();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert_eq!(count_notes(&server).await, 1);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn an_initialisation_killed_half_way_is_begun_anew() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.0.join("data.unfinished/base")).unwrap();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    assert!(!dir.0.join("data.unfinished").exists());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_directory_of_another_version_is_refused_and_left_as_it_is() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.0.join("data")).unwrap();
    std::fs::write(dir.0.join("data/PG_VERSION"), "9\n").unwrap();
    let error = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap_err();
    assert!(matches!(error, EmbeddedError::VersionMismatch { wanted: 9, .. }), "{error}");
    assert_eq!(std::fs::read_to_string(dir.0.join("data/PG_VERSION")).unwrap(), "9\n");
}

#[tokio::test]
async fn a_setting_that_the_server_refuses_is_reported_with_the_servers_own_words() {
    let dir = Dir::new();
    let mut options = Options::new(&dir.0);
    options.settings.push(("no_such_setting".to_owned(), "1".to_owned()));
    let error = EmbeddedPostgres::start(options).await.unwrap_err();
    assert!(matches!(error, EmbeddedError::StartFailed { .. }), "{error}");
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[tokio::test]
async fn creating_a_database_twice_changes_nothing() {
    let dir = Dir::new();
    let server = EmbeddedPostgres::start(Options::new(&dir.0)).await.unwrap();
    let (one, two) =
        tokio::join!(server.create_database("it's \"odd\""), server.create_database("it's \"odd\""));
    one.unwrap();
    two.unwrap();
    PgConnection::connect(&server.url("it's \"odd\"")).await.unwrap().close().await.unwrap();
    server.stop().await.unwrap();
}
