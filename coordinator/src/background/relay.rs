//! Events between this coordinator and the others on its ledger (PostgreSQL's NOTIFY).

use std::time::Duration;

use rookery_common::protocol::events::Event;
use tokio::sync::broadcast::error::RecvError;

use crate::app::App;
use crate::db::DbError;
use crate::db::sql::announcements::Heard;

/// How long events are batched before they are sent to other coordinators.
const GATHER: Duration = Duration::from_millis(25);
/// Pause after the database could not be reached.
const PAUSE: Duration = Duration::from_secs(1);

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
    let mut own = app.events.subscribe_own();
    loop {
        let mut events = match own.recv().await {
            Ok(event) => vec![event],
            Err(RecvError::Lagged(events)) => vec![Event::Missed {
                events: Some(events),
            }],
            Err(RecvError::Closed) => return,
        };
        tokio::time::sleep(GATHER).await;
        while let Ok(event) = own.try_recv() {
            events.push(event);
        }
        if let Err(error) = app.db.announce(&events).await {
            tracing::warn!(
                %error,
                events = events.len(),
                "RK-0236: A background task failed: events could not be sent to other coordinators."
            );
        }
    }
}

/// Whether listeners here are told an event of another coordinator: not of a board for which there is no room, that goes
/// on too soon, or that ends and is not shown.
fn is_news(app: &App, event: &Event) -> bool {
    match event {
        Event::Board(board) => app.live_boards.take(board.clone(), app.clock.now()),
        Event::BoardEnded { job, .. } => app.live_boards.remove(*job).is_some(),
        _ => true,
    }
}

fn warn_of_subscription(error: &DbError) {
    tracing::warn!(
        %error,
        "RK-0236: A background task failed: the subscription to other coordinators' events ended."
    );
}

/// Tells here what happens at others.
async fn hear(app: &App) {
    loop {
        match app.db.announcements().await {
            Ok(None) => return,
            Ok(Some(mut announcements)) => loop {
                match announcements.next().await {
                    Ok(Heard::Events(mut events)) => {
                        events.retain(|event| is_news(app, event));
                        app.events.publish_heard(events);
                    }
                    Ok(Heard::Gap) => {
                        tracing::warn!("Events of other coordinators were missed.");
                        app.events
                            .publish_heard(vec![Event::Missed { events: None }]);
                    }
                    Err(error) => {
                        warn_of_subscription(&error);
                        break;
                    }
                }
            },
            Err(error) => warn_of_subscription(&error),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
