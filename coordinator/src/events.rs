//! What happened, told to everyone who listens.
//!
//! ```text
//! handlers ──> bus ──> listeners of this process (pages, /api/v1/events)
//!               │ ^
//!               v │ `relay`
//!        other coordinators on the same ledger (PostgreSQL's NOTIFY)
//! ```
//!
//! A listener that is too slow misses events and is told so, as are all when events of another coordinator were lost:
//! pages are asked for again then.

use rookery_common::protocol::events::Event;
use tokio::sync::broadcast;

/// Events that a slow listener may lie behind.
const BACKLOG: usize = 1024;

#[derive(Debug, Clone)]
pub struct EventBus {
    all: broadcast::Sender<Event>,
    own: broadcast::Sender<Event>,
}

impl Default for EventBus {
    fn default() -> Self {
        Self {
            all: broadcast::channel(BACKLOG).0,
            own: broadcast::channel(BACKLOG).0,
        }
    }
}

impl EventBus {
    pub fn publish(&self, event: Event) {
        // An error only means that there is no listener.
        let _ = self.own.send(event.clone());
        let _ = self.all.send(event);
    }

    /// Tells everyone, in order.
    pub fn publish_all(&self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.publish(event));
    }

    /// Tells listeners of this process what happened at another coordinator.
    pub fn publish_heard(&self, events: Vec<Event>) {
        for event in events {
            let _ = self.all.send(event);
        }
    }

    /// Listens to what happens in this process from now on.
    pub fn subscribe_own(&self) -> broadcast::Receiver<Event> {
        self.own.subscribe()
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.all.subscribe()
    }
}
