//! Runs, their metrics and ratings.

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use rookery_common::ids::RunName;
use rookery_common::protocol::Problem;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::RatingRow;
use rookery_common::protocol::runs::{MetricPoint, MetricReport, RunInfo, RunPatch};
use rookery_common::protocol::server::{check_contact, check_links, check_title};
use rookery_common::signing::RunKeyInfo;
use rookery_common::text::is_plain;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Json, Operator, Path, Query, RunQuery, Trainer};
use crate::app::App;
use crate::db::Actor;
use crate::versions;

/// Points of one report.
const POINTS: usize = 1000;
/// Longest description of a run.
const DESCRIPTION_CHARS: usize = 2000;
/// Values of one point.
const VALUES: usize = 64;
/// Longest name of a value.
const NAME_CHARS: usize = 64;
/// Largest report in bytes.
const REPORT_BYTES: usize = 8 << 20;
/// Points of one answer.
const LARGEST_ANSWER: u32 = 10_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(report, metrics))
        .layer(DefaultBodyLimit::max(REPORT_BYTES))
        .routes(routes!(list))
        .routes(routes!(one, patch, delete))
        .routes(routes!(keys))
        .routes(routes!(ratings))
}

/// Which runs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    /// Whether archived runs are listed as well.
    archived: Option<bool>,
}

/// All runs, oldest first; without those that are archived, unless they are asked for.
#[utoipa::path(get, path = "/runs", tag = "runs", params(RunsQuery), responses(
    (status = 200, description = "Runs", body = Vec<RunInfo>),
))]
async fn list(
    State(app): State<App>,
    Query(query): Query<RunsQuery>,
) -> ApiResult<axum::Json<Vec<RunInfo>>> {
    let mut runs = app.db.runs().await?;
    runs.retain(|run| run.archived_at.is_none() || query.archived.unwrap_or_default());
    runs.iter_mut()
        .for_each(|run| app.presentation.complete(run));
    Ok(axum::Json(runs))
}

/// One run.
#[utoipa::path(get, path = "/runs/{run}", tag = "runs",
    params(("run" = RunName, Path, description = "The run")), responses(
    (status = 200, description = "The run", body = RunInfo),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn one(State(app): State<App>, Path(run): Path<RunName>) -> ApiResult<axum::Json<RunInfo>> {
    let mut run = app.db.run(&run).await?;
    app.presentation.complete(&mut run);
    Ok(axum::Json(run))
}

/// Checks what a run is said to be for.
/// The error is a sentence that says what it may be.
pub(crate) fn check_description(text: &str) -> Result<(), String> {
    let odd = |c: char| c.is_control() && c != '\n';
    if text.chars().count() <= DESCRIPTION_CHARS && !text.chars().any(odd) {
        return Ok(());
    }
    Err(format!(
        "a description has at most {DESCRIPTION_CHARS} characters and none of control"
    ))
}

/// Checks what a run is to become.
/// The error is a sentence that says what is wrong.
pub(crate) fn check_patch(patch: &RunPatch) -> Result<(), String> {
    let or_absent = |checked: Option<Result<(), String>>| checked.unwrap_or(Ok(()));
    or_absent(patch.title.as_deref().map(check_title))?;
    or_absent(patch.description.as_deref().map(check_description))?;
    or_absent(patch.contact.as_deref().map(check_contact))?;
    or_absent(patch.links.as_deref().map(check_links))?;
    if let Some(params) = &patch.params {
        params.check().map_err(|error| error.to_string())?;
    }
    or_absent(patch.versions.as_ref().map(versions::check))
}

/// Changes a run.
#[utoipa::path(patch, path = "/runs/{run}", tag = "runs", request_body = RunPatch,
    params(("run" = RunName, Path, description = "The run")),
    security(("token" = ["operate"])), responses(
    (status = 200, description = "The run as it is now", body = RunInfo),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn patch(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(run): Path<RunName>,
    Json(patch): Json<RunPatch>,
) -> ApiResult<axum::Json<RunInfo>> {
    check_patch(&patch).map_err(ApiError::bad_request)?;
    let by = Actor::new(&operator.name, app.clock.now());
    let mut info = app.db.patch_run(&run, patch, by).await?;
    app.job_metadata.invalidate();
    app.presentation.complete(&mut info);
    Ok(axum::Json(info))
}

/// Deletes an archived run with its games and networks; the next sweep of the store removes the files. Contributors
/// keep credit and trust.
#[utoipa::path(delete, path = "/runs/{run}", tag = "runs",
    params(("run" = RunName, Path, description = "The run")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The run is gone; its rows are deleted in the background"),
    (status = "4XX", description = "conflict, not-found, unauthorized, forbidden", body = Problem),
))]
async fn delete(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(run): Path<RunName>,
) -> ApiResult<StatusCode> {
    let by = Actor::new(&operator.name, app.clock.now());
    app.db.delete_run(&run, by).await?;
    app.job_metadata.invalidate();
    Ok(StatusCode::NO_CONTENT)
}

