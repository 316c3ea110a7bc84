//! What happens, as server-sent events.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _};
use rookery_common::protocol::{Problem, events as protocol};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::Client;
use crate::app::App;
use crate::limits::TooMuch;
use crate::telemetry::Underway;

/// When a listener for whom there is no place tries again.
const COME_AGAIN: Duration = Duration::from_secs(30);

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Events from now on, as server-sent events named by their `kind`. A listener that was too slow gets `missed`. All
/// listeners get it if events of another coordinator were lost.
#[utoipa::path(get, path = "/events", tag = "events", responses(
    (status = 200, description = "The stream", content_type = "text/event-stream",
        body = rookery_common::protocol::events::Event),
    (status = "4XX", description = "too-many-requests", body = Problem),
))]
async fn events(
    State(app): State<App>,
    Client(client): Client,
) -> ApiResult<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let place = app
        .limits
        .listener(client)
        .ok_or_else(|| ApiError::too_many("listeners at once", TooMuch(COME_AGAIN)))?;
    let listening = (Underway::begin("rookery_listeners"), place);
    let stopping = app.stopping.clone();
    let events = BroadcastStream::new(app.events.subscribe()).filter_map(move |event| {
        let _listening = &listening;
        ready(sent(event))
    });
    let events = events.take_until(async move { stopping.cancelled().await });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

fn sent(
    event: Result<protocol::Event, BroadcastStreamRecvError>,
) -> Option<Result<Event, Infallible>> {
    let event = event.unwrap_or_else(|BroadcastStreamRecvError::Lagged(events)| {
        let events = Some(events);
        protocol::Event::Missed { events }
    });
    let sent = Event::default().event(event.kind());
    Some(Ok(sent.json_data(&event).ok()?))
}
