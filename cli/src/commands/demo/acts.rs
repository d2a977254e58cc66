//! The second act: an edit, a domain less, and the end, each through the public API and each with what it touched.
//!
//! What happened is read from the log, as anybody could: which resources got an event, and in which order things went.

use crate::client::model::{EventsAnswer, SummaryAnswer};
use crate::client::{Client, operations};
use crate::commands::apply;
use crate::console;
use crate::convergence::{self, Patience, Waker, Wanted, look};
use crate::documents::{self, Document};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::render;
use crate::progress::{PhaseCounts, Progress};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

const PAGE: usize = 1_000;

/// A bill of materials that the acts know how to edit.
pub struct Bill(Value);

impl Bill {
    /// None when the document is another kind of thing, or too small to take something away from.
    pub fn read(bom: &[Document]) -> Option<Self> {
        let [document] = bom else { return None };
        let mut bill = Self(serde_json::from_str(document.json.get()).ok()?);
        (bill.domains()?.len() > 1).then_some(bill)
    }

    fn domains(&mut self) -> Option<&mut Vec<Value>> {
        self.0.pointer_mut("/spec/deployment_instance/functional_domains")?.as_array_mut()
    }

    /// One more team in the first domain; says which.
    fn add_team(&mut self) -> Option<String> {
        let domain = self.domains()?.first_mut()?;
        let name = domain["name"].as_str()?.to_owned();
        domain["service_teams"].as_array_mut()?.push(json!({"name": "second-act"}));
        Some(format!("team second-act joins domain {name}"))
    }

    /// The last domain goes; says which.
    fn remove_domain(&mut self) -> Option<String> {
        let domain = self.domains()?.pop()?;
        Some(format!("domain {} is taken out of the bill", domain["name"].as_str()?))
    }

    fn document(&self) -> Result<Vec<Document>, Failure> {
        Ok(documents::from_text(&self.0.to_string(), "the demo's edited BOM")?)
    }
}

/// Plays them. With `keep` the root stays.
///
/// # Errors
/// What the server says, and [`Exit::NotConverged`] when time is up.
pub async fn play(
    client: &Client,
    mut bill: Bill,
    root: &Wanted,
    keep: bool,
    patience: &Patience,
) -> Outcome {
    if let Some(what) = bill.add_team() {
        edit(client, &bill, root, &what, patience).await?;
    }
    if let Some(what) = bill.remove_domain() {
        edit(client, &bill, root, &what, patience).await?;
    }
    if !keep {
        end(client, root, patience).await?;
    }
    Ok(())
}

/// Applies the edited bill and waits until exactly the gap is closed.
async fn edit(client: &Client, bill: &Bill, root: &Wanted, what: &str, patience: &Patience) -> Outcome {
    console::print(format_args!("\n== Edit: {what}"))?;
    let before = convergence::position_now(client).await?;
    let all = total(&counts(root, patience).await?);
    let payloads = apply::send(client, bill.document()?, Some("resource"), |_| Ok(())).await?;
    let position = payloads.iter().map(|payload| payload.position).max().unwrap_or_default();
    {
        let mut progress = Progress::start();
        let wanted = std::slice::from_ref(root);
        convergence::all_ready(client, wanted, position, patience, &mut progress).await?;
        // What was dropped left the rollup at once, and goes now.
        settled(client, root, position, patience, &mut progress).await?;
    }
    let touched = Touched::since(client, before).await?;
    console::print(format_args!("{} of {all} resources got an event:", touched.names.len()))?;
    console::print(touched.table())?;
    Ok(())
}

/// Deletes the root and shows in which order everything went.
async fn end(client: &Client, root: &Wanted, patience: &Patience) -> Outcome {
    console::print(format_args!("\n== Delete: {} and everything below it", root.reference))?;
    let before = convergence::position_now(client).await?;
    let name = json!({"kind": root.reference.kind, "name": root.reference.name});
    let variables = json!({"targets": {"names": [name]}, "cascade": false});
    let answer: Value = client.ask(operations::DELETE_MANY, variables).await?;
    let position = answer["deleteMany"]["position"].as_str().and_then(|text| text.parse().ok());
    let mut waker = Waker::paced(position.unwrap_or(before));
    let mut progress = Progress::start();
    while look(patience, &root.id, &waker.min_position()).await?.is_some() {
        progress.update(&counts(root, patience).await?);
        if patience.is_over() {
            return Err(Failure::new(Exit::NotConverged, format_args!("{} is still going", root.reference)));
        }
        waker.wake(patience).await;
    }
    drop(progress);
    let touched = Touched::since(client, before).await?;
    console::print("gone, by kind, each at its place in the log (what leans on something goes before it):")?;
    console::print(touched.ends())?;
    Ok(())
}

