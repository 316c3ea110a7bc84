//! Webhooks: addresses of the operator's choice (a Discord or Slack channel, or a program) that are told of promotions and
//! verdicts. [`alerts`](super::alerts) go to one of their own.
//!
//! Each coordinator tells what happened at it, so several on one ledger tell everything once.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::text::without_secrets;
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::SiteUrl;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// Attempts at one message.
const ATTEMPTS: u32 = 4;
/// Messages that may wait while the webhook does not answer.
const WAITING: usize = 256;
/// Pause before the second attempt; each further one is four times as long.
const PAUSE: Duration = Duration::from_secs(2);

/// Whom the operator wants told.
#[derive(Debug, Clone, Default)]
pub struct Webhooks {
    /// Of promotions and verdicts.
    pub events: Option<Webhook>,
    pub alerts: Option<Webhook>,
}

#[derive(Debug, Clone)]
pub struct Webhook {
    url: Url,
    client: Client,
    pause: Duration,
}

impl Webhook {
    /// Reads an address such as `https://discord.com/api/webhooks/…`.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.with_context(|| {
            let shown = without_secrets(text);
            format!("{shown:?} is no address for a webhook: write https://example.org/hook")
        })?;
        let client = Client::builder().timeout(ANSWER).redirect(Policy::none());
        Ok(Self {
            url,
            client: client.build().context("no webhook can be called")?,
            pause: PAUSE,
        })
    }

    /// Posts a message, in the words of Discord (`content`) and Slack (`text`), with what programs read in `field`.
    pub(super) async fn post(&self, message: &str, field: &str, value: &impl Serialize) {
        let body = json!({ "content": message, "text": message, field: value });
        let mut pause = self.pause;
        for attempt in 1..=ATTEMPTS {
            let answer = self.client.post(self.url.clone()).json(&body).send().await;
            match answer.and_then(reqwest::Response::error_for_status) {
                Ok(_) => return,
                Err(error) => {
                    let error = error.without_url();
                    tracing::warn!(%error, attempt, of = ATTEMPTS, "RK-0232: The webhook could not be called.");
                }
            }
            if attempt < ATTEMPTS {
                tokio::time::sleep(pause).await;
                pause *= 4;
            }
        }
    }
}

/// A message that waits to be told, with its event.
type Waiting = (Event, String);

/// Tells what happens at this coordinator until it stops.
pub async fn keep_telling(app: App, webhook: Webhook) {
    let own = app.events.subscribe_own();
    tell_all(own, app.site.as_ref(), &app.stopping, &webhook).await;
}

/// Events are read while the webhook is called. It may take minutes to answer, and the bus keeps only the newest.
async fn tell_all(
    own: broadcast::Receiver<Event>,
    site: Option<&SiteUrl>,
    stopping: &CancellationToken,
    webhook: &Webhook,
) {
    let (queue, mut waiting) = mpsc::channel(WAITING);
    let collecting = async {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = collect(own, site, queue) => {}
        }
    };
    let telling = async {
        while let Some((event, message)) = waiting.recv().await
            && !stopping.is_cancelled()
        {
            webhook.post(&message, "event", &event).await;
        }
    };
    tokio::join!(collecting, telling);
}

