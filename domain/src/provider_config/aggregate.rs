//! The aggregate as the fold of its events.

use super::{ProviderConfigCommand, ProviderConfigError, ProviderConfigEvent};
use crate::document::ProviderConfigDocument;
use cqrs_es::Aggregate;
use cqrs_es::event_sink::EventSink;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The live declaration; None before it is declared and after it is deleted.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProviderConfigState {
    pub document: Option<Arc<ProviderConfigDocument>>,
    /// Number of events applied.
    pub sequence: u64,
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
            ProviderConfigCommand::Declare { document, at } => {
                if self.document.as_deref() != Some(&document) {
                    sink.write(ProviderConfigEvent::Declared { document: Arc::new(*document), at }, self)
                        .await;
                }
                Ok(())
            }
            ProviderConfigCommand::Delete { at } => {
                if self.document.is_none() {
                    return Err(ProviderConfigError::NotFound);
                }
                sink.write(ProviderConfigEvent::Deleted { at }, self).await;
                Ok(())
            }
        }
    }

    fn apply(&mut self, event: Self::Event) {
        self.sequence += 1;
        match event {
            ProviderConfigEvent::Declared { document, .. } => self.document = Some(document),
            ProviderConfigEvent::Deleted { .. } => self.document = None,
        }
    }
}
