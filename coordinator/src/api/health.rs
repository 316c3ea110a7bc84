//! For those who watch the service: is it alive, can it serve, what does it do.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Router, extract};
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::app::App;
use crate::telemetry;

/// How long a dependency may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// For so long an answer stands: asking the store writes a file, and anybody may ask.
const LATELY: Duration = Duration::from_secs(2);

/// Metrics, which are for the operator: they tell of quarantines and of what goes wrong.
pub fn metrics() -> Router {
    Router::new().route("/metrics", get(async || telemetry::render()))
}

pub(super) fn router() -> Router<App> {
    let last = LastLook::default();
    Router::new().route("/healthz", get(async || "ok\n")).route(
        "/readyz",
        get(move |extract::State(app)| ready(app, last.clone())),
    )
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

/// When the dependencies were last asked, and what they answered.
type LastLook = Arc<Mutex<Option<(Timestamp, [State; 2])>>>;

/// Database and store, asked now unless they were lately. Who comes while they are asked waits for
/// the same answer.
async fn look(app: &App, last: &LastLook) -> [State; 2] {
    let mut last = last.lock().await;
    let now = app.clock.now();
    if let Some((at, states)) = *last
        && now.duration_since(at).unsigned_abs() < LATELY
    {
        return states;
    }
    let (database, store) = tokio::join!(
        answers("database", app.db.ping()),
        answers("store", app.blobs.ping())
    );
    *last = Some((now, [database, store]));
    [database, store]
}

/// Whether everything that requests need answers; names what does not.
async fn ready(app: App, last: LastLook) -> Response {
    let [database, store] = look(&app, &last).await;
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
            tracing::warn!(dependency = name, %error, "RK-0210: A dependency does not answer.");
            State::Down
        }
        Err(_) => {
            tracing::warn!(
                dependency = name,
                "RK-0210: A dependency does not answer in time."
            );
            State::Down
        }
    }
}
