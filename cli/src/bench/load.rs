//! The user of a run: teaches kinds, applies resources, deletes them.

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::args::LoadArgs;
use super::worker::LEAF;
use crate::client::model::{ApplyAnswer, DeleteManyAnswer};
use crate::client::{Client, operations};

/// Applies one set of documents; what was done to each.
pub async fn apply(client: &Client, documents: Vec<Value>) -> anyhow::Result<Vec<String>> {
    let variables = json!({ "documents": documents, "defaultType": null });
    let answer: ApplyAnswer = client.ask(operations::APPLY, variables).await?;
    Ok(answer.apply.results.into_iter().map(|result| result.verb).collect())
}

/// Applies documents `0 .. n`, made as they are sent, some requests at a time, and expects the same verb of all.
/// Returns how long the last answer took from now.
pub async fn apply_all(
    client: &Client,
    load: &LoadArgs,
    n: u32,
    document: impl Fn(u32) -> Value,
    verb: &str,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let document = &document;
    let batches = (0..n).step_by(usize::try_from(load.batch)?).map(|first| async move {
        let documents = (first..n.min(first.saturating_add(load.batch))).map(document).collect();
        let verbs = apply(client, documents).await?;
        let strange = verbs.iter().find(|did| *did != verb);
        ensure!(strange.is_none(), "a document was {} where it should be {verb}", strange.map_or("", |v| v));
        Ok(())
    });
    let clients = usize::try_from(load.clients)?;
    stream::iter(batches).buffer_unordered(clients).try_collect::<()>().await?;
    Ok(start.elapsed())
}

/// Deletes resources by name, some requests at a time.
pub async fn delete_all(client: &Client, clients: u32, kind: &str, names: &[String]) -> anyhow::Result<()> {
    let requests = names.iter().map(|name| async move {
        let targets = json!({ "names": [{ "kind": kind, "name": name }] });
        let variables = json!({ "targets": targets, "cascade": false });
        let _: DeleteManyAnswer = client.ask(operations::DELETE_MANY, variables).await?;
        anyhow::Ok(())
    });
    stream::iter(requests).buffer_unordered(usize::try_from(clients)?).try_collect().await
}

/// A leaf of the size that a small real resource has.
pub fn leaf(number: u32) -> Value {
    json!({
        "type": "resource", "kind": LEAF, "kind_version": 1, "name": leaf_name(number),
        "labels": {"team": "payments", "env": "prod"},
        "spec": {"cidr": "10.0.0.0/16", "size": number, "region": "eu-central-1"},
    })
}

pub fn leaf_name(number: u32) -> String {
    format!("leaf-{number:08}")
}
