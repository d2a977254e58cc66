//! Finds PostgreSQL's server binaries. Distributions put `postgres` and `initdb` where `PATH` does not reach, so
//! looking them up is a list of places, not one call.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::EmbeddedError;
use crate::install_hint::install_command;

/// Environment variable that names the directory of the binaries and so ends the search.
pub const BINARIES_ENV: &str = "CONVERGE_PG_BIN";

/// The oldest major version the product supports.
pub(crate) const MAJOR_MIN: u32 = 14;

/// A directory that holds `postgres` and `initdb` of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    major: u32,
}

impl Binaries {
    /// The first usable binaries, in this order: `explicit`, else [`BINARIES_ENV`] (either one ends the search,
    /// so that a mistyped path is an error and not another server); `PATH`; what `pg_config --bindir` says; the
    /// highest version under the places of Debian, Red Hat and Homebrew.
    ///
    /// `wanted` is the major version of an existing data directory: only that one can open it.
    ///
    /// # Errors
    /// [`EmbeddedError::BinariesNotFound`] with an install command, [`EmbeddedError::BinariesUnusable`] for an
    /// explicit directory, [`EmbeddedError::VersionMismatch`] when only other versions are installed.
    pub fn find(explicit: Option<&Path>, wanted: Option<(u32, &Path)>) -> Result<Self, EmbeddedError> {
        let explicit =
            explicit.map(Path::to_owned).or_else(|| std::env::var_os(BINARIES_ENV).map(PathBuf::from));
        let found = match explicit {
            Some(dir) => vec![
                Self::probe(&dir).map_err(|why| EmbeddedError::BinariesUnusable { dir: dir.clone(), why })?,
            ],
            None => search(),
        };
        let usable: Vec<_> = found.into_iter().filter(|binaries| binaries.major >= MAJOR_MIN).collect();
        let Some(best) = usable.first() else {
            return Err(EmbeddedError::BinariesNotFound {
                searched: "CONVERGE_PG_BIN, PATH, pg_config, /usr/lib/postgresql, /usr/pgsql-*, Homebrew"
                    .to_owned(),
                install: install_command(),
            });
        };
        let Some((wanted, data_dir)) = wanted else { return Ok(best.clone()) };
        usable.iter().find(|binaries| binaries.major == wanted).cloned().ok_or_else(|| {
            let majors: Vec<String> = usable.iter().map(|binaries| binaries.major.to_string()).collect();
            EmbeddedError::VersionMismatch { data_dir: data_dir.to_owned(), wanted, found: majors.join(", ") }
        })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The major version, such as 15.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Whether the server can load the library `name` (`shared_preload_libraries`). Looks where packages put libraries,
    /// beside the directory of the binaries; a false "no" costs a server without it, a false "yes" one that does
    /// not start, so only a file counts.
    #[must_use]
    pub fn has_library(&self, name: &str) -> bool {
        let Some(root) = self.dir.canonicalize().ok().and_then(|dir| dir.parent().map(Path::to_owned)) else {
            return false;
        };
        ["lib", "lib/postgresql", "lib64", "lib64/pgsql"].into_iter().any(|folder| {
            ["so", "dylib"]
                .into_iter()
                .any(|suffix| root.join(folder).join(format!("{name}.{suffix}")).is_file())
        })
    }

    pub(crate) fn postgres(&self) -> PathBuf {
        self.dir.join("postgres")
    }

    pub(crate) fn initdb(&self) -> PathBuf {
        self.dir.join("initdb")
    }

    /// Asks the directory's `postgres` for its version. Both programs must be there: a client-only package has
    /// neither, and an `initdb` of another version would make a directory this server cannot open.
    fn probe(dir: &Path) -> Result<Self, String> {
        for program in ["postgres", "initdb"] {
            if !dir.join(program).is_file() {
                return Err(format!("there is no `{program}` in it"));
            }
        }
        let output = Command::new(dir.join("postgres"))
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`postgres --version` does not run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let major = major_version(&text).ok_or_else(|| format!("`postgres --version` prints {text:?}"))?;
        Ok(Self { dir: dir.to_owned(), major })
    }
}

/// Every usable directory, best first.
fn search() -> Vec<Binaries> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    // A `postgres` on PATH is usually a link into the real directory, and `initdb` is beside the target. It can
    // also be somebody's script that switches users or sets options; those come last, as the least predictable.
    let mut scripts: Vec<PathBuf> = Vec::new();
    for entry in std::env::var_os("PATH").iter().flat_map(std::env::split_paths) {
        let program = entry.join("postgres");
        let Ok(real) = program.canonicalize() else { continue };
        let Some(dir) = real.parent() else { continue };
        if is_script(&real) { scripts.push(dir.to_owned()) } else { dirs.push(dir.to_owned()) }
    }
    if let Ok(output) = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output() {
        dirs.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    for (parent, prefix) in [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql@"),
        ("/usr/local/opt", "postgresql@"),
        ("/home/linuxbrew/.linuxbrew/opt", "postgresql@"),
    ] {
        dirs.extend(versions_under(Path::new(parent), prefix));
    }
    dirs.append(&mut scripts);

    let mut found: Vec<Binaries> = Vec::new();
    for dir in dirs {
        if found.iter().any(|binaries| binaries.dir == dir) {
            continue;
        }
        found.extend(Binaries::probe(&dir).ok());
    }
    found
}

/// `parent/<prefix><number>/bin` for every number, highest first: version 9 comes after 15, which a plain sort
/// of names gets wrong.
fn versions_under(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, dir)| dir).collect()
}

