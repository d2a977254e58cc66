//! Events as a story: one line each, with what a human would tell of it.

use crate::client::model::Event;
use crate::output::age;
use serde_json::Value;

/// Longer details are cut; `-o json` has everything.
const DETAIL_CHARS_MAX: usize = 110;

/// `POS TIME KIND/NAME EVENT detail (actor)`
pub fn line(event: &Event) -> String {
    let mut line =
        format!("{:>6} {} {} {}", event.position, age::instant(event.at), subject(event), event.event_type);
    let detail = detail(event);
    if !detail.is_empty() {
        line.push(' ');
        line.push_str(&detail);
    }
    if let Some(actor) = event.metadata.get("actor").and_then(Value::as_str).filter(|actor| !actor.is_empty())
    {
        line.push_str(&format!(" ({actor})"));
    }
    line
}

/// What it happened to: a name if the server knows it, else the identity.
fn subject(event: &Event) -> String {
    match (&event.kind, &event.name) {
        (Some(kind), Some(name)) => format!("{kind}/{name}"),
        _ => format!("{}/{}", event.aggregate_type, event.aggregate_id),
    }
}

/// What is worth telling of an event beside its name. Events that this build does not know show their
/// short fields.
pub fn detail(event: &Event) -> String {
    let payload = event.payload.get(&event.event_type).unwrap_or(&event.payload);
    let text = match event.event_type.as_str() {
        "Created" | "Configured" => declared(payload),
        "UpstreamsEvaluated" => upstreams(payload),
        "Claimed" => format!(
            "{} by {}, generation {}, epoch {}",
            word(payload, "reaction"),
            word(payload, "worker"),
            word(payload, "generation"),
            word(payload, "epoch")
        ),
        "AttemptFailed" => {
            let end = match (payload.get("terminal"), payload.get("retry_at")) {
                (Some(Value::Bool(true)), _) => "terminal".to_owned(),
                (_, Some(Value::String(at))) => format!("next at {at}"),
                _ => "to be tried again".to_owned(),
            };
            format!(
                "{} attempt {}, {end}: {}",
                word(payload, "reaction"),
                word(payload, "attempt"),
                word(payload, "message")
            )
        }
        "CompositionAccepted" => {
            let pass = payload.get("pass").unwrap_or(&Value::Null);
            format!("{} children, {} edges", word(pass, "children"), word(pass, "edges"))
        }
        "Composed" => format!(
            "{} created, {} changed, {} dropped",
            word(payload, "created"),
            word(payload, "changed"),
            word(payload, "dropped")
        ),
        "SubtreeChanged" => word(payload, "subtree"),
        "Dropped" | "RolledUp" | "Published" => String::new(),
        _ => short_fields(payload),
    };
    cut(&text)
}

/// What a declaration brought.
fn declared(payload: &Value) -> String {
    const PARTS: [&str; 6] =
        ["kind_version", "spec", "labels", "provider_config_ref", "deletion_protection", "edges"];
    let parts: Vec<&str> = PARTS.into_iter().filter(|part| payload.get(part).is_some()).collect();
    match payload.get("generation") {
        Some(generation) => format!("generation {}: {}", shown(generation), parts.join(", ")),
        None => format!("version {}", word(payload, "kind_version")),
    }
}

/// What an evaluation of upstreams found.
fn upstreams(payload: &Value) -> String {
    let mut parts =
        vec![format!("gate {}, generation {}", word(payload, "gate"), word(payload, "generation"))];
    for input in list(payload, "inputs") {
        parts.push(format!("{} = {}", word(input, "field"), word(input, "value")));
    }
    for field in list(payload, "unresolved") {
        parts.push(format!("{} unresolved", word(field, "field")));
    }
    parts.join("; ")
}

fn list<'a>(payload: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    payload.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Numbers, words and flags, without identities and instants.
fn short_fields(payload: &Value) -> String {
    let fields = payload.as_object().into_iter().flatten();
    let shown: Vec<String> = fields
        .filter(|(key, value)| {
            *key != "at"
                && !key.ends_with("_id")
                && !value.is_object()
                && !value.is_array()
                && !value.is_null()
        })
        .map(|(key, value)| format!("{key}={}", shown(value)))
        .collect();
    shown.join(" ")
}

fn word(payload: &Value, key: &str) -> String {
    payload.get(key).map_or_else(|| "?".to_owned(), shown)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(DETAIL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn check(event_type: &str, payload: Value, expected: Expect) {
        let event: Event = serde_json::from_value(json!({
            "position": "42", "at": "2026-01-02T03:04:05.678Z", "aggregateType": "resource",
            "aggregateId": "00000000-0000-0000-0000-000000000001", "sequence": "1",
            "eventType": event_type, "payload": {event_type: payload}, "metadata": {"actor": "ann"},
            "kind": "vpc", "name": "a/b",
        }))
        .unwrap();
        expected.assert_eq(&line(&event));
    }

    #[test]
    fn an_event_is_told_in_one_line() {
        check(
            "Created",
            json!({"kind": "vpc", "kind_version": 1, "spec": {"cidr": "10.0.0.0/16"}}),
            expect!["    42 2026-01-02T03:04:05.678Z vpc/a/b Created version 1 (ann)"],
        );
        check(
            "Configured",
            json!({"generation": 3, "spec": {}, "labels": {}}),
            expect!["    42 2026-01-02T03:04:05.678Z vpc/a/b Configured generation 3: spec, labels (ann)"],
        );
        check(
            "UpstreamsEvaluated",
            json!({"gate": "open", "generation": 2, "inputs": [{"field": "/account_id", "value": "123"}]}),
            expect![
                "    42 2026-01-02T03:04:05.678Z vpc/a/b UpstreamsEvaluated gate open, generation 2; /account_id = 123 (ann)"
            ],
        );
        check(
            "AttemptFailed",
            json!({"reaction": "work", "attempt": 2, "message": "no\nroute", "terminal": true}),
            expect![
                "    42 2026-01-02T03:04:05.678Z vpc/a/b AttemptFailed work attempt 2, terminal: no route (ann)"
            ],
        );
        check(
            "SomethingNew",
            json!({"reason": "why not", "claim_id": "x", "spec": {}, "count": 7}),
            expect!["    42 2026-01-02T03:04:05.678Z vpc/a/b SomethingNew count=7 reason=why not (ann)"],
        );
    }

    #[test]
    fn a_long_detail_is_cut_at_a_character() {
        assert_eq!(cut(&"ü".repeat(500)).chars().count(), DETAIL_CHARS_MAX + 1);
    }
}
