//! Registration and contributors.

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{
    ActiveWorkers, ContributorDetail, ContributorInfo, NewToken, NewUser, Scope, Span,
    is_user_name, user_name,
};
use rookery_common::protocol::user_name::{RULE, skeleton};
use rookery_common::protocol::{Problem, ProblemCode};
use rookery_common::text::is_plain;
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Client, Json, Operator, Path, Query, page_size};
use crate::app::App;
use crate::config::Registration;
use crate::db::{
    ACTIVE, Actor, ContributorFilter, ContributorSort, DELETED, Standing, TokenDraft, UserChange,
    UserDraft,
};
use crate::limits::address::{ClientAddress, hashed_block};
use crate::tokens::{InvitationCode, Token};

/// Names under which the operators' log says what happened by itself.
const OWN: [&str; 2] = ["coordinator", "audits"];
/// Names that would pass for the operator or for Rookery itself: they cannot be registered.
const RESERVED: [&str; 15] = [
    "admin",
    "administrator",
    "anonymous",
    "audit",
    "auditor",
    "auditors",
    "command-line",
    "command_line",
    "moderator",
    "operator",
    "operators",
    "rookery",
    "root",
    "support",
    "system",
];
/// Names that stand in commands and guides until somebody puts their own.
const PLACEHOLDERS: [&str; 3] = ["your-name", "your_name", "yourname"];
/// Contributors of an answer if the request does not say how many.
const CONTRIBUTORS: u32 = 200;
/// Workers of an answer if the request does not say how many.
const WORKERS: u32 = 100;
/// Longest name of a token.
const MACHINE_CHARS: usize = 64;
/// Largest registration in bytes: it is the only body that anybody may send without a token, and
/// takes no more of the room for uploads than it needs.
const REGISTRATION_BYTES: usize = 4 << 10;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .layer(DefaultBodyLimit::max(REGISTRATION_BYTES))
        .routes(routes!(patch, delete))
        .routes(routes!(contributors))
        .routes(routes!(contributor))
        .routes(routes!(workers))
}

/// Checks the name of a new user whom an operator creates; the answer is the name as it is kept.
/// The error is a sentence that says what a name may be.
pub fn check_name(name: &str) -> Result<String, String> {
    let shown: String = name.chars().take(80).collect();
    let name =
        user_name(name).ok_or_else(|| format!("{shown:?} cannot be a user's name: {RULE}"))?;
    if is_like(&name, &OWN) || is_deleted(&name) {
        return Err(format!(
            "{shown:?} cannot be a user's name: the coordinator itself goes by it"
        ));
    }
    Ok(name)
}

/// Checks the name under which somebody registers; the answer is the name as it is kept.
/// The error is a sentence that says what a name may be.
fn check_registered(name: &str) -> Result<String, String> {
    let name = check_name(name)?;
    if is_like(&name, &RESERVED) {
        return Err(format!(
            "{name:?} cannot be a user's name: it would pass for the operator"
        ));
    }
    if is_like(&name, &PLACEHOLDERS) {
        return Err(format!(
            "{name:?} stands for your own name: put that in its place"
        ));
    }
    Ok(name)
}

/// Whether a name looks like one of these.
fn is_like(name: &str, others: &[&str]) -> bool {
    let (likeness, lower) = (skeleton(name), name.to_lowercase());
    let is_like = |other: &&str| skeleton(other) == likeness || *other == lower;
    others.iter().any(is_like)
}

/// Whether a name looks like that of a user who was deleted.
fn is_deleted(name: &str) -> bool {
    skeleton(name).starts_with(&skeleton(DELETED))
}

/// Refuses a name that no user can have: not every database
/// can be asked for it.
pub(super) fn check_sought(name: &str) -> ApiResult<()> {
    if is_user_name(name) {
        return Ok(());
    }
    Err(ApiError::not_found("there is no such user"))
}