fn is_script(program: &Path) -> bool {
    let mut start = [0_u8; 2];
    std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

/// `postgres (PostgreSQL) 15.18 (Debian …)` → 15; development versions say `18beta1`.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL)")?.1.trim_start();
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fake(dir: &Path, major: u32) {
        std::fs::create_dir_all(dir).unwrap();
        for program in ["postgres", "initdb"] {
            let path = dir.join(program);
            std::fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) {major}.2'\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn the_major_version_is_read_from_every_spelling() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major_version("something else\n"), None);
    }

    #[test]
    fn the_highest_version_comes_first_and_nine_is_lower_than_fifteen() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "14", "notes"] {
            std::fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        let names: Vec<_> = versions_under(root.path(), "");
        assert_eq!(names, ["15", "14", "9"].map(|version| root.path().join(version).join("bin")));
    }

    #[test]
    fn a_library_is_found_beside_the_binaries_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("bin"), 16);
        let binaries = Binaries::find(Some(&root.path().join("bin")), None).unwrap();
        assert!(!binaries.has_library("pg_stat_statements"));
        std::fs::create_dir(root.path().join("lib")).unwrap();
        std::fs::write(root.path().join("lib/pg_stat_statements.so"), "").unwrap();
        assert!(binaries.has_library("pg_stat_statements"));
    }

    #[test]
    fn an_explicit_directory_without_binaries_is_an_error_and_not_another_server() {
        let empty = tempfile::tempdir().unwrap();
        let error = Binaries::find(Some(empty.path()), None).unwrap_err();
        assert!(matches!(error, EmbeddedError::BinariesUnusable { .. }), "{error}");
    }

    #[test]
    fn too_old_binaries_lead_to_an_install_command() {
        let root = tempfile::tempdir().unwrap();
        fake(root.path(), 11);
        let error = Binaries::find(Some(root.path()), None).unwrap_err();
        assert!(matches!(error, EmbeddedError::BinariesNotFound { .. }), "{error}");
    }

    #[test]
    fn a_data_directory_is_opened_by_its_own_major_version_alone() {
        let root = tempfile::tempdir().unwrap();
        fake(root.path(), 16);
        let data = Path::new("/srv/data");
        let fits = Binaries::find(Some(root.path()), Some((16, data))).unwrap();
        assert_eq!(fits.major(), 16);
        let error = Binaries::find(Some(root.path()), Some((15, data))).unwrap_err();
        assert!(matches!(error, EmbeddedError::VersionMismatch { wanted: 15, .. }), "{error}");
    }
}
