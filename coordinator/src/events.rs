//! What happened, told to everyone who listens.
//!
//! Within one process this is a broadcast channel; a channel between replicas can feed the same
//! bus. A listener that is too slow misses events and is told how many: pages load again then.

use rookery_common::protocol::events::Event;
use tokio::sync::broadcast;

/// Events that a slow listener may lie behind.
const BACKLOG: usize = 1024;

/// The bus.
#[derive(Debug, Clone)]
pub struct EventBus(broadcast::Sender<Event>);

impl Default for EventBus {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl EventBus {
    /// Tells everyone.
    pub fn publish(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.0.send(event);
    }

    /// Tells everyone, in order.
    pub fn publish_all(&self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.publish(event));
    }

    /// Listens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