/// The keys that signed the run's networks, oldest first; the last one is in use.
#[utoipa::path(get, path = "/runs/{run}/keys", tag = "runs",
    params(("run" = RunName, Path, description = "The run")), responses(
    (status = 200, description = "Keys, none if networks are not signed", body = Vec<RunKeyInfo>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn keys(
    State(app): State<App>,
    Path(run): Path<RunName>,
) -> ApiResult<axum::Json<Vec<RunKeyInfo>>> {
    Ok(axum::Json(app.db.run_keys(&run).await?))
}

/// Stores a trainer's measurements.
#[utoipa::path(post, path = "/runs/{run}/metrics", tag = "runs", request_body = MetricReport,
    params(("run" = RunName, Path, description = "The run")),
    security(("token" = ["train"])), responses(
    (status = 204, description = "It is stored"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn report(
    State(app): State<App>,
    _: Trainer,
    Path(run): Path<RunName>,
    Json(report): Json<MetricReport>,
) -> ApiResult<StatusCode> {
    check_report(&report).map_err(ApiError::bad_request)?;
    let last = report.points.iter().map(|point| point.step).max();
    app.db
        .add_metrics(&run, report.points, app.clock.now())
        .await?;
    if let Some(step) = last {
        app.events.publish(Event::Metrics { run, step });
    }
    Ok(StatusCode::NO_CONTENT)
}

fn check_report(report: &MetricReport) -> Result<(), String> {
    if report.points.len() > POINTS {
        return Err(format!(
            "{} points, at most {POINTS} are taken",
            report.points.len()
        ));
    }
    for point in &report.points {
        let names_fit = point.values.keys().all(|name| is_plain(name, NAME_CHARS));
        if point.values.len() > VALUES || !names_fit {
            let step = point.step;
            return Err(format!(
                "step {step} has more than {VALUES} values, a name over {NAME_CHARS} characters, or \
                 one with characters of control or of the direction of writing"
            ));
        }
    }
    Ok(())
}

/// Which metrics.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct MetricsQuery {
    /// Only steps after this one.
    after: Option<u64>,
    /// The most points to return, up to 10,000.
    limit: Option<u32>,
}

/// What trainers measured, in the order of steps.
#[utoipa::path(get, path = "/runs/{run}/metrics", tag = "runs",
    params(("run" = RunName, Path, description = "The run"), MetricsQuery), responses(
    (status = 200, description = "Metrics", body = Vec<MetricPoint>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn metrics(
    State(app): State<App>,
    Path(run): Path<RunName>,
    Query(query): Query<MetricsQuery>,
) -> ApiResult<axum::Json<Vec<MetricPoint>>> {
    let limit = query.limit.unwrap_or(LARGEST_ANSWER).min(LARGEST_ANSWER);
    let metrics = app.list(|db| async move { db.metrics(&run, query.after, limit).await });
    Ok(axum::Json(metrics.await?))
}

/// Ratings of a run's networks, best first.
#[utoipa::path(get, path = "/ratings", tag = "matches", params(RunQuery), responses(
    (status = 200, description = "Ratings", body = Vec<RatingRow>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn ratings(
    State(app): State<App>,
    Query(query): Query<RunQuery>,
) -> ApiResult<axum::Json<Vec<RatingRow>>> {
    let run = query.resolve(&app).await?;
    Ok(axum::Json(app.db.ratings(&run).await?))
}
