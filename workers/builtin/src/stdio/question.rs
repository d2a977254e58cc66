//! What a program reads on its standard input.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use converge_sdk::{Json, Request, TaskError, terminal};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Most bytes of paged input that a program is given whole; a subtree beyond this needs an SDK, which reads pages.
const INPUT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Empty fields are left out. Documents are passed on as they came, so a program sees the numbers that were declared.
#[derive(Serialize)]
struct Question<'a> {
    reaction: &'a str,
    trigger: &'a str,
    id: &'a str,
    kind: &'a str,
    kind_version: u32,
    name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    generation: u64,
    attempt: u32,
    idempotency_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_secs: Option<u64>,
    spec: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    observed: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    descendants: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

/// The object for this task. `settings` is the part of the config that programs see.
pub(super) async fn write(request: &mut Request, settings: Option<&Value>) -> Result<Vec<u8>, TaskError> {
    let (observed, descendants) = pages(request).await?;
    let question = Question {
        reaction: request.reaction.as_str(),
        trigger: &request.trigger,
        id: &request.id,
        kind: &request.kind,
        kind_version: request.kind_version,
        name: &request.name,
        labels: &request.labels,
        generation: request.generation,
        attempt: request.attempt,
        idempotency_key: &request.idempotency_key,
        deadline_secs: request.time_left().map(|left| left.as_secs().max(1)),
        spec: request.spec.raw()?,
        status: request.status.as_ref().map(Json::raw).transpose()?,
        config: settings,
        bundle: request.effective_bundle().map(|bundle| STANDARD.encode(bundle)),
        observed: observed.iter().map(Json::raw).collect::<Result<_, _>>()?,
        descendants: descendants.iter().map(Json::raw).collect::<Result<_, _>>()?,
        dry_run: request.dry_run,
    };
    Ok(serde_json::to_vec(&question)?)
}

async fn pages(request: &mut Request) -> Result<(Vec<Json>, Vec<Json>), TaskError> {
    let (mut observed, mut descendants, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some((part, items)) = request.input.next_page().await? {
        bytes += items.iter().map(|item| item.bytes().len()).sum::<usize>();
        if bytes > INPUT_BYTES_MAX {
            return Err(terminal(format!("the {part} are more than {INPUT_BYTES_MAX} bytes; use an SDK")));
        }
        match part.as_str() {
            "observed" => observed.extend(items),
            _ => descendants.extend(items),
        }
    }
    Ok((observed, descendants))
}