/// Checks a token's name.
/// The error is a sentence that says what a name may be.
pub fn check_machine(machine: &str) -> Result<(), String> {
    if is_plain(machine, MACHINE_CHARS) {
        return Ok(());
    }
    Err(format!(
        "a machine's name has at most {MACHINE_CHARS} characters, none of them of control or of the \
         direction of writing"
    ))
}

/// Registers a contributor. The answer shows the token once.
#[utoipa::path(post, path = "/users", tag = "people", request_body = NewUser, responses(
    (status = 201, description = "The user and the first token", body = NewToken),
    (status = "4XX", description = "bad-request, registration-closed, invitation-needed, name-taken, \
        too-many-requests", body = Problem),
))]
async fn register(
    State(app): State<App>,
    Client(client): Client,
    Json(user): Json<NewUser>,
) -> ApiResult<(StatusCode, axum::Json<NewToken>)> {
    let name = check_registered(&user.name).map_err(ApiError::bad_request)?;
    check_machine(&user.machine).map_err(ApiError::bad_request)?;
    let invitation = admission(&app, user.invitation.as_deref())?;
    app.limits
        .registration(client)
        .map_err(|too_much| ApiError::too_many("registrations from this address", too_much))?;
    let token = Token::generate()?;
    let scopes = vec![Scope::Contribute];
    let draft = TokenDraft {
        hash: token.hash(),
        scopes: scopes.clone(),
        machine: user.machine,
    };
    let draft = UserDraft {
        name: name.clone(),
        token: draft,
        block: client.and_then(|ClientAddress(address)| hashed_block(address)),
    };
    let now = app.clock.now();
    let id = match invitation {
        None => app.db.create_user(draft, Actor::new(&name, now)).await?,
        Some(code) => app.db.redeem(draft, code.hash(), now).await?,
    };
    tracing::info!(user = %name, "A contributor has registered.");
    let token = token.reveal().to_owned();
    Ok((
        StatusCode::CREATED,
        axum::Json(NewToken {
            user: id,
            name,
            id: None,
            token,
            scopes,
        }),
    ))
}

/// With which invitation someone comes in who comes in at all.
fn admission(app: &App, code: Option<&str>) -> ApiResult<Option<InvitationCode>> {
    match app.registration {
        Registration::Open => Ok(None),
        Registration::Closed => {
            let detail = "ask the operator for a token";
            Err(ApiError::new(ProblemCode::RegistrationClosed, detail))
        }
        Registration::Invitation => {
            let code = code.ok_or("send the code that the operator gave you as `invitation`");
            let code = code.and_then(|code| {
                InvitationCode::parse(code).ok_or("the invitation is not `ri_` with 32 digits")
            });
            code.map(Some)
                .map_err(|detail| ApiError::new(ProblemCode::InvitationNeeded, detail))
        }
    }
}

/// A change to a user by an operator.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
struct UserPatch {
    /// Whether the user is blocked.
    blocked: Option<bool>,
    /// Another name.
    name: Option<String>,
}

