//! A user's own tokens: listed, made, changed for new ones, revoked.
//!
//! A token reaches only tokens that may do no more than itself: with a stolen one of the scope
//! `contribute` nobody gets or revokes one that may operate.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::SignedDuration;
use rookery_common::protocol::people::{NewToken, Scope, TokenEntry, TokenRequest};
use rookery_common::protocol::{Problem, ProblemCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Anyone, Json, Path};
use super::people::check_machine;
use crate::app::App;
use crate::db::{Actor, Principal, TOKENS, TokenCounts, TokenDraft, TokenInfo};
use crate::tokens::Token;

/// Tokens that one user makes in a day: revoked ones stay in the ledger.
const TOKENS_A_DAY: u64 = 200;
const DAY: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(revoke))
        .routes(routes!(rotate))
}

/// The caller's tokens that may do no more than the one in use; revoked ones too.
#[utoipa::path(get, path = "/tokens", tag = "people", security(("token" = [])), responses(
    (status = 200, description = "Tokens, at most 2,000: valid ones first, the newest first",
        body = Vec<TokenEntry>),
    (status = "4XX", description = "unauthorized, blocked", body = Problem),
))]
async fn list(
    State(app): State<App>,
    Anyone(caller): Anyone,
) -> ApiResult<axum::Json<Vec<TokenEntry>>> {
    let tokens = app.db.tokens_of(caller.user).await?;
    let reach = |token: &TokenInfo| covers(&caller, &token.scopes);
    let entry = |token: TokenInfo| TokenEntry {
        in_use: token.id == caller.token,
        id: token.id,
        machine: token.machine,
        scopes: token.scopes,
        created_at: token.created_at,
        revoked_at: token.revoked_at,
    };
    Ok(axum::Json(
        tokens.into_iter().filter(reach).map(entry).collect(),
    ))
}

fn covers(caller: &Principal, scopes: &[Scope]) -> bool {
    scopes.iter().all(|scope| caller.scopes.contains(scope))
}

/// Makes another token for the caller, for example for another machine. The answer shows it once.
#[utoipa::path(post, path = "/tokens", tag = "people", request_body = TokenRequest,
    security(("token" = [])), responses(
    (status = 201, description = "The token", body = NewToken),
    (status = "4XX", description = "bad-request, unauthorized, forbidden, blocked, conflict",
        body = Problem),
))]
async fn make(
    State(app): State<App>,
    Anyone(caller): Anyone,
    Json(request): Json<TokenRequest>,
) -> ApiResult<(StatusCode, axum::Json<NewToken>)> {
    check_machine(&request.machine).map_err(ApiError::bad_request)?;
    let mut scopes = request.scopes.unwrap_or_else(|| caller.scopes.clone());
    scopes.sort_unstable_by_key(|scope| scope.name());
    scopes.dedup();
    if scopes.is_empty() {
        return Err(ApiError::bad_request("a token needs a scope"));
    }
    if !covers(&caller, &scopes) {
        let detail = "a token makes only tokens that may do no more than itself";
        return Err(ApiError::new(ProblemCode::Forbidden, detail));
    }
    if counts_with_room(&app, &caller).await?.valid >= u64::from(TOKENS) {
        let detail = format!("there are {TOKENS} valid tokens; revoke some first");
        return Err(ApiError::new(ProblemCode::Conflict, detail));
    }
    let token = Token::generate()?;
    let draft = TokenDraft {
        hash: token.hash(),
        scopes: scopes.clone(),
        machine: request.machine,
    };
    let now = app.clock.now();
    let id = app.db.issue_token(&caller, draft, now).await?;
    Ok((StatusCode::CREATED, told(caller, id, &token, scopes)))
}

/// How many tokens the caller has; a conflict if too many were made lately.
async fn counts_with_room(app: &App, caller: &Principal) -> ApiResult<TokenCounts> {
    let since = app.clock.now() - DAY;
    let counts = app.db.token_counts(caller.user, since).await?;
    if counts.made < TOKENS_A_DAY {
        return Ok(counts);
    }
    let detail = format!(
        "{TOKENS_A_DAY} tokens of this user were made in the last 24 hours, and no more are: use \
         one of them, or wait"
    );
    Err(ApiError::new(ProblemCode::Conflict, detail))
}

fn told(caller: Principal, id: i64, token: &Token, scopes: Vec<Scope>) -> axum::Json<NewToken> {
    axum::Json(NewToken {
        user: caller.user,
        name: caller.name,
        id: Some(id),
        token: token.reveal().to_owned(),
        scopes,
    })
}

async fn find(app: &App, caller: &Principal, id: i64) -> ApiResult<TokenInfo> {
    let found = app.db.token(caller.user, id).await?;
    let reached = found.filter(|token| covers(caller, &token.scopes));
    reached.ok_or_else(|| ApiError::not_found(format!("there is no token {id} within reach")))
}

/// Revokes one of the caller's tokens, also the one in use.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "people",
    params(("id" = i64, Path, description = "The token's number")),
    security(("token" = [])), responses(
    (status = 204, description = "It is refused from now on"),
    (status = "4XX", description = "bad-request, not-found, unauthorized, blocked", body = Problem),
))]
async fn revoke(
    State(app): State<App>,
    Anyone(caller): Anyone,
    Path(id): Path<i64>,
) -> ApiResult<StatusCode> {
    let token = find(&app, &caller, id).await?;
    if token.revoked_at.is_none() {
        let by = Actor::new(&caller.name, app.clock.now());
        app.db.revoke_token(id, by).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces one of the caller's tokens by a new one of the same name and scopes, and revokes the old
/// one. The answer shows the new one once.
#[utoipa::path(post, path = "/tokens/{id}/rotation", tag = "people",
    params(("id" = i64, Path, description = "The token's number")),
    security(("token" = [])), responses(
    (status = 201, description = "The new token", body = NewToken),
    (status = "4XX", description = "bad-request, not-found, conflict, unauthorized, blocked",
        body = Problem),
))]
async fn rotate(
    State(app): State<App>,
    Anyone(caller): Anyone,
    Path(id): Path<i64>,
) -> ApiResult<(StatusCode, axum::Json<NewToken>)> {
    let old = find(&app, &caller, id).await?;
    if old.revoked_at.is_some() {
        let detail = format!("token {id} is revoked");
        return Err(ApiError::new(ProblemCode::Conflict, detail));
    }
    counts_with_room(&app, &caller).await?;
    let token = Token::generate()?;
    let draft = TokenDraft {
        hash: token.hash(),
        scopes: old.scopes.clone(),
        machine: old.machine,
    };
    let now = app.clock.now();
    let new = app.db.change_token(&caller, id, draft, now).await?;
    Ok((StatusCode::CREATED, told(caller, new, &token, old.scopes)))
}
