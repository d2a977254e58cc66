//! The resource aggregate: commands in, events out.

use super::{ResourceCommand, ResourceError, ResourceEvent, ResourceState, decide};
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
        command: Self::Command,
        _services: &Self::Services,
        sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        for event in decide::decide(self, command)? {
            sink.write(event, self).await;
        }
        Ok(())
    }

    fn apply(&mut self, event: Self::Event) {
        self.fold(event);
    }
}