/// Blocks a user, ends the block, or gives the user another name.
#[utoipa::path(patch, path = "/users/{name}", tag = "people", request_body = UserPatch,
    params(("name" = String, Path, description = "The user's name")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The user is changed"),
    (status = "4XX", description = "bad-request, name-taken, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn patch(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(name): Path<String>,
    Json(patch): Json<UserPatch>,
) -> ApiResult<StatusCode> {
    check_sought(&name)?;
    let by = Actor::new(&operator.name, app.clock.now());
    if patch.blocked.is_none() && patch.name.is_none() {
        return Err(ApiError::bad_request(
            "nothing is given that could be changed: `blocked`, `name`",
        ));
    }
    let other = patch.name.as_deref().map(check_name).transpose();
    let change = UserChange {
        standing: patch.blocked.map(|blocked| match blocked {
            true => Standing::Blocked,
            false => Standing::Good,
        }),
        name: other.map_err(ApiError::bad_request)?,
    };
    app.db.change_user(&name, change, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a user. The games stay under a name made of the user's number. Everything else that names the user
/// is deleted.
#[utoipa::path(delete, path = "/users/{name}", tag = "people",
    params(("name" = String, Path, description = "The user's name")),
    security(("token" = ["operate"])), responses(
    (status = 204, description = "The user is deleted"),
    (status = "4XX", description = "conflict, not-found, unauthorized, forbidden", body = Problem),
))]
async fn delete(
    State(app): State<App>,
    Operator(operator): Operator,
    Path(name): Path<String>,
) -> ApiResult<StatusCode> {
    check_sought(&name)?;
    let by = Actor::new(&operator.name, app.clock.now());
    app.db.delete_user(&name, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which contributors.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ContributorsQuery {
    /// Only of this run; of all together if it is left out.
    run: Option<RunName>,
    /// When they gave what is counted: the last `24h`, `7d` or `30d`, or `all` time.
    #[param(inline)]
    span: Option<Span>,
    /// Skip this many (pagination).
    skip: Option<u32>,
    /// The most contributors to return, up to 1,000. [default: 200]
    #[param(minimum = 1)]
    limit: Option<u32>,
}

impl From<ContributorsQuery> for ContributorFilter {
    fn from(query: ContributorsQuery) -> Self {
        Self {
            run: query.run,
            span: query.span.unwrap_or_default(),
            name: None,
            sort: ContributorSort::default(),
            skip: query.skip.unwrap_or_default(),
            limit: page_size(query.limit, CONTRIBUTORS),
        }
    }
}

/// Contributors, most positions in the span of time first.
#[utoipa::path(get, path = "/contributors", tag = "people", params(ContributorsQuery), responses(
    (status = 200, description = "Contributors", body = Vec<ContributorInfo>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn contributors(
    State(app): State<App>,
    Query(query): Query<ContributorsQuery>,
) -> ApiResult<axum::Json<Vec<ContributorInfo>>> {
    let now = app.clock.now();
    let found = app
        .list(|db| async move { db.contributors(query.into(), now).await })
        .await?;
    Ok(axum::Json(found.list))
}

/// Of which run.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ContributorQuery {
    /// Only of this run; of all together if it is left out.
    run: Option<RunName>,
}

/// One contributor: what was counted lately, and which workers were active.
#[utoipa::path(get, path = "/contributors/{name}", tag = "people",
    params(("name" = String, Path, description = "The contributor's name"), ContributorQuery),
    responses(
    (status = 200, description = "The contributor", body = ContributorDetail),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn contributor(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<ContributorQuery>,
) -> ApiResult<axum::Json<ContributorDetail>> {
    check_sought(&name)?;
    let now = app.clock.now();
    // The place among all takes as long as a list.
    let found = app
        .list(|db| async move { db.contributor(&name, query.run.as_ref(), now).await })
        .await?;
    Ok(axum::Json(found))
}

/// How many workers.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WorkersQuery {
    /// The most workers to return, up to 1,000.
    #[param(minimum = 1)]
    limit: Option<u32>,
}

/// Workers that were active in the last ten minutes, whatever run they play for.
#[utoipa::path(get, path = "/workers", tag = "people", params(WorkersQuery), responses(
    (status = 200, description = "Workers", body = ActiveWorkers),
    (status = "4XX", description = "bad-request", body = Problem),
))]
async fn workers(
    State(app): State<App>,
    Query(query): Query<WorkersQuery>,
) -> ApiResult<axum::Json<ActiveWorkers>> {
    let limit = page_size(query.limit, WORKERS);
    let since = app.clock.now() - ACTIVE;
    Ok(axum::Json(app.db.workers(None, since, limit).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributors_come_by_the_page() {
        for (asked, limit) in [(None, 200), (Some(0), 1), (Some(7), 7), (Some(5000), 1000)] {
            let query = ContributorsQuery {
                run: None,
                span: None,
                skip: None,
                limit: asked,
            };
            assert_eq!(ContributorFilter::from(query).limit, limit, "{asked:?}");
        }
    }
}
