//! Candidates that an operator rejects.

use axum::extract::State;
use rookery_common::protocol::Problem;
use rookery_common::protocol::networks::{NetworkInfo, NetworkName};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Json, Operator, Path, Query, RunQuery};
use super::networks::find;
use super::trust::check_reason;
use crate::app::App;
use crate::db::Actor;
use crate::ratings;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(reject))
}

/// Why a candidate is rejected.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
struct RejectionOrder {
    /// In 1 to 500 characters; it is shown as the reason of the gate match.
    reason: String,
}

/// Rejects a candidate, whatever its gate match says: the way out where no worker can compute it.
/// The next candidate's gate match begins.
#[utoipa::path(post, path = "/networks/{name}/rejection", tag = "networks",
    request_body = RejectionOrder,
    params(("name" = String, Path, description = "A number or a SHA-256"), RunQuery),
    security(("token" = ["operate"])), responses(
    (status = 200, description = "The network as it is now", body = NetworkInfo),
    (status = "4XX", description = "bad-request, not-found, conflict, unauthorized, forbidden",
        body = Problem),
))]
async fn reject(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(name): Path<String>,
    Query(query): Query<RunQuery>,
    Json(order): Json<RejectionOrder>,
) -> ApiResult<axum::Json<NetworkInfo>> {
    let reason = check_reason(&order.reason).map_err(ApiError::bad_request)?;
    let info = find(&app, &name, &query).await?;
    let by = Actor::new(&operator.name, app.clock.now());
    let events = app
        .db
        .reject_network(&info.run, info.number, reason, by)
        .await?;
    app.events.publish_all(events);
    ratings::refit_soon(&app, info.run.clone());
    let number = NetworkName::Number(info.number);
    Ok(axum::Json(app.db.network(&info.run, number).await?))
}
