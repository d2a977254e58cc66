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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            let mut command = Command::new("converge").subcommand(Command::new("confirm-prune"));
            clap_complete::generate(shell, &mut command, "converge", &mut script);
            assert!(String::from_utf8(script).unwrap().contains("confirm-prune"), "{shell}");
        }
    }
}
