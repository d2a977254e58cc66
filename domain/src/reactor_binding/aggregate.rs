//! The aggregate as the fold of its events.

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
