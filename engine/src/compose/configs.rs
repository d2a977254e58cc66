//! Provider configs that a composer makes, and their end.
//!
//! They are declared before the children that refer to them, and go after whatever was dropped is gone: a teardown still needs
//! its config. With the composer itself go all of them, last.

use super::pass::Stop;
use crate::engine::Core;
use crate::evaluate::Shared;
use converge_domain::document::ProviderConfigDocument;
use converge_domain::guard::Guard;
use converge_domain::provider_config::{ProviderConfigCommand, ProviderConfigError};
use converge_domain::resource::{Conflict, Pass, ResourceState};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, DomainError, ResourceId, ResourceRef, Sequence, named,
};
use converge_event_store::{CommandGroup, ExecuteError, StoreError};

impl Shared {
    /// Declares what an output lists; the ones that others hold are conflicts.
    pub(super) async fn declare_configs(
        &self,
        composer: ResourceId,
        pass: &Pass,
        configs: &[ProviderConfigDocument],
    ) -> Result<Vec<Conflict>, Stop> {
        let mut conflicts = Vec::new();
        for config in configs {
            let command = ProviderConfigCommand::Declare {
                document: Box::new(config.clone()),
                owner: Some(composer),
                at: self.core().now(),
            };
            let mut group = group(self.core(), &config.name, command);
            group.guards.push(Guard::InPass { id: composer, pass_id: pass.pass_id });
            let id = group.steps[0].0.id;
            let owner = match self.core().log.execute(group).await {
                Ok(_) => continue,
                Err(ExecuteError::Domain {
                    error: DomainError::ProviderConfig(ProviderConfigError::Owned { owner }),
                    ..
                }) => Some(owner),
                Err(ExecuteError::Domain {
                    error: DomainError::ProviderConfig(ProviderConfigError::UserDeclared),
                    ..
                }) => None,
                Err(error) => return Err(super::pass::ended(error)),
            };
            let child = ResourceRef::new("providerconfig", &config.name);
            conflicts.push(Conflict { child, holder: ResourceId(id.0), owner });
        }
        Ok(conflicts)
    }

    /// Removes the configs of a composer that its last pass did not list. The guard is the composer as it was read: a pass
    /// that wants one of them after all has moved it.
    pub(crate) async fn collect_unlisted_configs(&self, composer: &ResourceState) -> Result<(), StoreError> {
        let id = composer.id().id;
        for name in self.core().registry.configs_of(id) {
            if !composer.configs.contains(&name) {
                let guard = Guard::Unmoved { id: id.into(), sequence: Sequence(composer.sequence) };
                remove(self.core(), id, &name, guard).await?;
            }
        }
        Ok(())
    }
}

/// Removes every config of a composer that is gone.
pub(crate) async fn collect_configs_of_gone(core: &Core, composer: ResourceId) -> Result<(), StoreError> {
    for name in core.registry.configs_of(composer) {
        remove(core, composer, &name, Guard::Unmoved { id: composer.into(), sequence: Sequence(0) }).await?;
    }
    Ok(())
}

async fn remove(core: &Core, owner: ResourceId, name: &str, guard: Guard) -> Result<(), StoreError> {
    let command = ProviderConfigCommand::Delete { owner: Some(owner), at: core.now() };
    let mut group = group(core, name, command);
    group.guards.push(guard);
    match core.log.execute(group).await {
        // Gone already, somebody else's by now, or its composer moved and is looked at again.
        Ok(_) | Err(ExecuteError::Domain { .. } | ExecuteError::Conflict { .. }) => Ok(()),
        Err(ExecuteError::Store(error)) => Err(error),
        Err(error) => Err(StoreError::Retry(error.to_string())),
    }
}

fn group(core: &Core, name: &str, command: ProviderConfigCommand) -> CommandGroup {
    let id = AggregateId(named(AggregateType::ProviderConfig.as_str(), name));
    let address = Address { aggregate_type: AggregateType::ProviderConfig, id };
    CommandGroup {
        metadata: core.metadata("compose"),
        steps: vec![(address, AnyCommand::ProviderConfig(command))],
        ..CommandGroup::default()
    }
}
