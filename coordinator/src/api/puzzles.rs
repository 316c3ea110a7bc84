//! Puzzle sets and puzzle scores.

use axum::extract::State;
use rookery_common::ids::RunName;
use rookery_common::protocol::Problem;
use rookery_common::protocol::networks::PuzzleScore;
use rookery_common::puzzle::Puzzle;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Path, Query, RunQuery};
use super::networks::parse_name;
use crate::app::App;
use crate::db::PuzzleSetInfo;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(sets))
        .routes(routes!(one))
        .routes(routes!(score))
}

/// Puzzle sets of a run.
#[utoipa::path(get, path = "/puzzles", tag = "puzzles", params(RunQuery), responses(
    (status = 200, description = "Puzzle sets", body = Vec<PuzzleSetInfo>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn sets(
    State(app): State<App>,
    Query(query): Query<RunQuery>,
) -> ApiResult<axum::Json<Vec<PuzzleSetInfo>>> {
    let run = query.resolve(&app).await?;
    Ok(axum::Json(app.db.puzzle_sets(&run).await?))
}

/// One puzzle.
#[utoipa::path(get, path = "/puzzles/{run}/{id}", tag = "puzzles",
    params(("run" = RunName, Path, description = "The run"),
        ("id" = String, Path, description = "The puzzle's identifier")), responses(
    (status = 200, description = "The puzzle", body = Puzzle),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn one(
    State(app): State<App>,
    Path((run, id)): Path<(RunName, String)>,
) -> ApiResult<axum::Json<Puzzle>> {
    if id.chars().any(char::is_control) {
        return Err(ApiError::not_found("no puzzle has such a name"));
    }
    Ok(axum::Json(app.db.puzzle(&run, &id).await?))
}

/// A network's results at puzzles, by theme and rating.
#[utoipa::path(get, path = "/networks/{name}/puzzles", tag = "puzzles",
    params(("name" = String, Path, description = "A number, `best` or a SHA-256"), RunQuery),
    responses(
    (status = 200, description = "The score", body = PuzzleScore),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn score(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<RunQuery>,
) -> ApiResult<axum::Json<PuzzleScore>> {
    let run = query.resolve(&app).await?;
    let network = app.db.network(&run, parse_name(&name)?).await?;
    Ok(axum::Json(app.db.puzzle_score(&run, network.number).await?))
}
