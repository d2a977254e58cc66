//! Connection URLs for a server on a Unix socket: `postgres://postgres@localhost/name?host=/directory`.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The URL of one database. `host` as a parameter is the form that both libpq and sqlx take for a directory.
pub(crate) fn socket_url(socket_dir: &Path, port: u16, database: &str) -> String {
    let host = encode(socket_dir.as_os_str().as_bytes(), b"/");
    let port = if port == 5432 { String::new() } else { format!("&port={port}") };
    format!("postgres://postgres@localhost/{}?host={host}{port}", encode(database.as_bytes(), b""))
}

/// The same server, another database.
pub(crate) fn with_database(url: &str, database: &str) -> String {
    let (address, parameters) = url.split_once('?').map_or((url, None), |(a, p)| (a, Some(p)));
    let authority_end = address.find("://").map_or(0, |at| at + 3);
    let server = match address[authority_end..].find('/') {
        Some(slash) => &address[..authority_end + slash],
        None => address,
    };
    let parameters = parameters.map(|parameters| format!("?{parameters}")).unwrap_or_default();
    format!("{server}/{}{parameters}", encode(database.as_bytes(), b""))
}

fn encode(bytes: &[u8], also_plain: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || also_plain.contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use sqlx::postgres::PgConnectOptions;

    use super::*;

    #[test]
    fn sqlx_reads_back_the_socket_and_the_database() {
        let url = socket_url(Path::new("/srv/with space & more/run"), 5433, "my-data");
        let options = PgConnectOptions::from_str(&url).unwrap();
        assert_eq!(options.get_socket().unwrap().as_path(), Path::new("/srv/with space & more/run"));
        assert_eq!(options.get_port(), 5433);
        assert_eq!(options.get_database(), Some("my-data"));
        assert_eq!(options.get_username(), "postgres");
    }

    #[test]
    fn the_database_is_replaced_and_the_rest_kept() {
        assert_eq!(
            with_database("postgres://me:pw@db:6000/a?sslmode=require", "b"),
            "postgres://me:pw@db:6000/b?sslmode=require"
        );
        assert_eq!(with_database("postgres://me@db", "b"), "postgres://me@db/b");
    }
}
