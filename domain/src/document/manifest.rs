//! Reading a kind manifest.

use super::fields::{Fields, boolean, list, small_number, string, strings, variant};
use super::parts::kind_version;
use crate::kind::{self, Compare, Emit, Knobs, Manifest, PrinterColumn, ReactionSpec};
use crate::violation::Violation;
use serde_json::Value;

/// Most reactions of one kind.
const REACTIONS_MAX: usize = 64;
/// Most printer columns of one kind.
const COLUMNS_MAX: usize = 32;

const TRIGGERS: [&str; 6] =
    ["specChange", "childrenSettled", "deleteRequested", "operation", "reactor", "resync"];
const EMITS: [&str; 8] =
    ["children", "edges", "configs", "status", "conditions", "finalizer", "operationOutput", "sideEffect"];

/// Reads the fields of a manifest, and checks its legality when all of them could be read.
pub(super) fn read(mut fields: Fields<'_>) -> Option<Manifest> {
    let kind = fields.required("kind", string);
    let version = fields.required("kind_version", kind_version);
    let description = fields.optional("description", string).unwrap_or_default();
    let spec_schema = fields.take("spec_schema").filter(|schema| !schema.is_null());
    let status_schema = fields.take("status_schema").filter(|schema| !schema.is_null());
    let config_schema = fields.take("config_schema").filter(|schema| !schema.is_null());
    let mut complete = true;
    let reactions = fields.objects("reactions", REACTIONS_MAX, |value, place, faults| {
        let read = reaction(value, place, faults);
        complete &= read.is_some();
        read
    });
    let finalizer_name = fields.optional("finalizer_name", string);
    let provider = fields.optional("provider", string);
    let knobs = knobs(&mut fields);
    let compare = fields.object("compare", compare);
    let immutable = fields.optional("immutable", strings).unwrap_or_default();
    let on_immutable_change =
        fields.optional("on_immutable_change", |value| variant(value, &["refuse", "replace"]));
    let sensitive = fields.optional("sensitive", strings).unwrap_or_default();
    let printer_columns = fields.objects("printer_columns", COLUMNS_MAX, column);
    let manifest = match (kind, version) {
        (Some(kind), Some(kind_version)) if complete => Some(Manifest {
            kind,
            kind_version,
            description,
            spec_schema,
            status_schema,
            config_schema,
            reactions,
            finalizer_name,
            provider,
            knobs,
            compare,
            immutable,
            on_immutable_change,
            sensitive,
            printer_columns,
        }),
        _ => None,
    };
    if let Some(manifest) = &manifest {
        fields.faults(kind::check(manifest));
    }
    fields.finish();
    manifest
}

fn knobs(fields: &mut Fields<'_>) -> Knobs {
    Knobs {
        max_inflight: fields.optional("max_inflight", small_number),
        task_deadline_secs: fields.optional("task_deadline_secs", small_number),
        resync_interval_secs: fields.optional("resync_interval_secs", small_number),
        resync_recomposes: fields.optional("resync_recomposes", boolean),
        orphan_grace_secs: fields.optional("orphan_grace_secs", small_number),
        max_transient_attempts: fields.optional("max_transient_attempts", small_number),
        drift_policy: fields.optional("drift_policy", |value| variant(value, &["heal", "report"])),
        recompose_on_children: fields.optional("recompose_on_children", boolean),
        prune_share_max: fields.optional("prune_share_max", |value| {
            value.as_f64().ok_or_else(|| "must be a number between 0 and 1".to_owned())
        }),
    }
}

fn reaction(value: Value, place: &str, faults: &mut Vec<Violation>) -> Option<ReactionSpec> {
    let mut fields = Fields::open(value, place, faults)?;
    let name = fields.required("name", string);
    let trigger = fields.required("trigger", |value| variant(value, &TRIGGERS));
    let emits = fields.optional("emits", emits).unwrap_or_default();
    let finalizer = fields.optional("finalizer", string);
    let verb = fields.optional("verb", string);
    fields.finish();
    Some(ReactionSpec { name: name?, trigger: trigger?, emits, finalizer, verb })
}

fn emits(value: Value) -> Result<Vec<Emit>, String> {
    list(value)?.into_iter().map(|item| variant(item, &EMITS)).collect()
}

fn compare(value: Value, place: &str, faults: &mut Vec<Violation>) -> Option<Compare> {
    let mut fields = Fields::open(value, place, faults)?;
    let ignore = fields.optional("ignore", strings).unwrap_or_default();
    let sets = fields.optional("sets", strings).unwrap_or_default();
    fields.finish();
    Some(Compare { ignore, sets })
}

fn column(value: Value, place: &str, faults: &mut Vec<Violation>) -> Option<PrinterColumn> {
    let mut fields = Fields::open(value, place, faults)?;
    let name = fields.required("name", string);
    let pointer = fields.required("pointer", string);
    fields.finish();
    Some(PrinterColumn { name: name?, pointer: pointer? })
}
