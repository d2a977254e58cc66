//! Lays out the directory of one server and hands it to the user the server runs as.
//!
//! ```text
//! <data_dir>/            mode 0700, the server's user
//!   data/                PostgreSQL's own data directory
//!   run/.s.PGSQL.5432    the socket; only the owner of <data_dir> and root get this far
//!   server.log           what the server prints
//!   owner.lock           locked by the process that started the server, for as long as it lives
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{EmbeddedError, ServerUser};

/// `sun_path` has 108 bytes on Linux and 104 on the BSDs and macOS, the closing zero byte included.
pub(crate) const SOCKET_PATH_BYTES_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The log is set aside when it is longer than this at start, so that two of them are kept at most.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// Where a data directory called `name` belongs when nobody said otherwise: below the user's own data home, or,
/// for root, below `/var/lib`, since the server's user may not enter root's home.
#[must_use]
pub fn default_data_dir(name: &str) -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return Path::new("/var/lib/converge").join(name);
    }
    let home = || std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
        .unwrap_or_else(|| home().join(".local/share"))
        .join("converge")
        .join(name)
}

/// The paths of one server.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) base: PathBuf,
}

impl Layout {
    /// Resolves `base` and refuses it when the socket's path would not fit, before anything is created.
    pub(crate) fn at(base: &Path) -> Result<Self, EmbeddedError> {
        let base = std::path::absolute(base).map_err(EmbeddedError::io("resolve", base))?;
        let layout = Self { base };
        let path = layout.run().join(".s.PGSQL.5432");
        let length = path.as_os_str().as_bytes().len();
        // The server also creates `<socket>.lock`, but that is an ordinary file: the limit is the socket's own.
        if length > SOCKET_PATH_BYTES_MAX {
            return Err(EmbeddedError::SocketPathTooLong { path, length, limit: SOCKET_PATH_BYTES_MAX });
        }
        Ok(layout)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.base.join("data")
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.base.join("run")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.base.join("server.log")
    }

    /// Creates what is missing. Missing ancestors are created open to all, as `mkdir -p` would; existing ones
    /// are left alone and only checked: opening somebody's home is not this program's to decide.
    pub(crate) fn prepare(&self, user: &ServerUser) -> Result<(), EmbeddedError> {
        if let Some(parent) = self.base.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(parent)
                .map_err(EmbeddedError::io("create", parent))?;
            check_traversable(parent, user)?;
        }
        for dir in [&self.base, &self.run()] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(EmbeddedError::io("create", dir))?;
            give(dir, user)?;
        }
        if std::fs::metadata(self.log()).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
            let previous = self.base.join("server.log.1");
            std::fs::rename(self.log(), &previous).map_err(EmbeddedError::io("rename to", &previous))?;
        }
        Ok(())
    }

    /// The file whose lock names the owner. Whoever may start the server may open it, so it belongs to the
    /// server's user even when root made it.
    pub(crate) fn owner_file(&self, user: &ServerUser) -> Result<File, EmbeddedError> {
        let path = self.base.join("owner.lock");
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(EmbeddedError::io("open", &path))?;
        give(&path, user)?;
        Ok(file)
    }

    /// The major version that made the data directory, if there is one.
    pub(crate) fn version(&self) -> Option<u32> {
        std::fs::read_to_string(self.data().join("PG_VERSION")).ok()?.trim().parse().ok()
    }

    /// The last lines of the log, for an error message.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&log[log.len().saturating_sub(4096)..]).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

/// Gives a path to the server's user, if that is somebody else and it is not his already.
pub(crate) fn give(path: &Path, user: &ServerUser) -> Result<(), EmbeddedError> {
    let Some((uid, gid)) = user.ids() else { return Ok(()) };
    let metadata = path.metadata().map_err(EmbeddedError::io("inspect", path))?;
    if metadata.uid() == uid {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(uid), Some(gid))
        .map_err(EmbeddedError::io("change the owner of", path))
}

/// Whether `user` can enter every directory down to `dir`. The answer matters only when the user is not the one
/// who runs this program: its own permissions the kernel reports well enough.
pub(crate) fn check_traversable(dir: &Path, user: &ServerUser) -> Result<(), EmbeddedError> {
    let Some((uid, gid)) = user.ids() else { return Ok(()) };
    let real = dir.canonicalize().map_err(EmbeddedError::io("resolve", dir))?;
    let mut ancestors: Vec<&Path> = real.ancestors().collect();
    ancestors.reverse();
    for ancestor in ancestors {
        let metadata = ancestor.metadata().map_err(EmbeddedError::io("inspect", ancestor))?;
        let mode = metadata.permissions().mode();
        // The classes exclude each other: an owner without x is refused even where others have it.
        let enter = match (metadata.uid() == uid, metadata.gid() == gid) {
            (true, _) => mode & 0o100,
            (false, true) => mode & 0o010,
            (false, false) => mode & 0o001,
        };
        if enter == 0 {
            return Err(EmbeddedError::NotTraversable {
                ancestor: ancestor.to_owned(),
                user: user.to_string(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_whose_socket_path_is_too_long_is_refused_before_anything_is_made() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("x".repeat(120));
        let error = Layout::at(&base).unwrap_err();
        assert!(matches!(error, EmbeddedError::SocketPathTooLong { .. }), "{error}");
        assert!(!base.exists());
    }

    #[test]
    fn the_longest_path_that_fits_is_accepted() {
        let fixed = "/".len() + "/run/.s.PGSQL.5432".len();
        let fits = PathBuf::from(format!("/{}", "x".repeat(SOCKET_PATH_BYTES_MAX - fixed)));
        assert!(Layout::at(&fits).is_ok());
        let over = PathBuf::from(format!("/{}", "x".repeat(SOCKET_PATH_BYTES_MAX - fixed + 1)));
        assert!(Layout::at(&over).is_err());
    }

    #[test]
    fn a_directory_that_the_servers_user_may_not_enter_is_named() {
        let root = tempfile::tempdir().unwrap();
        let closed = root.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
        let stranger = ServerUser::Other { uid: 54_321, gid: 54_321, name: "stranger".to_owned() };
        match check_traversable(&closed, &stranger).unwrap_err() {
            EmbeddedError::NotTraversable { ancestor, user } => {
                assert_eq!(ancestor, closed.canonicalize().unwrap());
                assert_eq!(user, "stranger");
            }
            other => panic!("{other}"),
        }
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o711)).unwrap();
        check_traversable(&closed, &stranger).unwrap();
    }
}
