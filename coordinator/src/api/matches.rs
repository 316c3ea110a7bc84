//! Matches.

use axum::extract::State;
use axum::http::StatusCode;
use rookery_common::ids::{MatchId, NetworkNumber, RunName};
use rookery_common::protocol::Problem;
use rookery_common::protocol::matches::MatchInfo;
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Json, Operator, Path, Query, RunQuery};
use crate::app::App;
use crate::db::{Actor, MatchDraft, MatchFilter};
use crate::random;

/// Matches of an answer.
const LARGEST_ANSWER: u32 = 1000;
/// Most pairs of a match that an operator opens.
const PAIRS: u32 = 100_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, open))
        .routes(routes!(one))
}

/// Which matches.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct MatchesQuery {
    /// The run; may be left out where there is only one.
    run: Option<RunName>,
    /// Only matches that were opened before this one.
    before: Option<MatchId>,
    /// The most matches to return, up to 1,000.
    limit: Option<u32>,
}

/// Matches of a run, newest first.
#[utoipa::path(get, path = "/matches", tag = "matches", params(MatchesQuery), responses(
    (status = 200, description = "Matches", body = Vec<MatchInfo>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn list(
    State(app): State<App>,
    Query(query): Query<MatchesQuery>,
) -> ApiResult<axum::Json<Vec<MatchInfo>>> {
    let run = RunQuery { run: query.run }.resolve(&app).await?;
    let limit = query.limit.unwrap_or(LARGEST_ANSWER).min(LARGEST_ANSWER);
    let filter = MatchFilter {
        before: query.before,
        ..MatchFilter::newest(&run, limit)
    };
    let now = app.clock.now();
    let matches = app.list(|db| async move { db.matches(&filter, now).await });
    Ok(axum::Json(matches.await?))
}

/// One match.
#[utoipa::path(get, path = "/matches/{id}", tag = "matches",
    params(("id" = MatchId, Path, description = "The match")), responses(
    (status = 200, description = "The match", body = MatchInfo),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn one(State(app): State<App>, Path(id): Path<MatchId>) -> ApiResult<axum::Json<MatchInfo>> {
    Ok(axum::Json(app.db.match_info(id, app.clock.now()).await?))
}

/// A match that only adds to the ratings.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
struct NewMatch {
    /// The run.
    run: RunName,
    /// The network whose result is counted.
    candidate: NetworkNumber,
    /// Its opponent.
    opponent: NetworkNumber,
    /// How many pairs of games, 1 to 100,000.
    pairs: u32,
}

/// Opens a match that only adds to the ratings.
#[utoipa::path(post, path = "/matches", tag = "matches", request_body = NewMatch,
    security(("token" = ["operate"])), responses(
    (status = 201, description = "The match", body = MatchInfo),
    (status = "4XX", description = "bad-request, not-found, conflict, unauthorized, forbidden",
        body = Problem),
))]
async fn open(
    State(app): State<App>,
    Operator(operator): Operator,
    Json(new): Json<NewMatch>,
) -> ApiResult<(StatusCode, axum::Json<MatchInfo>)> {
    if !(1..=PAIRS).contains(&new.pairs) {
        return Err(ApiError::bad_request(format!("pairs must be 1 to {PAIRS}")));
    }
    let draft = MatchDraft {
        run: new.run,
        candidate: new.candidate,
        opponent: new.opponent,
        pairs: new.pairs,
        seed: random::seed()?,
    };
    let by = Actor::new(&operator.name, app.clock.now());
    let id = app.db.open_match(draft, by).await?;
    Ok((
        StatusCode::CREATED,
        axum::Json(app.db.match_info(id, app.clock.now()).await?),
    ))
}
