//! A whole server, started and stopped as users do, with every command against it.

use crate::fake::{Ended, command};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Child;

const KIND: &str = "{type: kind, kind: vpc, kind_version: 1, reactions: [{name: work, trigger: specChange, emits: [status]}]}";
const VPC: &str = "{type: resource, kind: vpc, kind_version: 1, name: a/b, spec: {share: 1.10}}";

/// `converge dev` on a folder of its own.
struct Dev {
    child: Child,
    url: String,
}

impl Dev {
    async fn start(folder: &Path) -> Self {
        let folder = folder.to_str().unwrap();
        let any = "127.0.0.1:0";
        let mut dev = command("", &["dev", "--data-dir", folder, "--listen", any, "--broker-listen", any]);
        // Where the machine's PostgreSQL is found.
        dev.env("PATH", std::env::var_os("PATH").unwrap()).stdout(Stdio::null());
        let mut child = dev.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let url = loop {
            let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended: {said:?}"));
            if let Some(url) = line.trim().strip_prefix("API      ") {
                break url.strip_suffix("/graphql").unwrap().to_owned();
            }
            said.push(line);
        };
        // Read to its end, so that it never blocks on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, url }
    }

    async fn run(&self, args: &[&str], input: &str) -> Ended {
        let mut child = command(&self.url, args).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    async fn terminate(mut self) -> std::process::ExitStatus {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().await.unwrap()
    }
}

#[tokio::test]
async fn a_server_keeps_its_word_across_a_kill_and_stops_cleanly_when_asked() {
    // PostgreSQL's own user must be able to reach it, so it lies in the temporary directory itself.
    let folder = std::env::temp_dir().join(format!("converge-dev-{}", uuid::Uuid::now_v7().simple()));
    let mut dev = Dev::start(&folder).await;
    let documents = format!("{VPC}\n---\n{KIND}");
    let applied = dev.run(&["apply", "-f", "-"], &documents).await;
    assert_eq!(
        (applied.code, applied.stdout.as_str()),
        (0, "kind/vpc/v1 created\nvpc/a/b created\n"),
        "{}",
        applied.stderr
    );

    // Without a worker it cannot become Ready, and says so.
    let again = dev.run(&["apply", "-f", "-", "--wait", "--timeout", "1s"], &documents).await;
    assert_eq!((again.code, again.stdout.as_str()), (3, "kind/vpc/v1 unchanged\nvpc/a/b unchanged\n"));
    assert!(again.stderr.contains("vpc/a/b is Reconciling: "), "{}", again.stderr);
    for args in [
        &["describe", "vpc/a/b"][..],
        &["tree", "vpc/a/b"],
        &["get", "vpc/a/b", "-o", "yaml"],
        &["list", "vpc", "-o", "wide"],
    ] {
        let shown = dev.run(args, "").await;
        assert_eq!(shown.code, 0, "{args:?}: {}", shown.stderr);
        assert!(
            shown.stdout.contains("a/b") && shown.stdout.contains("Reconciling"),
            "{args:?}: {}",
            shown.stdout
        );
    }
    let refused =
        dev.run(&["apply", "-f", "-"], "{type: resource, kind: vpc, kind_version: 2, name: x}").await;
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{}", refused.stderr);

    dev.child.kill().await.unwrap();
    let dev = Dev::start(&folder).await;
    let deleted = dev.run(&["delete", "vpc/a/b", "--wait", "--timeout", "60s"], "").await;
    assert_eq!(
        (deleted.code, deleted.stdout.as_str()),
        (0, "vpc/a/b deleting\nvpc/a/b deleted\n"),
        "{}",
        deleted.stderr
    );
    assert_eq!(dev.run(&["get", "vpc/a/b"], "").await.code, 5);
    let events = dev.run(&["events", "-o", "json"], "").await;
    let positions: Vec<u64> = events
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["position"].as_u64().unwrap())
        .collect();
    assert!(
        positions.len() >= 4 && positions.iter().copied().eq(1..=positions.len() as u64),
        "{positions:?}"
    );

    assert!(dev.terminate().await.success());
    std::fs::remove_dir_all(&folder).unwrap();
}
