//! What happened, told to everyone who listens.
//!
//! ```text
//! handlers ──> bus ──> listeners of this process (pages, /api/v1/events)
//!               │ ^
//!               v │ relay
//!        other coordinators on the same ledger (PostgreSQL's NOTIFY)
//! ```
//!
//! A listener that is too slow misses events and is told how many: pages load again then.

use std::time::Duration;

use rookery_common::protocol::events::Event;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::app::App;
use crate::store::sql::announcements::Heard;

/// Events that a slow listener may lie behind.
const BACKLOG: usize = 1024;
/// How long events are gathered before they are told to other coordinators together.
const GATHER: Duration = Duration::from_millis(25);
/// Pause after the database could not be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// The bus.
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
    /// Tells everyone.
    pub fn publish(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.own.send(event.clone());
        let _ = self.all.send(event);
    }

    /// Tells everyone, in order.
    pub fn publish_all(&self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.publish(event));
    }

    /// Listens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.all.subscribe()
    }
}

/// Relays events between this coordinator and the others on its ledger until it stops; ends at
/// once where there can be no others.
pub async fn relay(app: App) {
    let stopping = app.stopping.clone();
    let both = async {
        tokio::join!(tell(&app), hear(&app));
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = both => {}
    }
}

/// Tells others what happens here.
async fn tell(app: &App) {
    let mut own = app.events.own.subscribe();
    loop {
        let mut events = match own.recv().await {
            Ok(event) => vec![event],
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        tokio::time::sleep(GATHER).await;
        while let Ok(event) = own.try_recv() {
            events.push(event);
        }
        if let Err(error) = app.store.announce(&events).await {
            tracing::warn!(%error, events = events.len(), "Events could not be sent to other coordinators.");
        }
    }
}

/// Tells here what happens at others.
async fn hear(app: &App) {
    loop {
        match app.store.announcements().await {
            Ok(None) => return,
            Ok(Some(mut announcements)) => loop {
                match announcements.next().await {
                    Ok(Heard::Events(events)) => events.into_iter().for_each(|event| {
                        // An error only says that nobody listens.
                        let _ = app.events.all.send(event);
                    }),
                    Ok(Heard::Gap) => tracing::warn!("Events of other coordinators were missed."),
                    Err(error) => {
                        tracing::warn!(%error, "The subscription to other coordinators' events failed.");
                        break;
                    }
                }
            },
            Err(error) => {
                tracing::warn!(%error, "The subscription to other coordinators' events failed.");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
