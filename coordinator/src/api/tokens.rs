//! A user's own tokens: listed, made, changed for new ones, revoked.
//!
//! A token reaches only tokens that may do no more than itself: with a stolen one of the scope
//! `contribute` nobody gets or revokes one that may operate.

use axum::extract::State;
use axum::http::StatusCode;
use rookery_common::protocol::people::{NewToken, Scope, TokenEntry, TokenRequest};
use rookery_common::protocol::{Problem, ProblemCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ApiResult};
use super::extract::{Anyone, Json, Path};
use super::people::check_machine;
use crate::app::App;
use crate::store::{Principal, TokenDraft, TokenInfo};
use crate::tokens::Token;

/// Valid tokens of one user.
const TOKENS: usize = 1000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(revoke))
        .routes(routes!(rotate))
}

/// The caller's tokens that may do no more than the one in use; revoked ones too.
#[utoipa::path(get, path = "/tokens", tag = "people", security(("token" = [])), responses(
    (status = 200, description = "Tokens, oldest first", body = Vec<TokenEntry>),
    (status = "4XX", description = "unauthorized, blocked", body = Problem),
))]
async fn list(
    State(app): State<App>,
    Anyone(caller): Anyone,
) -> ApiResult<axum::Json<Vec<TokenEntry>>> {
    let tokens = within_reach(&app, &caller).await?;
    let entry = |token: TokenInfo| TokenEntry {
        in_use: token.id == caller.token,
        id: token.id,
        machine: token.machine,
        scopes: token.scopes,
        created_at: token.created_at,
        revoked_at: token.revoked_at,
    };
    Ok(axum::Json(tokens.into_iter().map(entry).collect()))
}

async fn within_reach(app: &App, caller: &Principal) -> ApiResult<Vec<TokenInfo>> {
    let tokens = app.store.tokens_of(caller.user).await?;
    let reach = |token: &TokenInfo| covers(caller, &token.scopes);
    Ok(tokens.into_iter().filter(reach).collect())
}

fn covers(caller: &Principal, scopes: &[Scope]) -> bool {
    scopes.iter().all(|scope| caller.scopes.contains(scope))
}

/// Makes another token for the caller, for example for another machine. It is told once.
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
    let tokens = app.store.tokens_of(caller.user).await?;
    let valid = tokens.iter().filter(|token| token.revoked_at.is_none());
    if valid.count() >= TOKENS {
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
    let id = app.store.issue_token(caller.user, draft, now).await?;
    Ok((StatusCode::CREATED, told(caller, id, &token, scopes)))
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
    let tokens = within_reach(app, caller).await?;
    let found = tokens.into_iter().find(|token| token.id == id);
    found.ok_or_else(|| ApiError::not_found(format!("there is no token {id} within reach")))
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
    find(&app, &caller, id).await?;
    let now = app.clock.now();
    app.store.revoke_token(id, &caller.name, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes one of the caller's tokens for a new one of the same name and scopes, which is told
/// once; the old one is revoked.
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
    let token = Token::generate()?;
    let draft = TokenDraft {
        hash: token.hash(),
        scopes: old.scopes.clone(),
        machine: old.machine,
    };
    let now = app.clock.now();
    let new = app.store.rotate_token(id, draft, &caller.name, now).await?;
    Ok((StatusCode::CREATED, told(caller, new, &token, old.scopes)))
}
