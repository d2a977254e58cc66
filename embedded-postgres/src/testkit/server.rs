//! The server that the tests share.

use std::path::{Path, PathBuf};

use tokio::sync::OnceCell;

use crate::directory::check_traversable;
use crate::{EmbeddedError, EmbeddedPostgres, Options, ServerUser};

/// Names the run's server by the URL of one of its databases. Its data is thrown away by whoever set it.
pub const SERVER_ENV: &str = "CONVERGE_TEST_DATABASE_URL";

/// Starts a throw-away server below the temporary directory. It stops, and its files go, when the value is
/// dropped or this process ends.
///
/// # Errors
/// See [`EmbeddedError`].
pub async fn start_server() -> Result<EmbeddedPostgres, EmbeddedError> {
    let user = ServerUser::choose()?;
    // TMPDIR may be a private directory of root, or so deep that the socket's path does not fit.
    let parents = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    let usable =
        |parent: &&PathBuf| parent.as_os_str().len() < 60 && check_traversable(parent, &user).is_ok();
    let parent = parents.iter().find(usable).map_or(Path::new("/tmp"), PathBuf::as_path);
    let name = format!("converge-test-{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    EmbeddedPostgres::start(Options::throw_away(parent.join(name))).await
}

/// The URL of a maintenance database on the shared server, which is started on the first call.
///
/// # Panics
/// When no server can be started; the message says what to install.
pub(crate) async fn shared_server() -> &'static str {
    // Never dropped: at the end of the process the kernel closes the watchdog's pipe and the server goes. The
    // value depends on no runtime, so the tests' short-lived runtimes can share it.
    static SHARED: OnceCell<(Option<EmbeddedPostgres>, String)> = OnceCell::const_new();
    let (_, url) = SHARED
        .get_or_init(|| async {
            if let Ok(url) = std::env::var(SERVER_ENV) {
                return (None, url);
            }
            match start_server().await {
                Ok(server) => {
                    let url = server.url("postgres");
                    (Some(server), url)
                }
                Err(error) => panic!("no test database server: {error}"),
            }
        })
        .await;
    url
}
