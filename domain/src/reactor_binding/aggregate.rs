//! A reactor binding as the fold of its events.

use super::{ReactorBindingCommand, ReactorBindingError, ReactorBindingEvent};
use crate::document::ReactorBindingDocument;
use cqrs_es::Aggregate;
use cqrs_es::event_sink::EventSink;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The live declaration; None before it is declared and after it is deleted.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ReactorBindingState {
    pub document: Option<Arc<ReactorBindingDocument>>,
    /// Number of events applied.
    pub sequence: u64,
}

impl Aggregate for ReactorBindingState {
    const TYPE: &'static str = "reactor_binding";
    type Command = ReactorBindingCommand;
    type Event = ReactorBindingEvent;
    type Error = ReactorBindingError;
    type Services = ();

    async fn handle(
        &mut self,
        command: Self::Command,
        _services: &Self::Services,
        sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        match command {
            ReactorBindingCommand::Declare { document, at } => {
                if self.document.as_deref() != Some(&document) {
                    sink.write(ReactorBindingEvent::Declared { document: Arc::new(*document), at }, self)
                        .await;
                }
                Ok(())
            }
            ReactorBindingCommand::Delete { at } => {
                if self.document.is_none() {
                    return Err(ReactorBindingError::NotFound);
                }
                sink.write(ReactorBindingEvent::Deleted { at }, self).await;
                Ok(())
            }
        }
    }

    fn apply(&mut self, event: Self::Event) {
        self.sequence += 1;
        match event {
            ReactorBindingEvent::Declared { document, .. } => self.document = Some(document),
            ReactorBindingEvent::Deleted { .. } => self.document = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Timestamp;
    use cqrs_es::test::TestFramework;

    fn document(enabled: bool) -> ReactorBindingDocument {
        ReactorBindingDocument {
            name: "bom-synced-to-sink".into(),
            watch_kind: "landingzone".into(),
            watch_kind_version: None,
            transition: "synced".into(),
            reactor: "statussink".into(),
            reactor_version: None,
            label_match: std::iter::once(("tier".to_owned(), "pci".to_owned())).collect(),
            enabled,
        }
    }

    fn declare(enabled: bool) -> ReactorBindingCommand {
        ReactorBindingCommand::Declare { document: Box::new(document(enabled)), at: Timestamp(2) }
    }

    fn declared(enabled: bool) -> ReactorBindingEvent {
        ReactorBindingEvent::Declared { document: Arc::new(document(enabled)), at: Timestamp(2) }
    }

    fn given(events: Vec<ReactorBindingEvent>) -> cqrs_es::test::AggregateTestExecutor<ReactorBindingState> {
        TestFramework::with(()).given(events)
    }

    #[test]
    fn declaring_stores_it_and_declaring_the_same_again_appends_nothing() {
        given(vec![]).when(declare(true)).then_expect_events(vec![declared(true)]);
        given(vec![declared(true)]).when(declare(true)).then_expect_events(vec![]);
    }

    #[test]
    fn disabling_it_is_a_change() {
        given(vec![declared(true)]).when(declare(false)).then_expect_events(vec![declared(false)]);
    }

    #[test]
    fn what_is_gone_cannot_be_deleted_but_declared_again() {
        let delete = || ReactorBindingCommand::Delete { at: Timestamp(3) };
        let deleted = || ReactorBindingEvent::Deleted { at: Timestamp(3) };
        given(vec![declared(true)]).when(delete()).then_expect_events(vec![deleted()]);
        given(vec![]).when(delete()).then_expect_error(ReactorBindingError::NotFound);
        given(vec![declared(true), deleted()])
            .when(delete())
            .then_expect_error(ReactorBindingError::NotFound);
        given(vec![declared(true), deleted()]).when(declare(true)).then_expect_events(vec![declared(true)]);
    }
}
