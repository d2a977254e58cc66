//! A provider config as the fold of its events.

use super::{ProviderConfigCommand, ProviderConfigError, ProviderConfigEvent};
use crate::document::ProviderConfigDocument;
use crate::ids::ResourceId;
use crate::json;
use cqrs_es::Aggregate;
use cqrs_es::event_sink::EventSink;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The live declaration; None before it is declared and after it is deleted.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProviderConfigState {
    pub document: Option<Arc<ProviderConfigDocument>>,
    /// The composer that declared it, and that alone changes and removes it; None: users do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceId>,
    /// Number of events applied.
    pub sequence: u64,
}

impl ProviderConfigState {
    /// Whoever declared it is the only one to touch it.
    fn belongs_to(&self, claimant: Option<ResourceId>) -> Result<(), ProviderConfigError> {
        match (self.owner, self.document.is_some()) {
            (_, false) => Ok(()),
            (owner, true) if owner == claimant => Ok(()),
            (Some(owner), true) => Err(ProviderConfigError::Owned { owner }),
            (None, true) => Err(ProviderConfigError::UserDeclared),
        }
    }

    /// Whether resources of its kind version without a config of their own use it.
    pub fn is_default(&self) -> bool {
        self.document.as_ref().is_some_and(|document| document.is_default)
    }
}

/// Equality as users mean it: the spec by value, everything else as written.
fn same(a: &ProviderConfigDocument, b: &ProviderConfigDocument) -> bool {
    let rest = |c: &ProviderConfigDocument| (c.name.clone(), c.kind.clone(), c.kind_version, c.is_default);
    rest(a) == rest(b) && a.data == b.data && json::equal(&a.spec, &b.spec)
}

impl Aggregate for ProviderConfigState {
    const TYPE: &'static str = "provider_config";
    type Command = ProviderConfigCommand;
    type Event = ProviderConfigEvent;
    type Error = ProviderConfigError;
    type Services = ();

    async fn handle(
        &mut self,
        command: Self::Command,
        _services: &Self::Services,
        sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        match command {
            ProviderConfigCommand::Declare { document, owner, at } => {
                // Equality first: whoever says what is so already changes nothing and takes nothing over.
                if self.document.as_deref().is_some_and(|live| same(live, &document)) && self.owner == owner {
                    return Ok(());
                }
                self.belongs_to(owner)?;
                let document = Arc::new(*document);
                sink.write(ProviderConfigEvent::Declared { document, owner, at }, self).await;
                Ok(())
            }
            ProviderConfigCommand::Delete { owner, at } => {
                if self.document.is_none() {
                    return Err(ProviderConfigError::NotFound);
                }
                self.belongs_to(owner)?;
                sink.write(ProviderConfigEvent::Deleted { at }, self).await;
                Ok(())
            }
        }
    }

    fn apply(&mut self, event: Self::Event) {
        self.sequence += 1;
        match event {
            ProviderConfigEvent::Declared { document, owner, .. } => {
                self.document = Some(document);
                self.owner = owner;
            }
            ProviderConfigEvent::Deleted { .. } => {
                self.document = None;
                self.owner = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Timestamp;
    use cqrs_es::test::TestFramework;
    use serde_json::{Value, json};

    fn document(spec: Value, is_default: bool) -> ProviderConfigDocument {
        ProviderConfigDocument {
            name: "vpc-default".into(),
            kind: "vpc".into(),
            kind_version: 1,
            is_default,
            spec,
            data: None,
        }
    }

    fn declare(spec: Value, is_default: bool) -> ProviderConfigCommand {
        ProviderConfigCommand::Declare {
            document: Box::new(document(spec, is_default)),
            owner: None,
            at: Timestamp(2),
        }
    }

    fn declared(spec: Value, is_default: bool) -> ProviderConfigEvent {
        ProviderConfigEvent::Declared {
            document: Arc::new(document(spec, is_default)),
            owner: None,
            at: Timestamp(2),
        }
    }

    fn given(events: Vec<ProviderConfigEvent>) -> cqrs_es::test::AggregateTestExecutor<ProviderConfigState> {
        TestFramework::with(()).given(events)
    }

    #[test]
    fn declaring_stores_it_and_declaring_the_same_again_appends_nothing() {
        given(vec![])
            .when(declare(json!({"n": 1}), true))
            .then_expect_events(vec![declared(json!({"n": 1}), true)]);
        given(vec![declared(json!({"n": 1}), true)])
            .when(declare(json!({"n": 1.0}), true))
            .then_expect_events(vec![]);
    }

    #[test]
    fn a_changed_spec_or_default_mark_is_declared_anew() {
        for (spec, is_default) in
            [(json!({"n": 2}), true), (json!({"n": 1}), false), (json!({"n": null}), true)]
        {
            given(vec![declared(json!({"n": 1}), true)])
                .when(declare(spec.clone(), is_default))
                .then_expect_events(vec![declared(spec, is_default)]);
        }
    }

    #[test]
    fn what_is_gone_cannot_be_deleted_but_declared_again() {
        let delete = || ProviderConfigCommand::Delete { owner: None, at: Timestamp(3) };
        let deleted = || ProviderConfigEvent::Deleted { at: Timestamp(3) };
        let live = || declared(json!({}), true);
        given(vec![live()]).when(delete()).then_expect_events(vec![deleted()]);
        given(vec![]).when(delete()).then_expect_error(ProviderConfigError::NotFound);
        given(vec![live(), deleted()]).when(delete()).then_expect_error(ProviderConfigError::NotFound);
        given(vec![live(), deleted()]).when(declare(json!({}), true)).then_expect_events(vec![live()]);
    }

    #[test]
    fn only_whoever_declared_it_touches_it() {
        let composer = Some(ResourceId(uuid::Uuid::from_u128(7)));
        let by = |owner| ProviderConfigCommand::Declare {
            document: Box::new(document(json!({"n": 2}), false)),
            owner,
            at: Timestamp(2),
        };
        let owned = |owner| ProviderConfigEvent::Declared {
            document: Arc::new(document(json!({"n": 1}), false)),
            owner,
            at: Timestamp(2),
        };
        let other = ResourceId(uuid::Uuid::from_u128(7));
        given(vec![owned(composer)])
            .when(by(None))
            .then_expect_error(ProviderConfigError::Owned { owner: other });
        given(vec![owned(None)]).when(by(composer)).then_expect_error(ProviderConfigError::UserDeclared);
        given(vec![owned(composer)])
            .when(ProviderConfigCommand::Delete { owner: None, at: Timestamp(3) })
            .then_expect_error(ProviderConfigError::Owned { owner: other });
        given(vec![owned(composer), ProviderConfigEvent::Deleted { at: Timestamp(3) }])
            .when(by(None))
            .then_expect_events(vec![ProviderConfigEvent::Declared {
                document: Arc::new(document(json!({"n": 2}), false)),
                owner: None,
                at: Timestamp(2),
            }]);
    }

    #[test]
    fn it_is_the_default_while_declared_so() {
        let mut state = ProviderConfigState::default();
        assert!(!state.is_default());
        state.apply(declared(json!({}), true));
        assert!(state.is_default());
        state.apply(declared(json!({}), false));
        assert!(!state.is_default());
        assert_eq!(state.sequence, 2);
    }
}
