//! `converge migrate`, on a PostgreSQL of its own.

use crate::fake::command;

#[tokio::test]
async fn migrating_twice_changes_nothing_and_an_unreachable_database_is_1() {
    // PostgreSQL's own user must be able to reach it, so it lies in the temporary directory itself.
    let folder = std::env::temp_dir().join(format!("converge-migrate-{}", uuid::Uuid::now_v7().simple()));
    let args = ["migrate", "--data-dir", folder.to_str().unwrap()];
    for _ in 0..2 {
        let mut migrate = command("", &args);
        // Where the machine's PostgreSQL is found.
        migrate.env("PATH", std::env::var_os("PATH").unwrap());
        let output = migrate.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"the schema is up to date\n");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let refused = ["migrate", "--database-url", "postgres://ann:secret@127.0.0.1:1/none"];
    let output = command("", &refused).output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot connect to the database") && !stderr.contains("secret"), "{stderr}");
}
