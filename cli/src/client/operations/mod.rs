//! Every question this client asks, one file each.

/// A GraphQL document with one named operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The operation's name in the document.
    pub name: &'static str,
    pub document: &'static str,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $constant:ident = $name:literal in $file:literal;)*) => {
        $($(#[$doc])*
        pub const $constant: Operation = Operation { name: $name, document: include_str!($file) };)*
    };
}

operations! {
    /// Applies documents, all or nothing.
    APPLY = "Apply" in "apply.graphql";
    /// Requests deletions, all or none.
    DELETE_MANY = "DeleteMany" in "delete_many.graphql";
    /// Removes a kind version that no resource needs.
    DELETE_KIND = "DeleteKind" in "delete_kind.graphql";
    /// Sets resources aside.
    QUARANTINE = "Quarantine" in "quarantine.graphql";
    /// Ends quarantines.
    RELEASE = "Release" in "release.graphql";
    /// Has resources looked at again.
    RESYNC = "Resync" in "resync.graphql";
    /// Gives teardowns up.
    ABANDON = "Abandon" in "abandon.graphql";
    /// Lets a held prune happen.
    CONFIRM_PRUNE = "ConfirmPrune" in "confirm_prune.graphql";
    /// What depends on what, with the values that flow.
    GRAPH = "Graph" in "graph.graphql";
    /// Everything about one resource, by name.
    RESOURCE = "Resource" in "resource.graphql";
    /// One resource's phase, and why.
    STATE = "State" in "state.graphql";
    /// The same for many, by id.
    STATE_BY_ID = "StateById" in "state_by_id.graphql";
    /// A page of resources as wide as asked.
    RESOURCES = "Resources" in "resources.graphql";
    /// Everything that `describe` shows.
    DESCRIBE = "Describe" in "describe.graphql";
    /// A page of a composition, root first.
    TREE = "Tree" in "tree.graphql";
    /// All kinds with their manifests.
    KINDS = "Kinds" in "kinds.graphql";
    /// All provider configs.
    PROVIDER_CONFIGS = "ProviderConfigs" in "provider_configs.graphql";
    /// A page of the log.
    EVENTS = "Events" in "events.graphql";
    /// Phase counts below a root.
    SUMMARY = "Summary" in "summary.graphql";
    /// Resources below a root that have failed for good.
    FAILED = "Failed" in "failed.graphql";
    /// The end of the log.
    POSITION = "Position" in "position.graphql";
    /// The log, live.
    FOLLOW_EVENTS = "FollowEvents" in "follow_events.graphql";
    /// Changes of resources, live.
    FOLLOW_RESOURCES = "FollowResources" in "follow_resources.graphql";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_bears_its_name() {
        for operation in [
            APPLY,
            DELETE_MANY,
            DELETE_KIND,
            QUARANTINE,
            RELEASE,
            RESYNC,
            ABANDON,
            CONFIRM_PRUNE,
            GRAPH,
            RESOURCE,
            STATE,
            STATE_BY_ID,
            RESOURCES,
            DESCRIBE,
            TREE,
            KINDS,
            PROVIDER_CONFIGS,
            EVENTS,
            SUMMARY,
            FAILED,
            POSITION,
            FOLLOW_EVENTS,
            FOLLOW_RESOURCES,
        ] {
            let named = ["query", "mutation", "subscription"]
                .iter()
                .any(|verb| operation.document.contains(&format!("{verb} {}", operation.name)));
            assert!(named, "{}", operation.name);
        }
    }
}
