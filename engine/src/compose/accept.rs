//! Whole-output validation: nothing of an output is applied before all of it was found good.

use super::output::{self, Output};
use crate::engine::Core;
use converge_domain::composition::{EdgeItem, Graph};
use converge_domain::json::pointer::Pointer;
use converge_domain::resource::{FieldFlow, ResourceState};
use converge_domain::{ClaimId, KindRef, ResourceRef, value_flow};
use converge_event_store::StoreError;
use std::collections::HashMap;

/// Violations quoted in a failure message.
const QUOTED_MAX: usize = 20;

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
    let output = output::read(core, composer.id().id, claim_id).await?;
    let found = [output.children.len() as u64, output.edges.len() as u64, output.configs];
    if output.broken.is_empty() && found != announced {
        return Ok(Acceptance::Incomplete(format!(
            "the composition arrived incomplete: {announced:?} children, edges and configs announced, {found:?} received"
        )));
    }
    let mut violations = output.broken.clone();
    if output.configs > 0 {
        violations.push("configs: this version does not take provider configs from composers yet".to_owned());
    }
    // A kind that this process has not heard of yet would otherwise refuse the composition for good.
    let kinds = output.children.iter().map(|child| KindRef::new(&child.kind, child.kind_version));
    core.registry.ensure(core.store.as_ref(), kinds).await?;
    violations.extend(check_children(core, composer, &output));
    if violations.is_empty() {
        violations.extend(check_graph(&output));
    }
    if violations.is_empty() {
        let [children, edges, _] = found;
        return Ok(Acceptance::Accepted { digest: output.digest, children, edges });
    }
    let more = violations.len().saturating_sub(QUOTED_MAX);
    violations.truncate(QUOTED_MAX);
    let mut message = format!("the composition is refused: {}", violations.join("; "));
    if more > 0 {
        message.push_str(&format!("; and {more} more"));
    }
    Ok(Acceptance::Refused(message))
}

fn check_graph(output: &Output) -> Vec<String> {
    match graph(output) {
        Ok(_) => vec![],
        Err(errors) => errors,
    }
}

/// The graph of an output.
pub(super) fn graph(output: &Output) -> Result<Graph, Vec<String>> {
    Graph::build(
        output.children.iter().map(|child| (child.kind.as_str(), child.name.as_str())),
        &output.edges,
    )
    .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn check_children(core: &Core, composer: &ResourceState, output: &Output) -> Vec<String> {
    let flows = flows_by_child(&output.edges);
    let mut violations = Vec::new();
    for child in &output.children {
        let subject = format!("{}/{}", child.kind, child.name);
        if child.kind == composer.id().kind && child.name == composer.id().name {
            violations.push(format!("{subject}: a composer cannot be its own child"));
        }
        let kind = KindRef::new(&child.kind, child.kind_version);
        let Some(entry) = core.registry.kind(&kind) else {
            violations.push(format!("{subject}: there is no kind {kind}; apply its manifest first"));
            continue;
        };
        let flows: &[&FieldFlow] =
            flows.get(&(child.kind.as_str(), child.name.as_str())).map_or(&[], Vec::as_slice);
        for violation in value_flow::check_flows(&child.spec, flows.iter().copied()) {
            violations.push(format!("{subject} /spec{}: {}", violation.pointer, violation.message));
        }
        let Some(schema) = &entry.spec_schema else { continue };
        let pending: Vec<_> =
            flows.iter().filter_map(|flow| Pointer::parse(&flow.dependent_field).ok()).collect();
        for violation in schema.violations_pending(&child.spec, &pending) {
            violations.push(format!("{subject} /spec{}: {}", violation.pointer, violation.message));
        }
        if violations.len() > 1000 {
            break;
        }
    }
    violations
}

/// The flows into each child.
fn flows_by_child(edges: &[EdgeItem]) -> HashMap<(&str, &str), Vec<&FieldFlow>> {
    let mut flows: HashMap<(&str, &str), Vec<&FieldFlow>> = HashMap::new();
    for edge in edges {
        let ResourceRef { kind, name } = &edge.from;
        flows.entry((kind, name)).or_default().extend(&edge.values);
    }
    flows
}
