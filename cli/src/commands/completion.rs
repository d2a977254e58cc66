//! `converge completion`: what a shell needs to complete command lines.

use crate::exit::Outcome;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;

/// Prints a completion script: `source <(converge completion bash)`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    #[arg(value_name = "SHELL", value_parser = clap::value_parser!(Shell))]
    shell: Shell,
}

/// Runs it.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &CompletionArgs, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "converge", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
