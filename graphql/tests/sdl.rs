//! The committed schema is the one the code has: clients generate from it, reviewers read its diff.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

use std::path::Path;

/// With `CONVERGE_BLESS=1` the file is rewritten instead.
#[test]
fn the_committed_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.graphql");
    let sdl = converge_graphql::sdl();
    if std::env::var_os("CONVERGE_BLESS").is_some() {
        std::fs::write(&path, &sdl).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == sdl,
        "graphql/schema.graphql is not what the code says; run the test again with CONVERGE_BLESS=1"
    );
}
