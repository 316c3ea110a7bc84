//! Jobs: leases out, heartbeats in.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rookery_common::ids::JobId;
use rookery_common::protocol::boards::{LivePosition, SharedBoard};
use rookery_common::protocol::jobs::{Heartbeat, HeartbeatReply, Instruction, Job, JobRequest};
use rookery_common::protocol::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, Problem, ProblemCode};
use rookery_common::text::{is_blank, is_plain};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Client, Contributor, Json, Path};
use crate::app::App;
use crate::db::{DbError, LeaseRequest, Restrictions};
use crate::limits::address::{ClientAddress, hashed_block};
use crate::{live_boards, notices, random, versions};

/// Longest name of a worker or a version.
pub(super) const WORKER_CHARS: usize = 64;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(lease))
        .routes(routes!(heartbeat))
        .routes(routes!(give_back))
}

/// Leases a job.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = JobRequest,
    security(("token" = ["contribute"])), responses(
    (status = 200, description = "A lease", body = Job),
    (status = 204, description = "Nothing to do now; ask again after Retry-After seconds"),
    (status = "4XX", description = "bad-request, unauthorized, forbidden, blocked, not-found, \
        update-required, too-many-leases", body = Problem),
))]
async fn lease(
    State(app): State<App>,
    Contributor(contributor): Contributor,
    Client(client): Client,
    Json(mut request): Json<JobRequest>,
) -> ApiResult<Response> {
    let mut notices = Vec::new();
    if is_blank(&request.worker) {
        notices::UNNAMED.clone_into(&mut request.worker);
        notices.push(notices::no_name());
    }
    check(&request)?;
    let user = contributor.user;
    app.limits.may_lease(client, user).map_err(|too_much| {
        ApiError::too_many("jobs of this user whose games did not come today", too_much)
    })?;
    let (book, now) = (app.book.clone(), app.clock.now());
    let chances = random::chances(now)?;
    let runs = app.job_metadata.runs(&app.db).await?;
    let refused_by = versions::refused_by(&runs, &request, now)
        .map_err(|detail| ApiError::new(ProblemCode::UpdateRequired, detail))?;
    let contact = notices::contact(&app.presentation, &runs);
    let restrictions = &contributor.restrictions;
    if let Some(block) = restrictions.block_of(&request.worker) {
        let detail = notices::worker_block(block, contact);
        return Err(ApiError::new(ProblemCode::Blocked, detail));
    }
    notices.extend(notices::restrictions(restrictions, contact));
    let sender = (contributor.user, contributor.token);
    if app.worker_names.is_shared(sender, client, &request, now) {
        notices.push(notices::shared_name(&request.worker));
    }
    let lease = LeaseRequest {
        user: contributor.user,
        request: request.clone(),
        refused_by,
        book,
        chances,
        auditor: contributor.auditor(),
        quotas: app.limits.leases(client),
        block: client.and_then(|ClientAddress(address)| hashed_block(address)),
        fleet: app.fleet.active_workers(&app.db, now).await?,
    };
    let Some(mut job) = app.db.lease(lease, now).await? else {
        let wanted = request.run.as_ref();
        let wait = app.fleet.wait(&runs, wanted, chances.gate, now);
        return Ok(nothing(wait));
    };
    app.limits.leased(client, user);
    app.job_metadata.sign(&app.db, &mut job).await?;
    job.notices.append(&mut notices);
    if let Some(run) = runs.iter().find(|run| run.name == job.run) {
        job.notices.extend(versions::notices(run, &request, now));
    }
    metrics::counter!("rookery_leases_total", "kind" => job.work.kind().name()).increment(1);
    Ok(axum::Json(job).into_response())
}

fn check(request: &JobRequest) -> ApiResult<()> {
    if request.protocol < OLDEST_PROTOCOL_VERSION {
        let detail = format!(
            "this worker speaks protocol {}, needed is {OLDEST_PROTOCOL_VERSION} to \
             {PROTOCOL_VERSION}: install a newer one",
            request.protocol
        );
        return Err(ApiError::new(ProblemCode::UpdateRequired, detail));
    }
    if request.protocol > PROTOCOL_VERSION {
        let detail = format!(
            "this worker speaks protocol {}, the coordinator only up to {PROTOCOL_VERSION}",
            request.protocol
        );
        return Err(ApiError::bad_request(detail));
    }
    for (what, text) in [("worker", &request.worker), ("version", &request.version)] {
        if !is_plain(text, WORKER_CHARS) {
            let detail = format!(
                "`{what}` has more than {WORKER_CHARS} characters, or one of control or of the \
                 direction of writing"
            );
            return Err(ApiError::bad_request(detail));
        }
    }
    Ok(())
}

/// There is nothing; ask again after so many seconds.
fn nothing(wait: u32) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from(wait));
    response
}

/// Extends a lease.
#[utoipa::path(post, path = "/jobs/{id}/heartbeat", tag = "jobs", request_body = Heartbeat,
    params(("id" = JobId, Path, description = "The job")),
    security(("token" = ["contribute"])), responses(
    (status = 200, description = "The lease is longer", body = HeartbeatReply),
    (status = "4XX", description = "bad-request, not-found, lease-ended, unauthorized, forbidden, \
        blocked", body = Problem),
))]
async fn heartbeat(
    State(app): State<App>,
    Contributor(contributor): Contributor,
    Path(id): Path<JobId>,
    Json(heartbeat): Json<Heartbeat>,
) -> ApiResult<axum::Json<HeartbeatReply>> {
    let board = heartbeat.board.clone();
    let positions = board.as_ref().map(positions_of).transpose()?;
    let renewed = app
        .db
        .heartbeat(contributor.user, id, heartbeat, app.clock.now())
        .await;
    let is_over = match &renewed {
        Ok(reply) => reply.instruction == Instruction::Abandon,
        Err(error) => matches!(error, DbError::LeaseEnded(_)),
    };
    if is_over {
        live_boards::end(&app, id);
    }
    let mut reply = renewed?;
    if let (Some(board), Some(positions), false) = (board, positions, is_over) {
        live_boards::share(&app, &contributor, id, &board, positions).await?;
    }
    if contributor.restrictions != Restrictions::default() {
        let runs = app.job_metadata.runs(&app.db).await?;
        let contact = notices::contact(&app.presentation, &runs);
        reply.notices = notices::restrictions(&contributor.restrictions, contact);
    }
    Ok(axum::Json(reply))
}

/// The positions of a board that a worker shares, once they are known to be legal.
fn positions_of(board: &SharedBoard) -> ApiResult<Vec<LivePosition>> {
    let positions = board.positions();
    let positions = positions.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let live = positions.iter();
    Ok(live
        .map(|(last, position)| LivePosition::new(*last, position))
        .collect())
}

/// Gives a job back. Finished games may still be uploaded.
#[utoipa::path(delete, path = "/jobs/{id}", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    security(("token" = ["contribute"])), responses(
    (status = 204, description = "Its unfinished games may go to others"),
    (status = "4XX", description = "not-found, unauthorized, forbidden, blocked", body = Problem),
))]
async fn give_back(
    State(app): State<App>,
    Contributor(contributor): Contributor,
    Path(id): Path<JobId>,
) -> ApiResult<StatusCode> {
    app.db
        .give_back(contributor.user, id, app.clock.now())
        .await?;
    live_boards::end(&app, id);
    Ok(StatusCode::NO_CONTENT)
}
