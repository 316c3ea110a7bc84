//! What operators did, for operators.

use axum::extract::State;
use rookery_common::protocol::Problem;
use rookery_common::protocol::people::AuditPage;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiResult;
use super::extract::{Operator, Query};
use crate::app::App;

/// Entries of a page if the request does not say how many.
const PAGE: u32 = 100;
/// Most entries of a page.
const LARGEST_PAGE: u32 = 1000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(page))
}

/// Where a page begins.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
struct PageQuery {
    /// Only entries before this one: the `next` of the page before.
    before: Option<i64>,
    /// Entries of the page, at most 1,000.
    limit: Option<u32>,
}

/// What operators did, newest first.
#[utoipa::path(get, path = "/audit", tag = "people", params(PageQuery),
    security(("token" = ["operate"])), responses(
    (status = 200, description = "Entries before the cursor", body = AuditPage),
    (status = "4XX", description = "bad-request, unauthorized, forbidden, blocked", body = Problem),
))]
async fn page(
    State(app): State<App>,
    _: Operator,
    Query(query): Query<PageQuery>,
) -> ApiResult<axum::Json<AuditPage>> {
    let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let mut entries = app.store.audit(query.before, limit + 1).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next = entries.last().filter(|_| more).map(|entry| entry.id);
    Ok(axum::Json(AuditPage { entries, next }))
}
