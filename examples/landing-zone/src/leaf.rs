//! The leaf providers: each makes one kind of thing in the pretended cloud and reports its id.

use crate::cloud::{self, Cloud};
use converge_sdk::{Outcome, Provider, Reaction, Request, TaskError, async_trait, terminal};
use serde_json::json;
use std::sync::Arc;

/// What can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafKind {
    Account,
    Vpc,
    Tgw,
    Route,
}

impl LeafKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Account, Self::Vpc, Self::Tgw, Self::Route];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Vpc => "vpc",
            Self::Tgw => "tgw",
            Self::Route => "route",
        }
    }

    /// The status field that holds the id, and the id. Derived from the resource's uuid, which stays for its whole life:
    /// a changed spec or a second try finds the same thing.
    fn issue(self, resource_id: &str) -> (&'static str, String) {
        match self {
            Self::Account => ("account_id", cloud::account_id(resource_id)),
            Self::Vpc => ("vpc_id", cloud::issued_id("vpc", resource_id)),
            Self::Tgw => ("tgw_id", cloud::issued_id("tgw", resource_id)),
            Self::Route => ("route_id", cloud::issued_id("route", resource_id)),
        }
    }
}

/// The provider of one leaf kind.
pub struct Leaf {
    kind: LeafKind,
    cloud: Arc<Cloud>,
}

impl Leaf {
    pub(crate) fn new(kind: LeafKind, cloud: Arc<Cloud>) -> Self {
        Self { kind, cloud }
    }

    async fn call(&self, request: &Request, verb: &str) -> Result<bool, TaskError> {
        let what = format!("{verb} {} {}", request.kind, request.name);
        self.cloud.call(&request.idempotency_key, request.attempt, &what).await
    }
}

#[async_trait]
impl Provider for Leaf {
    fn kind(&self) -> &str {
        self.kind.as_str()
    }

    async fn work(&self, request: Request) -> Result<Outcome, TaskError> {
        let (field, id) = self.kind.issue(&request.id);
        match request.reaction {
            Reaction::Work => {
                let changed = self.call(&request, "create").await?;
                Ok(Outcome::new().status(json!({ field: id })).changed(changed))
            }
            Reaction::Teardown => {
                let changed = self.call(&request, "delete").await?;
                Ok(Outcome::new().changed(changed))
            }
            Reaction::Operate if self.kind == LeafKind::Vpc => {
                self.call(&request, "enable flow logs of").await?;
                let bucket = request.effective_config()?["flow_logs_bucket"].clone();
                Ok(Outcome::new().output(json!({ "flow_logs": "enabled", "bucket": bucket })))
            }
            other => Err(terminal(format!("{} has no reaction `{}`", request.kind, other.as_str()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::Knobs;

    fn leaf(kind: LeafKind, knobs: &Knobs) -> Leaf {
        Leaf::new(kind, Arc::new(Cloud::open(knobs).unwrap()))
    }

    fn status(outcome: &Outcome) -> serde_json::Value {
        outcome.get_status().unwrap().value().unwrap()
    }

    #[tokio::test]
    async fn each_kind_reports_its_own_id_and_the_same_one_again() {
        for (kind, field) in LeafKind::ALL.into_iter().zip(["account_id", "vpc_id", "tgw_id", "route_id"]) {
            let leaf = leaf(kind, &Knobs::default());
            let request = || Request::example(Reaction::Work, kind.as_str(), "n", json!({}));
            let (one, two) = (leaf.work(request()).await.unwrap(), leaf.work(request()).await.unwrap());
            assert!(status(&one)[field].is_string());
            assert_eq!(status(&one), status(&two));
        }
    }

    #[tokio::test]
    async fn a_lost_answer_costs_a_retry_and_no_second_effect() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger");
        let knobs = Knobs { fault_rate: 0.6, ledger: Some(ledger.clone()), ..Knobs::default() };
        let leaf = leaf(LeafKind::Account, &knobs);
        for name in 0..20 {
            for attempt in 1.. {
                let name = name.to_string();
                let mut request = Request::example(Reaction::Work, "account", &name, json!({}));
                request.attempt = attempt;
                if leaf.work(request).await.is_ok() {
                    break;
                }
            }
        }
        assert_eq!(std::fs::read_to_string(ledger).unwrap().lines().count(), 20);
    }
}
