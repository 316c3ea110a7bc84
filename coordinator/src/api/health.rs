//! For those who watch the service: is it alive, can it serve, what does it do.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::app::App;
use crate::telemetry;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(async || telemetry::render()))
}

/// Whether everything that requests need answers; names what does not.
async fn ready(State(app): State<App>) -> Response {
    let mut down = Vec::new();
    if app.stopping.is_cancelled() {
        down.push("stopping".to_owned());
    }
    if let Err(error) = app.store.ping().await {
        tracing::warn!(%error, "The ledger does not answer.");
        down.push("ledger".to_owned());
    }
    if let Err(error) = app.blobs.ping().await {
        tracing::warn!(%error, "The store of blobs does not answer.");
        down.push("blobs".to_owned());
    }
    if down.is_empty() {
        return "ready\n".into_response();
    }
    (
        StatusCode::SERVICE_UNAVAILABLE,
        format!("not ready: {}\n", down.join(", ")),
    )
        .into_response()
}
