//! Ties the server's life to ours.
//!
//! The obvious tool on Linux is a parent-death signal. It is not used, for four reasons: it fires when the
//! *thread* that started the server ends, and async runtimes end threads; setting it needs code in the child
//! between fork and exec, hence `unsafe`, or a second run of our own binary, which the server's user may not be
//! able to read (a clone below `/root`) and which test binaries cannot offer; it can be lost when the user is
//! switched; and only Linux has it. A pipe has none of these faults: its writing end closes when the process
//! ends, whatever ended it. A shell is always there, since `initdb` itself needs one.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{Durability, ServerUser};

const SCRIPT: &str = include_str!("watchdog.sh");

/// How the server is to be started.
pub(crate) struct Watched<'a> {
    pub(crate) user: &'a ServerUser,
    pub(crate) durability: Durability,
    pub(crate) data: &'a Path,
    /// Deleted when we are gone and the server has stopped.
    pub(crate) remove: Option<&'a Path>,
    pub(crate) log: std::fs::File,
    pub(crate) postgres: &'a Path,
    pub(crate) arguments: Vec<String>,
}

impl Watched<'_> {
    /// Spawns it. The child's id is the server's own, and its standard input is the pipe: keep it open for as
    /// long as the server shall live. All descriptors the standard library opens are close-on-exec, so no other
    /// child of ours keeps the pipe open after us.
    pub(crate) fn spawn(self) -> std::io::Result<Child> {
        // Fast shutdown keeps the data clean for the next start; nobody will open a throw-away server again.
        let signal = match self.durability {
            Durability::Durable => "INT",
            Durability::ThrowAway => "QUIT",
        };
        let mut command: Command = self.user.command(Path::new("/bin/sh"));
        command
            .args(["-c", SCRIPT, "watchdog"])
            .arg(self.data)
            .arg(signal)
            .arg(self.remove.unwrap_or(Path::new("")))
            .arg(self.postgres)
            .args(self.arguments)
            .current_dir(self.data)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            // A group of its own: the terminal's Ctrl-C reaches us alone, and we stop the server in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(self.log.try_clone()?)
            .stdout(self.log)
            .spawn()
    }
}
