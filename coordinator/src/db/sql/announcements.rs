//! Events among the coordinators that share a PostgreSQL, by `LISTEN` and `NOTIFY`.
//!
//! Who only listens does not notice that the way to the server is gone. So a connection that was
//! silent for a while is asked whether it is well, and another takes its place if it is not.

use std::time::Duration;

use rookery_common::protocol::events::Event;
use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;
use sqlx::postgres::PgListener;
use uuid::Uuid;

use crate::db::error::{DbError, Result};
use crate::db::sql::deadlines::within;

/// How long nothing is heard before the connection is asked whether it is well.
const SILENCE: Duration = Duration::from_secs(60);
/// How long it may take to answer, and another one to be made.
const ANSWER: Duration = Duration::from_secs(10);
/// The channel's name.
const CHANNEL: &str = "rookery_events";
/// Bytes of events that one notification holds; PostgreSQL allows 8,000 in all.
const BYTES: usize = 7_000;

/// One of the coordinators.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    id: Uuid,
    url: String,
}

/// What a notification holds.
#[derive(Serialize, Deserialize)]
struct Announcement<'a> {
    from: Uuid,
    #[serde(borrow)]
    events: Vec<&'a serde_json::value::RawValue>,
}

impl Replica {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            id: Uuid::new_v4(),
            url: url.to_owned(),
        }
    }

    /// Notifications that hold these events. One that is too long for any is left out.
    pub(crate) fn payloads(&self, events: &[Event]) -> Vec<String> {
        let mut payloads = Vec::new();
        let mut begun: Vec<Box<serde_json::value::RawValue>> = Vec::new();
        let mut bytes = 0;
        let close = |events: &mut Vec<Box<serde_json::value::RawValue>>| {
            let announcement = Announcement {
                from: self.id,
                events: events.iter().map(AsRef::as_ref).collect(),
            };
            let payload = serde_json::to_string(&announcement);
            events.clear();
            payload.ok()
        };
        for event in events {
            let Ok(json) = serde_json::value::to_raw_value(event) else {
                continue;
            };
            let length = json.get().len() + 1;
            if length > BYTES {
                tracing::warn!(
                    kind = event.kind(),
                    length,
                    "An event is too long to be sent to other coordinators."
                );
                continue;
            }
            if bytes + length > BYTES {
                payloads.extend(close(&mut begun));
                bytes = 0;
            }
            bytes += length;
            begun.push(json);
        }
        if !begun.is_empty() {
            payloads.extend(close(&mut begun));
        }
        payloads
    }

    pub(crate) async fn listen(&self) -> Result<ReplicaEvents> {
        let begin = async {
            let mut listener = PgListener::connect(&self.url).await?;
            listener.listen(CHANNEL).await?;
            Ok::<_, sqlx::Error>(listener)
        };
        let listener = within(ANSWER, begin).await??;
        Ok(ReplicaEvents {
            replica: self.clone(),
            listener,
        })
    }
}

pub(crate) async fn notify(conn: &mut AnyConnection, payload: &str) -> Result<()> {
    sqlx::query("SELECT pg_notify('rookery_events', $1)")
        .bind(payload)
        .execute(conn)
        .await?;
    Ok(())
}

/// What other coordinators tell.
pub struct ReplicaEvents {
    /// The coordinator that listens.
    replica: Replica,
    listener: PgListener,
}

#[derive(Debug, PartialEq)]
pub enum Heard {
    /// Events of another coordinator.
    Events(Vec<Event>),
    /// The connection was lost and made anew: events may have been missed.
    Gap,
}

impl ReplicaEvents {
    /// What is told next.
    /// After an error, calling again tries again.
    pub async fn next(&mut self) -> Result<Heard> {
        self.next_within(SILENCE, ANSWER).await
    }

    /// The same with other limits: how long nothing is heard before the connection is asked whether
    /// it is well, and how long it may take to answer.
    pub async fn next_within(&mut self, silence: Duration, answer: Duration) -> Result<Heard> {
        loop {
            let Ok(received) = within(silence, self.listener.try_recv()).await else {
                if self.is_well(answer).await {
                    continue;
                }
                tracing::debug!(
                    "The connection that hears of other coordinators' events is dead; another is \
                     made."
                );
                *self = self.replica.listen().await?;
                return Ok(Heard::Gap);
            };
            let Some(notification) = received? else {
                return Ok(Heard::Gap);
            };
            if let Some(events) = self.read(notification.payload())? {
                return Ok(Heard::Events(events));
            }
        }
    }

    /// Whether the server answers on the connection in time.
    async fn is_well(&mut self, answer: Duration) -> bool {
        let question = sqlx::query("SELECT 1").execute(&mut self.listener);
        matches!(within(answer, question).await, Ok(Ok(_)))
    }

    /// The events of a payload, unless they are this coordinator's own. Kinds that this build does
    /// not know are left out: another may be newer.
    fn read(&self, payload: &str) -> Result<Option<Vec<Event>>> {
        let unreadable = |error: serde_json::Error| DbError::Unreadable {
            what: "announcement",
            reason: error.to_string(),
        };
        let announcement: Announcement<'_> = serde_json::from_str(payload).map_err(unreadable)?;
        if announcement.from == self.replica.id {
            return Ok(None);
        }
        let events = announcement.events.into_iter();
        let known = events.filter_map(|event| serde_json::from_str(event.get()).ok());
        Ok(Some(known.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_events_go_into_few_notifications_of_bounded_length() {
        let replica = Replica::new("postgres://x/y");
        let events: Vec<Event> = (0..500)
            .map(|step| Event::Metrics {
                run: "main".parse().unwrap(),
                step,
            })
            .collect();
        let payloads = replica.payloads(&events);
        assert!(payloads.len() < 10, "{}", payloads.len());
        assert!(payloads.iter().all(|payload| payload.len() < 8_000));
        let told: usize = payloads
            .iter()
            .map(|payload| {
                serde_json::from_str::<Announcement<'_>>(payload)
                    .unwrap()
                    .events
                    .len()
            })
            .sum();
        assert_eq!(told, 500);
        assert!(replica.payloads(&[]).is_empty());
    }
}
