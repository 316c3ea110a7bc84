//! Trust: what audits have shown, quarantines, held chunks.

use axum::extract::State;
use axum::http::StatusCode;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::Problem;
use rookery_common::protocol::trust::{
    BlockOrder, ContributorTrust, HoldPage, QuarantineOrder, TrustInfo,
};
use rookery_common::text::is_plain;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Contributor, CursorQuery, Json, Operator, Path, Query, Trainer, page_size};
use super::jobs::WORKER_CHARS;
use super::people::check_sought;
use crate::app::App;
use crate::db::{Actor, ChunkStatus, ExclusionOrder};
use crate::{random, trust};

/// Holds of a page if the request does not say how many.
const PAGE: u32 = 1000;
/// Contributors of an answer.
const CONTRIBUTORS: u32 = 200;
/// Longest reason, in characters.
const REASON_CHARS: usize = 500;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(own))
        .routes(routes!(contributors))
        .routes(routes!(of_user))
        .routes(routes!(quarantine))
        .routes(routes!(block_worker, unblock_worker))
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
    let trust = app.list(|db| async move { db.trust(&contributor.name).await });
    Ok(axum::Json(trust.await?))
}

/// Trust of contributors, and the reasons: those with held chunks first, then those whose games
/// differ from all others (drift), then those with failed audits.
#[utoipa::path(get, path = "/trust/contributors", tag = "trust",
    security(("token" = ["operate"])), responses(
    (status = 200, description = "At most 200 contributors", body = Vec<ContributorTrust>),
    (status = "4XX", description = "unauthorized, forbidden, blocked", body = Problem),
))]
async fn contributors(
    State(app): State<App>,
    _: Operator,
) -> ApiResult<axum::Json<Vec<ContributorTrust>>> {
    let now = app.clock.now();
    let suspects = app.list(|db| async move { db.suspects(CONTRIBUTORS, now).await });
    Ok(axum::Json(suspects.await?))
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
    check_sought(&name)?;
    Ok(axum::Json(app.db.trust(&name).await?))
}

/// Holds all chunks of a user, present and future, or lets them count again.
#[utoipa::path(put, path = "/users/{name}/quarantine", tag = "trust",
    request_body = QuarantineOrder,
    params(("name" = String, Path, description = "The user's name")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The contributor is in quarantine, or no longer"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn quarantine(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(name): Path<String>,
    Json(order): Json<QuarantineOrder>,
) -> ApiResult<StatusCode> {
    check_sought(&name)?;
    let (order, chance) = (checked(&order)?, random::seed()?);
    let by = Actor::new(&operator.name, app.clock.now());
    let effects = app.db.quarantine(&name, order, chance, by).await?;
    trust::follow(&app, effects.unwrap_or_default());
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a worker of a user no more jobs. The user sees the reason; the other workers play on.
#[utoipa::path(put, path = "/users/{name}/workers/{worker}/block", tag = "trust",
    request_body = BlockOrder,
    params(("name" = String, Path, description = "The user's name"),
        ("worker" = String, Path, description = "The worker's name")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The worker is blocked"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn block_worker(
    State(app): State<App>,
    Operator(operator): Operator,
    Path((name, worker)): Path<(String, String)>,
    Json(order): Json<BlockOrder>,
) -> ApiResult<StatusCode> {
    check_sought(&name)?;
    check_worker(&worker)?;
    let reason = check_reason(&order.reason).map_err(ApiError::bad_request)?;
    let by = Actor::new(&operator.name, app.clock.now());
    app.db.block_worker(&name, &worker, reason, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a worker of a user jobs again.
#[utoipa::path(delete, path = "/users/{name}/workers/{worker}/block", tag = "trust",
    params(("name" = String, Path, description = "The user's name"),
        ("worker" = String, Path, description = "The worker's name")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The worker is not blocked"),
    (status = "4XX", description = "not-found, unauthorized, forbidden", body = Problem),
))]
async fn unblock_worker(
    State(app): State<App>,
    Operator(operator): Operator,
    Path((name, worker)): Path<(String, String)>,
) -> ApiResult<StatusCode> {
    check_sought(&name)?;
    check_worker(&worker)?;
    let by = Actor::new(&operator.name, app.clock.now());
    app.db.unblock_worker(&name, &worker, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses what cannot be a worker's name: not every database can be asked for it.
fn check_worker(worker: &str) -> ApiResult<()> {
    if is_plain(worker, WORKER_CHARS) {
        return Ok(());
    }
    Err(ApiError::not_found("there is no such worker"))
}

/// Takes one chunk out of training, matches and ratings, or puts it back.
#[utoipa::path(put, path = "/chunks/{sha256}/quarantine", tag = "trust",
    request_body = QuarantineOrder,
    params(("sha256" = ContentHash, Path, description = "The chunk")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The chunk is in quarantine, or no longer"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn hold(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(hash): Path<ContentHash>,
    Json(order): Json<QuarantineOrder>,
) -> ApiResult<StatusCode> {
    let by = Actor::new(&operator.name, app.clock.now());
    let effects = app.db.hold_chunk(hash, checked(&order)?, by).await?;
    trust::follow(&app, effects);
    Ok(StatusCode::NO_CONTENT)
}

/// Checks why an operator orders something; what is around the reason is left out.
/// The error is a sentence that says what it may be.
pub fn check_reason(reason: &str) -> Result<&str, String> {
    let reason = reason.trim();
    if !reason.is_empty() && is_plain(reason, REASON_CHARS) {
        return Ok(reason);
    }
    Err(format!(
        "`reason` needs 1 to {REASON_CHARS} characters, none of them of control or of the direction \
         of writing"
    ))
}

fn checked(order: &QuarantineOrder) -> ApiResult<ExclusionOrder> {
    let reason = check_reason(&order.reason).map_err(ApiError::bad_request)?;
    let state = if order.quarantined {
        ChunkStatus::Excluded
    } else {
        ChunkStatus::Counted
    };
    Ok(ExclusionOrder {
        state,
        reason: reason.to_owned(),
    })
}

/// Chunks taken out of training, matches and ratings, and put back, in order.
#[utoipa::path(get, path = "/holds", tag = "trust", params(CursorQuery),
    security(("token" = ["train"])), responses(
    (status = 200, description = "Holds after the cursor", body = HoldPage),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn holds(
    State(app): State<App>,
    _: Trainer,
    Query(query): Query<CursorQuery>,
) -> ApiResult<axum::Json<HoldPage>> {
    let run = query.run(&app).await?;
    let limit = page_size(query.limit, PAGE);
    Ok(axum::Json(app.db.holds(&run, query.after, limit).await?))
}
