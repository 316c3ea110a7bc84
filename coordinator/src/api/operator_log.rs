//! What operators did, for operators.

use axum::extract::State;
use rookery_common::protocol::Problem;
use rookery_common::protocol::people::OperatorLogPage;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiResult;
use super::extract::{Operator, Query, page_size};
use crate::app::App;

/// Entries of a page if the request does not say how many.
const PAGE: u32 = 100;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(page))
}

/// Where a page begins.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PageQuery {
    /// Only entries before this one: the `next` of the page before.
    before: Option<i64>,
    /// Entries of the page, at most 1,000.
    #[param(minimum = 1)]
    limit: Option<u32>,
}

/// What operators did, newest first.
#[utoipa::path(get, path = "/operator-log", tag = "people", params(PageQuery),
    security(("token" = ["operate"])), responses(
    (status = 200, description = "Entries before the cursor", body = OperatorLogPage),
    (status = "4XX", description = "bad-request, unauthorized, forbidden, blocked", body = Problem),
))]
async fn page(
    State(app): State<App>,
    _: Operator,
    Query(query): Query<PageQuery>,
) -> ApiResult<axum::Json<OperatorLogPage>> {
    let limit = page_size(query.limit, PAGE);
    let mut entries = app.store.operator_log(query.before, limit + 1).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next = entries.last().filter(|_| more).map(|entry| entry.id);
    Ok(axum::Json(OperatorLogPage { entries, next }))
}
