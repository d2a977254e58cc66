//! The two streams and their rules: answers on stdout, everything else on stderr, colour only for eyes.
//!
//! `print!` would panic when the reader of a pipe goes away, and would colour what a script reads; so
//! commands write through here.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Writes one line of the answer.
///
/// # Errors
/// When stdout is closed or full.
pub fn print(line: impl fmt::Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Writes one line for the human who watches; a closed stderr is no reason to fail.
pub fn note(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether a human watches stderr live, so that progress may redraw itself.
pub fn is_watched() -> bool {
    static WATCHED: OnceLock<bool> = OnceLock::new();
    *WATCHED.get_or_init(|| io::stderr().is_terminal())
}

/// The colours in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    Green = 32,
    Red = 31,
    Yellow = 33,
    Grey = 90,
}

/// `text` in `colour` if stdout is a terminal and `NO_COLOR` is unset or empty; else `text` as it is.
pub fn paint(colour: Colour, text: &str) -> String {
    static COLOURED: OnceLock<bool> = OnceLock::new();
    let coloured = *COLOURED.get_or_init(|| {
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    });
    if coloured { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text.to_owned() }
}

/// A phase's word in its colour.
pub fn paint_phase(phase: &str) -> String {
    paint(
        match phase {
            "Ready" => Colour::Green,
            "Failed" | "Degraded" => Colour::Red,
            _ => Colour::Yellow,
        },
        phase,
    )
}
