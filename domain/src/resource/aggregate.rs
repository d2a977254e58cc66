//! The resource aggregate.

use super::{ResourceCommand, ResourceError, ResourceEvent, ResourceState};
use cqrs_es::Aggregate;
use cqrs_es::event_sink::EventSink;

impl Aggregate for ResourceState {
    const TYPE: &'static str = "resource";
    type Command = ResourceCommand;
    type Event = ResourceEvent;
    type Error = ResourceError;
    type Services = ();

    async fn handle(
        &mut self,
        _command: Self::Command,
        _services: &Self::Services,
        _sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    fn apply(&mut self, _event: Self::Event) {
        self.sequence += 1;
    }
}
