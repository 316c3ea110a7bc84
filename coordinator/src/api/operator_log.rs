//! What operators did, for operators.

use axum::extract::State;
use jiff::Timestamp;
use rookery_common::protocol::Problem;
use rookery_common::protocol::people::OperatorLogPage;
use rookery_common::text::is_plain;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Operator, Query, page_size};
use crate::app::App;
use crate::db::LogFilter;

/// Entries of a page if the request does not say how many.
const PAGE: u32 = 100;
/// Longest name that is sought.
const TEXT_CHARS: usize = 100;

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
    /// Only what this one did: a user's name, or `command line`.
    actor: Option<String>,
    /// Only such acts, for example `change-run`.
    action: Option<String>,
    /// Only what was done since, RFC 3339.
    #[param(value_type = Option<String>)]
    since: Option<Timestamp>,
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
    for text in [&query.actor, &query.action].into_iter().flatten() {
        if !is_plain(text, TEXT_CHARS) {
            return Err(ApiError::bad_request(
                "no user and no action has such a name",
            ));
        }
    }
    let filter = LogFilter {
        before: query.before,
        actor: query.actor,
        action: query.action,
        since: query.since,
        limit: limit + 1,
    };
    let mut entries = app.db.operator_log(filter).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next = entries.last().filter(|_| more).map(|entry| entry.id);
    Ok(axum::Json(OperatorLogPage { entries, next }))
}
