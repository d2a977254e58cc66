//! A kind version as the fold of its events.

use super::{KindCommand, KindError, KindEvent, Manifest, gate};
use cqrs_es::Aggregate;
use cqrs_es::event_sink::EventSink;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The live manifest of one version.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct KindState {
    pub manifest: Option<Arc<Manifest>>,
    /// Number of events applied.
    pub sequence: u64,
}

impl Aggregate for KindState {
    const TYPE: &'static str = "kind";
    type Command = KindCommand;
    type Event = KindEvent;
    type Error = KindError;
    type Services = ();

    async fn handle(
        &mut self,
        command: Self::Command,
        _services: &Self::Services,
        sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        match command {
            KindCommand::Publish { manifest, at } => {
                if let Some(live) = &self.manifest {
                    if gate::same(live, &manifest) {
                        return Ok(());
                    }
                    let changes = gate::breaking_changes(live, &manifest);
                    if !changes.is_empty() {
                        return Err(KindError::Breaking { kind: live.kind_ref().to_string(), changes });
                    }
                }
                sink.write(KindEvent::Published { manifest: Arc::new(*manifest), at }, self).await;
                Ok(())
            }
            KindCommand::Delete { at } => {
                if self.manifest.is_none() {
                    return Err(KindError::NotFound);
                }
                sink.write(KindEvent::Deleted { at }, self).await;
                Ok(())
            }
        }
    }

    fn apply(&mut self, event: Self::Event) {
        self.sequence += 1;
        match event {
            KindEvent::Published { manifest, .. } => self.manifest = Some(manifest),
            KindEvent::Deleted { .. } => self.manifest = None,
        }
    }
}
