//! What happens, as server-sent events.

use std::convert::Infallible;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _};
use tokio_stream::wrappers::BroadcastStream;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// What happens from now on, as server-sent events named by their `kind`. A listener that was too
/// slow gets `missed` with the number of events that it lost.
#[utoipa::path(get, path = "/events", tag = "events", responses(
    (status = 200, description = "The stream", content_type = "text/event-stream",
        body = rookery_common::protocol::events::Event),
))]
async fn events(State(app): State<App>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stopping = app.stopping.clone();
    let events = BroadcastStream::new(app.events.subscribe()).filter_map(|event| async {
        let sent = match event {
            Ok(event) => Event::default()
                .event(event.kind())
                .json_data(&event)
                .ok()?,
            Err(error) => Event::default().event("missed").data(error.to_string()),
        };
        Some(Ok(sent))
    });
    let events = events.take_until(async move { stopping.cancelled().await });
    Sse::new(events).keep_alive(KeepAlive::default())
}
