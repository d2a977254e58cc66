//! The PostgreSQL behind a server: one that is named, or one that this process starts.

use anyhow::Context;
use embedded_postgres::{EmbeddedPostgres, Options};
use std::fmt;
use std::path::PathBuf;

/// The database inside an embedded server.
const DATABASE: &str = "converge";

/// Which PostgreSQL to use.
#[derive(Clone, Debug)]
pub enum Database {
    /// One that runs already.
    Url(String),
    /// One of our own, on a folder that is made if it is missing. `throw_away`: the folder goes with the server.
    Embedded { data_dir: PathBuf, throw_away: bool },
}

/// Where the data is, fit to be shown: never a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    Server(String),
    Folder(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => write!(f, "PostgreSQL at {server}"),
            Self::Folder(folder) => write!(f, "{} (embedded PostgreSQL)", folder.display()),
        }
    }
}

/// A database that can be connected to.
pub struct Opened {
    pub url: String,
    pub place: Place,
    embedded: Option<EmbeddedPostgres>,
}

/// Starts the embedded server if there is to be one.
///
/// # Errors
/// When it cannot be started; the message says what to install or to mend.
pub async fn open(database: Database) -> anyhow::Result<Opened> {
    match database {
        Database::Url(url) => Ok(Opened { place: Place::Server(without_secrets(&url)), url, embedded: None }),
        Database::Embedded { data_dir, throw_away } => {
            let options = Options { remove_when_stopped: throw_away, ..Options::new(data_dir) };
            let server = EmbeddedPostgres::start(options).await.context("cannot start PostgreSQL")?;
            server.create_database(DATABASE).await.context("cannot create the database")?;
            Ok(Opened {
                url: server.url(DATABASE),
                place: Place::Folder(server.data_dir().to_owned()),
                embedded: Some(server),
            })
        }
    }
}

impl Opened {
    /// Stops the embedded server, if this process started it. What is committed stays.
    pub async fn close(self) {
        if let Some(server) = self.embedded
            && let Err(error) = server.stop().await
        {
            tracing::warn!(%error, "PostgreSQL did not stop cleanly");
        }
    }
}

/// Host and database of a URL, without user, password and parameters.
fn without_secrets(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_url_holds_no_secret() {
        let shown = without_secrets("postgres://ann:p@ss@db.example:5432/converge?password=x#y");
        assert_eq!(shown, "db.example:5432/converge");
        assert_eq!(without_secrets("not a url"), "not a url");
    }
}
