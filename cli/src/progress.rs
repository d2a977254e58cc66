//! Long work, shown while it lasts: a bar with phase counts on a terminal, plain lines otherwise.

use crate::client::model::PhaseCount;
use crate::{console, duration};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Without a terminal, a line is worth writing this often at most.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// How many resources are in which phase.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PhaseCounts(BTreeMap<String, u64>);

impl PhaseCounts {
    /// Counts one more resource.
    pub fn add(&mut self, phase: &str, count: u64) {
        *self.0.entry(phase.to_owned()).or_default() += count;
    }

    /// How many are in `phase`.
    pub fn of(&self, phase: &str) -> u64 {
        self.0.get(phase).copied().unwrap_or_default()
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// `Reconciling 12, Failed 1`, Ready ones left out.
    fn unready(&self) -> String {
        let parts: Vec<String> = self
            .0
            .iter()
            .filter(|(phase, count)| *phase != "Ready" && **count > 0)
            .map(|(phase, count)| format!("{phase} {count}"))
            .collect();
        parts.join(", ")
    }
}

impl<'a> FromIterator<&'a PhaseCount> for PhaseCounts {
    fn from_iter<I: IntoIterator<Item = &'a PhaseCount>>(counts: I) -> Self {
        let mut all = Self::default();
        for count in counts {
            all.add(&count.phase, count.count);
        }
        all
    }
}

/// One piece of long work, on stderr.
pub struct Progress {
    started: Instant,
    bar: Option<ProgressBar>,
    written_at: Option<Instant>,
    written: PhaseCounts,
}

impl Progress {
    /// Starts showing; nothing is drawn before the first update.
    pub fn start() -> Self {
        let bar = console::is_watched().then(|| {
            let bar = ProgressBar::new(0);
            let style = "{elapsed_precise} [{bar:40}] {pos}/{len} Ready  {msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self { started: Instant::now(), bar, written_at: None, written: PhaseCounts::default() }
    }

    /// Shows how far it is.
    pub fn update(&mut self, counts: &PhaseCounts) {
        if let Some(bar) = &self.bar {
            bar.set_length(counts.total());
            bar.set_position(counts.of("Ready"));
            bar.set_message(counts.unready());
        } else if *counts != self.written && self.written_at.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            self.written_at = Some(Instant::now());
            self.written = counts.clone();
            console::note(self.line(counts));
        }
    }

    fn line(&self, counts: &PhaseCounts) -> String {
        let (ready, total) = (counts.of("Ready"), counts.total());
        let elapsed = duration::coarse(self.started.elapsed());
        let unready = counts.unready();
        let separator = if unready.is_empty() { "" } else { "  " };
        format!("{elapsed:>5}  {ready}/{total} Ready{separator}{unready}")
    }
}

impl Drop for Progress {
    /// The bar leaves the screen, whichever way the work ended; what it became is said in words.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_are_ready_and_what_the_others_do() {
        let mut counts = PhaseCounts::default();
        counts.add("Ready", 10);
        counts.add("Reconciling", 4);
        counts.add("Failed", 1);
        counts.add("Degraded", 0);
        assert_eq!(Progress::start().line(&counts), "   0s  10/15 Ready  Failed 1, Reconciling 4");
    }
}