/// Waits until nothing below the root is on its way out.
async fn settled(
    client: &Client,
    root: &Wanted,
    position: u64,
    patience: &Patience,
    progress: &mut Progress,
) -> Outcome {
    let mut waker = Waker::on(client, &root.reference, position);
    loop {
        let counts = counts(root, patience).await?;
        progress.update(&counts);
        if counts.of("Ready") == counts.total() {
            return Ok(());
        }
        if patience.is_over() {
            return Err(Failure::new(Exit::NotConverged, "what was dropped is still going"));
        }
        waker.wake(patience).await;
    }
}

async fn counts(root: &Wanted, patience: &Patience) -> Result<PhaseCounts, Failure> {
    let answer: SummaryAnswer = patience.ask(operations::SUMMARY, json!({"root": root.id})).await?;
    Ok(answer.summary.counts.iter().collect())
}

fn total(counts: &PhaseCounts) -> u64 {
    counts.total()
}

/// What the log says of a while.
#[derive(Default)]
struct Touched {
    /// Everything that got an event.
    names: HashSet<(String, String)>,
    /// By kind: how many were made, changed and removed.
    kinds: BTreeMap<String, [HashSet<String>; 3]>,
    /// By kind: how many ended, and the first and last position of an end.
    ends: BTreeMap<String, (u64, u64, u64)>,
}

impl Touched {
    async fn since(client: &Client, after: u64) -> Result<Self, Failure> {
        let mut touched = Self::default();
        let mut after = after;
        loop {
            let variables = json!({"after": after.to_string(), "first": PAGE});
            let page = client.ask::<EventsAnswer>(operations::EVENTS, variables).await?.events;
            for event in &page.nodes {
                if let (Some(kind), Some(name)) = (&event.kind, &event.name) {
                    touched.note(kind, name, &event.event_type, event.position);
                }
            }
            after = page.end_position;
            if !page.has_more {
                return Ok(touched);
            }
        }
    }

    fn note(&mut self, kind: &str, name: &str, event_type: &str, position: u64) {
        self.names.insert((kind.to_owned(), name.to_owned()));
        let [made, changed, removed] = self.kinds.entry(kind.to_owned()).or_default();
        match event_type {
            "Created" => made.insert(name.to_owned()),
            "Deleted" => removed.insert(name.to_owned()),
            _ => changed.insert(name.to_owned()),
        };
        if event_type == "Deleted" {
            let (count, _, last) = self.ends.entry(kind.to_owned()).or_insert((0, position, position));
            (*count, *last) = (*count + 1, position);
        }
    }

    fn table(&self) -> String {
        let row = |(kind, [made, changed, removed]): (&String, &[HashSet<String>; 3])| {
            // Whatever is made or removed changes too on its way; it counts once.
            let changed = changed.iter().filter(|name| !made.contains(*name) && !removed.contains(*name));
            let counts = [made.len(), changed.count(), removed.len()];
            [kind.clone()].into_iter().chain(counts.map(|count| count.to_string())).collect()
        };
        render(&["kind", "made", "changed", "removed"], self.kinds.iter().map(row).collect())
    }

    fn ends(&self) -> String {
        let mut ends: Vec<_> = self.ends.iter().collect();
        ends.sort_by_key(|(_, (_, first, _))| *first);
        let row = |(kind, (count, first, last)): (&String, &(u64, u64, u64))| {
            vec![kind.clone(), count.to_string(), first.to_string(), last.to_string()]
        };
        render(&["kind", "gone", "first at", "last at"], ends.into_iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::assets;
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_demos_bill_can_be_edited_and_stays_one_document() {
        let mut bill = Bill::read(&assets::bom().unwrap()).unwrap();
        let before = bill.domains().unwrap().len();
        assert_eq!(bill.add_team().unwrap(), "team second-act joins domain fd-00");
        bill.remove_domain().unwrap();
        let again = bill.document().unwrap();
        assert_eq!(Bill::read(&again).unwrap().domains().unwrap().len(), before - 1);
        assert!(Bill::read(&documents::from_text("{\"type\":\"resource\"}", "x").unwrap()).is_none());
    }

    #[test]
    fn what_is_made_or_removed_is_not_counted_as_changed_too() {
        let mut touched = Touched::default();
        for (position, (name, event)) in (1_u64..).zip([
            ("a", "Created"),
            ("a", "Worked"),
            ("b", "Worked"),
            ("c", "Dropped"),
            ("c", "Deleted"),
        ]) {
            touched.note("vpc", name, event, position);
        }
        touched.note("root", "r", "Deleted", 9);
        expect![[r"
            KIND   MADE   CHANGED   REMOVED
            root   0      0         1
            vpc    1      1         1"]]
        .assert_eq(&touched.table());
        expect![[r"
            KIND   GONE   FIRST AT   LAST AT
            vpc    1      5          5
            root   1      9          9"]]
        .assert_eq(&touched.ends());
    }
}
