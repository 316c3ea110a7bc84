//! Trust: what audits have shown, quarantines, held chunks.

use axum::extract::State;
use axum::http::StatusCode;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::Problem;
use rookery_common::protocol::trust::{HoldPage, QuarantineOrder, TrustInfo};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Contributor, Json, Operator, Path, Query, RunQuery, Trainer};
use crate::app::App;
use crate::ratings;
use crate::store::{HoldEffects, HoldOrder};

/// Holds of a page if the request does not say how many.
const PAGE: u32 = 1000;
/// Longest reason, in characters.
const REASON_CHARS: usize = 500;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(own))
        .routes(routes!(of_user))
        .routes(routes!(quarantine))
        .routes(routes!(hold))
        .routes(routes!(holds))
}

/// How far the token's own user is trusted, and why.
#[utoipa::path(get, path = "/trust", tag = "trust",
    security(("token" = ["contribute"])), responses(
    (status = 200, description = "What audits have shown", body = TrustInfo),
    (status = "4XX", description = "unauthorized, forbidden, blocked", body = Problem),
))]
async fn own(
    State(app): State<App>,
    Contributor(contributor): Contributor,
) -> ApiResult<axum::Json<TrustInfo>> {
    Ok(axum::Json(app.store.trust(&contributor.name).await?))
}

/// How far a user is trusted, and why.
#[utoipa::path(get, path = "/users/{name}/trust", tag = "trust",
    params(("name" = String, Path, description = "The user's name")),
    security(("token" = ["operate"])), responses(
    (status = 200, description = "What audits have shown", body = TrustInfo),
    (status = "4XX", description = "not-found, unauthorized, forbidden", body = Problem),
))]
async fn of_user(
    State(app): State<App>,
    _: Operator,
    Path(name): Path<String>,
) -> ApiResult<axum::Json<TrustInfo>> {
    Ok(axum::Json(app.store.trust(&name).await?))
}

/// Holds all chunks of a user, present and future, or lets them count again.
#[utoipa::path(put, path = "/users/{name}/quarantine", tag = "trust",
    request_body = QuarantineOrder,
    params(("name" = String, Path, description = "The user's name")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "It is so now"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn quarantine(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(name): Path<String>,
    Json(order): Json<QuarantineOrder>,
) -> ApiResult<StatusCode> {
    let order = checked(&order, operator.name)?;
    let effects = app.store.quarantine(&name, order, app.clock.now()).await?;
    follow(&app, effects);
    Ok(StatusCode::NO_CONTENT)
}

/// Takes one chunk out of training, matches and ratings, or puts it back.
#[utoipa::path(put, path = "/chunks/{sha256}/quarantine", tag = "trust",
    request_body = QuarantineOrder,
    params(("sha256" = ContentHash, Path, description = "The chunk")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "It is so now"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn hold(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(hash): Path<ContentHash>,
    Json(order): Json<QuarantineOrder>,
) -> ApiResult<StatusCode> {
    let order = checked(&order, operator.name)?;
    let effects = app.store.hold_chunk(hash, order, app.clock.now()).await?;
    follow(&app, effects);
    Ok(StatusCode::NO_CONTENT)
}

fn checked(order: &QuarantineOrder, actor: String) -> ApiResult<HoldOrder> {
    let reason = order.reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON_CHARS {
        let detail = format!("`reason` needs 1 to {REASON_CHARS} characters");
        return Err(ApiError::bad_request(detail));
    }
    Ok(HoldOrder {
        held: order.quarantined,
        reason: reason.to_owned(),
        actor,
    })
}

fn follow(app: &App, effects: HoldEffects) {
    for run in effects.stale {
        ratings::refit_soon(app, run);
    }
}

/// Where a page begins.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
struct PageQuery {
    /// The run; may be left out where there is only one.
    run: Option<RunName>,
    /// The `next` of the page before; 0 for the first.
    #[serde(default)]
    after: i64,
}

/// Chunks taken out of training, matches and ratings, and put back, in order.
#[utoipa::path(get, path = "/holds", tag = "trust", params(PageQuery),
    security(("token" = ["train"])), responses(
    (status = 200, description = "Holds after the cursor", body = HoldPage),
    (status = "4XX", description = "not-found, unauthorized, forbidden", body = Problem),
))]
async fn holds(
    State(app): State<App>,
    _: Trainer,
    Query(query): Query<PageQuery>,
) -> ApiResult<axum::Json<HoldPage>> {
    let run = RunQuery { run: query.run }.resolve(&app).await?;
    Ok(axum::Json(app.store.holds(&run, query.after, PAGE).await?))
}
