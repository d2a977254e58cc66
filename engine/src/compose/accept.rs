//! Whole-output validation: nothing of an output is applied before all of it was found good.

use super::outline::{self, Outline};
use crate::engine::Core;
use crate::registry::config_kind;
use converge_domain::composition::ChildItem;
use converge_domain::json::pointer::Pointer;
use converge_domain::resource::{FieldFlow, ResourceState};
use converge_domain::{ClaimId, value_flow};
use converge_event_store::StoreError;
use std::collections::HashSet;

/// Violations quoted in a failure message.
const QUOTED_MAX: usize = 20;
/// Violations after which the rest of an output is not looked at.
const VIOLATIONS_MAX: usize = 1000;
/// Children checked at once.
const PAGE: usize = 2000;

/// The verdict on an output.
pub(crate) enum Acceptance {
    /// Good as a whole.
    Accepted { digest: String, children: u64, edges: u64 },
    /// Frames are missing: the worker must compose again.
    Incomplete(String),
    /// Wrong as a whole: a terminal failure of the composer.
    Refused(String),
}

/// Judges the output staged under `claim_id`; `announced` is what the worker says it sent
/// (children, edges, configs).
pub(crate) async fn accept(
    core: &Core,
    composer: &ResourceState,
    claim_id: ClaimId,
    announced: [u64; 3],
) -> Result<Acceptance, StoreError> {
    let _room = core.room.to_check(announced[0]).await;
    let found = outline::find(core, composer.id().id, claim_id).await?;
    if found.broken.is_empty() && found.counts != announced {
        return Ok(Acceptance::Incomplete(format!(
            "the composition arrived incomplete: {announced:?} children, edges and configs announced, {:?} received",
            found.counts
        )));
    }
    let mut violations = found.broken.clone();
    // A kind that this process has not heard of yet would otherwise refuse the composition for good.
    core.registry.ensure(core.store.as_ref(), found.kinds.iter().cloned()).await?;
    match found.outline(core).await? {
        Ok(outline) => {
            if !check_children(core, composer, &outline, &mut violations).await? {
                return Ok(Acceptance::Incomplete("its staged output is gone".to_owned()));
            }
            check_configs(core, &outline, &mut violations);
            if violations.is_empty() {
                let (children, edges) = (outline.len() as u64, outline.edges());
                let digest = outline.digest.clone();
                core.outlines.keep(outline);
                return Ok(Acceptance::Accepted { digest, children, edges });
            }
        }
        Err(errors) => violations.extend(errors),
    }
    let more = violations.len().saturating_sub(QUOTED_MAX);
    violations.truncate(QUOTED_MAX);
    let mut message = format!("the composition is refused: {}", violations.join("; "));
    if more > 0 {
        message.push_str(&format!("; and {more} more"));
    }
    Ok(Acceptance::Refused(message))
}

/// Checks every child against its kind, with what flows into it; false when one is not staged any more.
async fn check_children(
    core: &Core,
    composer: &ResourceState,
    outline: &Outline,
    violations: &mut Vec<String>,
) -> Result<bool, StoreError> {
    let places: Vec<u32> = (0..=u32::MAX).take(outline.len()).collect();
    for places in places.chunks(PAGE) {
        let Some(children) = outline.children(core, places).await? else { return Ok(false) };
        for (place, child) in places.iter().zip(&children) {
            let flows = outline.graph.edges(*place).flat_map(|(_, flows)| flows);
            check_child(core, composer, child, &flows.collect::<Vec<_>>(), violations);
        }
        if violations.len() > VIOLATIONS_MAX {
            break;
        }
    }
    Ok(true)
}

fn check_child(
    core: &Core,
    composer: &ResourceState,
    child: &ChildItem,
    flows: &[&FieldFlow],
    violations: &mut Vec<String>,
) {
    let subject = || format!("{}/{}", child.kind, child.name);
    if child.kind == composer.id().kind && child.name == composer.id().name {
        violations.push(format!("{}: a composer cannot be its own child", subject()));
    }
    let kind = child.kind_ref();
    let Some(entry) = core.registry.kind(&kind) else {
        violations.push(format!("{}: there is no kind {kind}; apply its manifest first", subject()));
        return;
    };
    for violation in value_flow::check_flows(&child.spec, flows.iter().copied()) {
        violations.push(format!("{} /spec{}: {}", subject(), violation.pointer, violation.message));
    }
    let Some(schema) = &entry.spec_schema else { return };
    let pending: Vec<_> =
        flows.iter().filter_map(|flow| Pointer::parse(&flow.dependent_field).ok()).collect();
    for violation in schema.violations_pending(&child.spec, &pending) {
        violations.push(format!("{} /spec{}: {}", subject(), violation.pointer, violation.message));
    }
}

fn check_configs(core: &Core, outline: &Outline, violations: &mut Vec<String>) {
    let mut names = HashSet::new();
    for config in &outline.configs {
        let subject = format!("providerconfig/{}", config.name);
        if !names.insert(&config.name) {
            violations.push(format!("{subject}: it is listed twice"));
        }
        let kind = config_kind(config);
        let Some(entry) = core.registry.kind(&kind) else {
            violations.push(format!("{subject}: there is no kind {kind}; apply its manifest first"));
            continue;
        };
        for violation in entry.config_schema.iter().flat_map(|schema| schema.violations(&config.spec)) {
            violations.push(format!("{subject} /spec{}: {}", violation.pointer, violation.message));
        }
    }
}
