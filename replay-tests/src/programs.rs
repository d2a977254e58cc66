//! Finding the programs under test.
//!
//! Cargo tells a test where the programs of its *own* package are, and builds them; these belong to other packages. They
//! lie in the directory above the test executable's. `make test` builds every program of the workspace first; for a bare
//! `cargo test -p replay-tests` on a fresh checkout they are built here, once per process, when they are missing. What is
//! there is taken as it is: after a change of the product run `cargo build --workspace --bins` before a bare run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The programs.
#[derive(Debug)]
pub struct Programs {
    pub converge: PathBuf,
    pub landing_zone: PathBuf,
}

/// The programs of this build, present.
pub fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let test = std::env::current_exe().expect("a running test has a path");
        let profile = test.parent().and_then(Path::parent).expect("<profile>/deps/<test>");
        let programs =
            Programs { converge: profile.join("converge"), landing_zone: profile.join("landing-zone") };
        if !programs.converge.exists() || !programs.landing_zone.exists() {
            build(profile);
        }
        programs
    })
}

fn build(profile: &Path) {
    let name = profile.file_name().and_then(|name| name.to_str()).expect("a profile's directory");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--locked", "-p", "converge", "-p", "landing-zone"])
        .args(["--profile", if name == "debug" { "dev" } else { name }])
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the programs under test do not build");
}
