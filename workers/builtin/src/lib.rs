//! The built-in worker: any program as a kind, and scripts as resources.
//!
//! Most teams already have the program that makes the thing; asking them for an SDK first would lose them.
//! [`Stdio`] runs any program with a JSON object on its standard input, [`StdShell`] runs a script that a resource
//! carries in its spec. Both run programs through `program`, which is where limits and process groups live.

mod program;
mod run;
mod stdio;
mod stdshell;

pub use run::{providers, run_builtin};
pub use stdio::Stdio;
pub use stdshell::StdShell;

/// The manifest of the `stdshell` kind, as a document to apply.
pub const STDSHELL_KIND: &str = include_str!("../kinds/stdshell.kind.json");
