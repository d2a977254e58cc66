//! `cargo xtask test`: one PostgreSQL server for all test binaries of a run, instead of half a second and 100 MB
//! for each of them.

use std::process::ExitCode;

use anyhow::Context;
use embedded_postgres::testkit::{SERVER_ENV, start_server};
use tokio::process::Command;

/// Starts the server unless the environment names one, runs `cargo test`, stops the server whatever the outcome.
///
/// # Errors
/// When no server can be started (the message says what to install) or cargo does not run.
pub async fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (server, url) = match std::env::var(SERVER_ENV) {
        Ok(url) => (None, url),
        Err(_) => {
            let server = start_server().await?;
            let url = server.url("postgres");
            eprintln!("xtask: test server {} in {}", server.pid(), server.data_dir().display());
            (Some(server), url)
        }
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--locked"]);
    if !names_packages(arguments) {
        command.arg("--workspace");
    }
    // Ctrl-C reaches cargo through the terminal's process group; we wait for it, so that the server still goes
    // in order. Should we be killed instead, the server's watchdog takes it down.
    let mut child = command.args(arguments).env(SERVER_ENV, &url).spawn().context("cannot run cargo")?;
    let status = tokio::select! {
        status = child.wait() => status,
        _ = tokio::signal::ctrl_c() => child.wait().await,
    };
    if let Some(server) = server {
        server.stop().await?;
    }
    Ok(if status.context("cannot wait for cargo")?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the arguments choose packages themselves, before any `--`.
fn names_packages(arguments: &[String]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| {
        argument.starts_with("-p") || argument.starts_with("--package") || argument == "--workspace"
    })
}

#[cfg(test)]
mod tests {
    use super::names_packages;

    fn names(line: &str) -> bool {
        names_packages(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn everything_is_tested_unless_a_package_is_named() {
        assert!(!names(""));
        assert!(!names("some_filter -- --nocapture -p"));
        assert!(names("-p converge-domain"));
        assert!(names("--package=xtask some_filter"));
        assert!(names("--workspace --exclude xtask"));
    }
}
