//! `converge summary`: how many resources of each kind are in each phase.

use crate::client::model::{PhaseCount, SummaryAnswer};
use crate::client::{Client, operations};
use crate::console;
use crate::exit::Outcome;
use crate::output::table::render;
use clap::{Args, ValueEnum};
use converge_domain::resource::Phase;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Counts resources by kind and phase.
#[derive(Debug, Args)]
pub struct SummaryArgs {
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Output {
    #[default]
    Table,
    Json,
}

/// Runs it.
///
/// # Errors
/// What the server says.
pub async fn run(args: SummaryArgs, client: &Client) -> Outcome {
    let answer: SummaryAnswer = client.ask(operations::SUMMARY, json!({})).await?;
    let counts = by_kind(&answer.summary.counts);
    console::print(match args.output {
        Output::Table => table(&counts),
        Output::Json => object(&counts).to_string(),
    })?;
    Ok(())
}

type Counts<'a> = BTreeMap<&'a str, BTreeMap<&'a str, u64>>;

fn by_kind(counts: &[PhaseCount]) -> Counts<'_> {
    let mut kinds = Counts::new();
    for count in counts.iter().filter(|count| count.count > 0) {
        *kinds.entry(&count.kind).or_default().entry(&count.phase).or_default() += count.count;
    }
    kinds
}

fn object(counts: &Counts<'_>) -> Value {
    let kind = |(kind, phases): (&&str, &BTreeMap<&str, u64>)| {
        let phases: Map<String, Value> =
            phases.iter().map(|(phase, count)| ((*phase).to_owned(), (*count).into())).collect();
        ((*kind).to_owned(), Value::Object(phases))
    };
    Value::Object(counts.iter().map(kind).collect())
}

/// Phases that nothing is in have no column; Ready has one always.
fn table(counts: &Counts<'_>) -> String {
    let occurs = |phase: &&str| *phase == "Ready" || counts.values().any(|phases| phases.contains_key(phase));
    let phases: Vec<&str> = Phase::ALL.iter().map(|phase| phase.as_str()).filter(occurs).collect();
    let row = |name: &str, of: &dyn Fn(&str) -> u64, total: u64| {
        let mut row = vec![name.to_owned(), total.to_string()];
        row.extend(phases.iter().map(|phase| of(phase).to_string()));
        row
    };
    let mut rows: Vec<Vec<String>> = counts
        .iter()
        .map(|(kind, phases)| {
            row(kind, &|phase| phases.get(phase).copied().unwrap_or(0), phases.values().sum())
        })
        .collect();
    if counts.len() != 1 {
        let of = |phase: &str| counts.values().filter_map(|phases| phases.get(phase)).sum();
        rows.push(row("(all)", &of, counts.values().flat_map(BTreeMap::values).sum()));
    }
    let header: Vec<&str> = ["kind", "total"].into_iter().chain(phases.iter().copied()).collect();
    render(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn counts() -> Vec<PhaseCount> {
        let count =
            |kind: &str, phase: &str, count| PhaseCount { kind: kind.into(), phase: phase.into(), count };
        vec![
            count("vpc", "Ready", 3),
            count("vpc", "Failed", 1),
            count("account", "Ready", 2),
            count("account", "Deleting", 0),
        ]
    }

    #[test]
    fn only_phases_that_occur_have_a_column() {
        expect![[r"
            KIND      TOTAL   FAILED   READY
            account   2       0        2
            vpc       4       1        3
            (all)     6       1        5"]]
        .assert_eq(&table(&by_kind(&counts())));
    }

    #[test]
    fn machines_get_an_object_by_kind_and_phase() {
        assert_eq!(
            object(&by_kind(&counts())),
            json!({"account": {"Ready": 2}, "vpc": {"Failed": 1, "Ready": 3}})
        );
    }
}
