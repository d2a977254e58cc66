//! Trees: roots applied through GraphQL, whose composer runs in the worker, until every root is Ready; and the proof that
//! what came of it is what was asked for.

use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::args::LoadArgs;
use super::load;
use super::log::Span;
use super::phases::{self, Phases};
use super::probe::Target;
use super::processes::Processes;
use super::random::hash;
use super::server::BenchServer;
use super::worker::{CHILD_KINDS, ROOT, child_kinds, edits_of, root_kind, shape_of};
use crate::client::model::{Resource, ResourcesAnswer};
use crate::client::{Client, operations};

const LOAD: LoadArgs = LoadArgs { batch: 500, clients: 4 };
const PAGE: u32 = 500;

/// Some roots with the same number of children each; the last has what is left.
#[derive(Debug, Clone)]
pub struct Trees {
    /// Begins the roots' names, and so their children's.
    pub prefix: &'static str,
    /// Children of all.
    pub n: u32,
    /// Children of one.
    pub children: u32,
    pub rollup: bool,
    pub seed: u64,
}

/// How long they took to grow.
pub struct Grown {
    /// Until the last `apply` was answered.
    pub applied_seconds: f64,
    /// Until the last root was Ready.
    pub seconds: f64,
}

/// Teaches the kinds.
pub async fn apply_kinds(client: &Client, rollup: bool) -> anyhow::Result<()> {
    let mut kinds = Vec::from(child_kinds());
    kinds.push(root_kind(rollup));
    load::apply(client, kinds).await.map(drop)
}

impl Trees {
    pub const fn roots(&self) -> u32 {
        self.n.div_ceil(self.children)
    }

    pub fn root_name(&self, root: u32) -> String {
        format!("{}{root:06}", self.prefix)
    }

    pub fn children_of(&self, root: u32) -> u32 {
        self.children.min(self.n - root * self.children)
    }

    /// A child, for a number below `n`.
    pub fn target(&self, number: u32) -> Target {
        let root = self.root_name(number / self.children);
        let (kind, name, prefix) = shape_of(&root, number % self.children);
        Target { kind, name, prefix }
    }

    /// A child's number below `n` that depends on `draw` alone.
    pub fn draw(&self, draw: u32) -> u32 {
        u32::try_from(hash(self.seed, u64::from(draw)) % u64::from(self.n)).unwrap_or(0)
    }

    /// How many children an edition changes.
    pub fn edits(&self, edition: u64) -> u32 {
        (0..self.roots())
            .map(|root| edits_of(&self.root_name(root), self.children_of(root), edition, self.seed))
            .sum()
    }

    fn document(&self, root: u32, edition: u64, pause_ms: u64) -> Value {
        let children = self.children_of(root);
        let mut spec = json!({ "children": children, "edition": edition, "seed": self.seed });
        if pause_ms > 0 {
            spec["pause_ms"] = json!(pause_ms);
        }
        json!({
            "type": "resource", "kind": ROOT, "kind_version": 1, "name": self.root_name(root), "spec": spec,
        })
    }

    /// Applies the roots, and waits until they and those that were there before are Ready.
    pub async fn grow(&self, processes: &Processes, before: u32, timeout: u64) -> anyhow::Result<Grown> {
        let client = processes.client()?;
        let start = Instant::now();
        let applied =
            load::apply_all(&client, &LOAD, self.roots(), |root| self.document(root, 1, 0), "created")
                .await?;
        let roots = u64::from(before + self.roots());
        phases::wait(processes, timeout, |phases| phases.of(ROOT, "Ready") == roots).await?;
        Ok(Grown { applied_seconds: applied.as_secs_f64(), seconds: start.elapsed().as_secs_f64() })
    }

    /// Applies another edition of all roots; each then changes 1 % of its children.
    pub async fn edit(&self, client: &Client, edition: u64, pause_ms: u64) -> anyhow::Result<()> {
        let document = |root| self.document(root, edition, pause_ms);
        load::apply_all(client, &LOAD, self.roots(), document, "configured").await.map(drop)
    }

    /// Makes sure that each root was composed once, each child made and worked once, and that all are Ready.
    pub async fn check(&self, server: &BenchServer, client: &Client, after: i64) -> anyhow::Result<Span> {
        let span = Span::behind(server, after).await?;
        span.once_each("Created", self.n + self.roots())?;
        span.once_each("Composed", self.roots())?;
        span.once_each("Worked", self.n)?;
        self.check_roots(client).await?;
        let phases = Phases::now(client).await?;
        let ready: u64 = CHILD_KINDS.iter().map(|kind| phases.of(kind, "Ready")).sum();
        let children = phases.total() - phases.of(ROOT, "Ready");
        ensure!(ready == children && ready >= u64::from(self.n), "children are not Ready: {phases}");
        Ok(span)
    }

    /// Makes sure that every root is Ready, and that its rollup has seen all of its children.
    pub async fn check_roots(&self, client: &Client) -> anyhow::Result<()> {
        let mut seen = 0;
        let mut after = Value::Null;
        loop {
            let variables = json!({
                "filter": {"kind": ROOT, "namePrefix": self.prefix}, "first": PAGE, "after": after,
                "wide": false, "columns": true, "full": false,
            });
            let page = client.ask::<ResourcesAnswer>(operations::RESOURCES, variables).await?.resources;
            for root in &page.nodes {
                self.check_root(root)?;
                seen += 1;
            }
            if !page.page_info.has_next_page {
                break;
            }
            after = json!(page.page_info.end_cursor);
        }
        ensure!(seen == self.roots(), "{seen} roots are there and not {}", self.roots());
        Ok(())
    }

    fn check_root(&self, root: &Resource) -> anyhow::Result<()> {
        ensure!(root.phase == "Ready", "{} is {}", root.name, root.phase);
        if self.rollup {
            let number = root.name.strip_prefix(self.prefix).and_then(|number| number.parse().ok());
            let children = self.children_of(number.context("a root of another name")?);
            let summed = &root.status["nodes"];
            ensure!(
                *summed == json!(children),
                "the rollup of {} saw {summed} and not {children}",
                root.name
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_root_has_what_is_left() {
        let trees = Trees { prefix: "r", n: 2500, children: 1000, rollup: true, seed: 1 };
        let children: Vec<u32> = (0..trees.roots()).map(|root| trees.children_of(root)).collect();
        assert_eq!(children, [1000, 1000, 500]);
        let target = trees.target(2499);
        assert!(target.name.starts_with("r000002-") && target.name.starts_with(&target.prefix));
        assert!((0..100).all(|draw| trees.draw(draw) < 2500));
    }
}