/// Queues what is to be told, until there are no more events.
async fn collect(
    mut own: broadcast::Receiver<Event>,
    site: Option<&SiteUrl>,
    queue: mpsc::Sender<Waiting>,
) {
    loop {
        match own.recv().await {
            Ok(event) => {
                let Some(message) = message(&event, site) else {
                    continue;
                };
                if queue.try_send((event, message)).is_err() {
                    tracing::warn!(
                        waiting = WAITING,
                        "RK-0232: The webhook is too slow: an event was dropped."
                    );
                }
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "RK-0232: The webhook may lack events: the coordinator dropped some under load."
                );
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// The webhook's text for an event; none for most.
fn message(event: &Event, site: Option<&SiteUrl>) -> Option<String> {
    let (text, path) = match event {
        Event::Promotion { run, number, .. } => (
            format!("Network #{number} is the best of {run} now."),
            format!("/runs/{run}/networks/{number}"),
        ),
        Event::Rollback { run, number, .. } => (
            format!(
                "Network #{number} is the best of {run} again: ratings say that it is stronger than its successors."
            ),
            format!("/runs/{run}/networks/{number}"),
        ),
        Event::Match {
            run,
            id,
            status: MatchStatus::Rejected,
            tally,
            ..
        } => (
            format!(
                "A candidate of {run} was rejected: +{} ={} -{}.",
                tally.wins, tally.draws, tally.losses
            ),
            format!("/matches/{id}"),
        ),
        _ => return None,
    };
    Some(with_link(text, site, &path))
}

/// A text with the address of a page, if the coordinator's is known.
pub(super) fn with_link(text: String, site: Option<&SiteUrl>, path: &str) -> String {
    match site {
        Some(site) => format!("{text} {site}{path}"),
        None => text,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::Json;
    use axum::http::StatusCode;
    use axum::routing::post;
    use rookery_common::ids::{ContentHash, NetworkNumber};
    use serde_json::Value;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::events::EventBus;

    /// A webhook whose server answers each post by a function, until the test's runtime ends.
    async fn served<F>(answer: impl Fn(Value) -> F + Clone + Send + Sync + 'static) -> Webhook
    where
        F: Future<Output = StatusCode> + Send,
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handler = async move |Json(body): Json<Value>| answer(body).await;
        let router = axum::Router::new().route("/hook", post(handler));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Webhook::read(&format!("http://{address}/hook")).unwrap()
    }

    /// A webhook that hangs with each message until its semaphore has a permit, and the messages.
    pub(in crate::background) async fn hanging()
    -> (Webhook, mpsc::UnboundedReceiver<Value>, Arc<Semaphore>) {
        let (sent, got) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&permits);
        let mut webhook = served(move |body| {
            let held = Arc::clone(&held);
            sent.send(body).unwrap();
            async move {
                held.acquire().await.unwrap().forget();
                StatusCode::NO_CONTENT
            }
        })
        .await;
        // Without a timeout, after which it would be called again.
        webhook.client = Client::new();
        (webhook, got, permits)
    }

    fn promotion() -> Event {
        promotion_of(12)
    }

    fn promotion_of(number: u32) -> Event {
        Event::Promotion {
            run: "main".parse().unwrap(),
            number: NetworkNumber(number),
            hash: ContentHash::of(b""),
        }
    }

    #[test]
    fn a_promotion_has_a_message_with_a_link_and_ratings_have_none() {
        let site = SiteUrl::read("https://chess.example.org").unwrap();
        assert_eq!(
            message(&promotion(), Some(&site)).unwrap(),
            "Network #12 is the best of main now. https://chess.example.org/runs/main/networks/12"
        );
        let ratings = Event::Ratings {
            run: "main".parse().unwrap(),
        };
        assert_eq!(message(&ratings, None), None);
    }

    #[test]
    fn only_addresses_of_http_are_taken_and_secrets_are_not_shown() {
        assert!(Webhook::read("https://discord.com/api/webhooks/1/x").is_ok());
        for text in ["", "discord.com", "ftp://example.org/x?key=secret"] {
            let error = Webhook::read(text).unwrap_err().to_string();
            assert!(
                error.contains("no address") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_message_that_fails_is_posted_again() {
        let (sent, mut got) = mpsc::unbounded_channel::<Value>();
        let calls = Arc::new(AtomicU32::new(0));
        let mut webhook = served(move |body| {
            let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            if !is_first {
                sent.send(body).unwrap();
            }
            std::future::ready(if is_first {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::NO_CONTENT
            })
        })
        .await;
        webhook.pause = Duration::from_millis(1);
        webhook.post("news", "event", &promotion()).await;
        let body = got.recv().await.unwrap();
        assert_eq!(
            (&body["content"], &body["text"]),
            (&json!("news"), &json!("news"))
        );
        assert_eq!(body["event"]["number"], 12);
    }

    /// While the webhook hangs, more happens than the bus keeps.
    #[tokio::test]
    async fn a_webhook_that_hangs_gets_later_events_afterwards() {
        let (webhook, mut got, permits) = hanging().await;
        let (bus, stopping) = (EventBus::default(), CancellationToken::new());
        let (own, stop) = (bus.subscribe_own(), stopping.clone());
        let telling = tokio::spawn(async move { tell_all(own, None, &stop, &webhook).await });
        bus.publish(promotion_of(1));
        assert_eq!(got.recv().await.unwrap()["event"]["number"], 1);
        bus.publish(promotion_of(2));
        for _ in 0..5000 {
            let run = "main".parse().unwrap();
            bus.publish(Event::Ratings { run });
            tokio::task::yield_now().await;
        }
        permits.add_permits(2);
        assert_eq!(got.recv().await.unwrap()["event"]["number"], 2);
        stopping.cancel();
        telling.await.unwrap();
    }
}
