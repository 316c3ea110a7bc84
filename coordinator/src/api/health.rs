//! For those who watch the service: is it alive, can it serve, what does it do.

use std::fmt::Display;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Router, extract};
use serde::Serialize;

use crate::app::App;
use crate::telemetry;

/// How long a dependency may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(async || telemetry::render()))
}

/// Whether requests can be served, and on what that depends.
#[derive(Debug, Serialize)]
struct Readiness {
    ready: bool,
    /// Whether the coordinator is ending.
    stopping: bool,
    database: State,
    store: State,
}

/// Whether something answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Up,
    Down,
}

/// Whether everything that requests need answers; names what does not.
async fn ready(extract::State(app): extract::State<App>) -> Response {
    let (database, store) = tokio::join!(
        answers("database", app.store.ping()),
        answers("store", app.blobs.ping())
    );
    let stopping = app.leaving.is_cancelled() || app.stopping.is_cancelled();
    let ready = !stopping && database == State::Up && store == State::Up;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = Readiness {
        ready,
        stopping,
        database,
        store,
    };
    (status, axum::Json(body)).into_response()
}

/// Asks a dependency, but not for long.
async fn answers<E: Display>(name: &str, ping: impl Future<Output = Result<(), E>>) -> State {
    match tokio::time::timeout(PATIENCE, ping).await {
        Ok(Ok(())) => State::Up,
        Ok(Err(error)) => {
            tracing::warn!(dependency = name, %error, "A dependency does not answer.");
            State::Down
        }
        Err(_) => {
            tracing::warn!(dependency = name, "A dependency does not answer in time.");
            State::Down
        }
    }
}
