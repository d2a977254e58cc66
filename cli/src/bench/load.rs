//! The user of the run: applies a kind, then N resources of it.

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::worker::KIND;
use crate::client::model::ApplyAnswer;
use crate::client::{Client, operations};

/// Teaches the kind: one reaction, no schema, nothing that costs.
pub async fn apply_kind(client: &Client) -> anyhow::Result<()> {
    let kind = json!({
        "type": "kind", "kind": KIND, "kind_version": 1,
        "reactions": [{"name": "work", "trigger": "specChange", "emits": ["status"]}],
    });
    apply(client, vec![kind]).await.map(drop)
}

/// Applies leaves `0 .. n`, some requests at a time; returns how long the last answer took from now.
pub async fn apply_leaves(client: &Client, n: u32, batch: u32, clients: u32) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let batches = (0..n).step_by(usize::try_from(batch)?).map(|first| {
        let documents = (first..n.min(first.saturating_add(batch))).map(leaf).collect();
        async move {
            let answer = apply(client, documents).await?;
            ensure!(
                answer.apply.results.iter().all(|result| result.verb == "created"),
                "some leaves existed"
            );
            Ok(())
        }
    });
    let clients = usize::try_from(clients)?;
    stream::iter(batches).buffer_unordered(clients).try_collect::<()>().await?;
    Ok(start.elapsed())
}

async fn apply(client: &Client, documents: Vec<Value>) -> anyhow::Result<ApplyAnswer> {
    let variables = json!({ "documents": documents, "defaultType": null });
    Ok(client.ask(operations::APPLY, variables).await?)
}

/// Of the size that a small real resource has.
fn leaf(number: u32) -> Value {
    json!({
        "type": "resource", "kind": KIND, "kind_version": 1, "name": format!("leaf-{number:08}"),
        "labels": {"team": "payments", "env": "prod"},
        "spec": {"cidr": "10.0.0.0/16", "size": number, "region": "eu-central-1"},
    })
}
