//! Typed parts of requests, whose refusals are problems as everything else.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use rookery_common::ids::RunName;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::Scope;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::body;
pub use super::body::Bytes;
use super::error::{ApiError, ApiResult};
use crate::app::App;
use crate::db::{Principal, Standing};
use crate::limits::address::ClientAddress;
use crate::tokens::{Token, TokenHash};

#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).cloned();
        let mut whole = Request::new(Body::from(body::read(request, app).await?));
        if let Some(kind) = kind {
            whole.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        let parsed = axum::Json::<T>::from_request(whole, app).await;
        parsed
            .map(|axum::Json(value)| Self(value))
            .map_err(|refusal| ApiError::bad_request(refusal.body_text()))
    }
}

/// The address that a request comes from, where it is known.
#[derive(Debug, Clone, Copy)]
pub struct Client(pub Option<ClientAddress>);

impl Client {
    fn of(parts: &Parts) -> Self {
        Self(parts.extensions.get().copied())
    }
}

impl FromRequestParts<App> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let parsed = axum::extract::Path::<T>::from_request_parts(parts, app).await;
        parsed
            .map(|axum::extract::Path(value)| Self(value))
            .map_err(|refusal| ApiError::bad_request(refusal.body_text()))
    }
}

/// Parameters after the question mark.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let parsed = axum::extract::Query::<T>::from_request_parts(parts, app).await;
        parsed
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|refusal| ApiError::bad_request(refusal.body_text()))
    }
}

/// The run that a request names; without a name, the only run there is.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunQuery {
    /// The run; may be left out where there is only one.
    pub run: Option<RunName>,
}

impl RunQuery {
    /// The run's name.
    /// It is a problem if no run is named and the coordinator does not host exactly one.
    pub async fn resolve(&self, app: &App) -> ApiResult<RunName> {
        if let Some(run) = &self.run {
            return Ok(run.clone());
        }
        let mut runs = app.db.runs().await?;
        runs.retain(|run| run.archived_at.is_none());
        match &runs[..] {
            [] => Err(ApiError::not_found("there is no run yet")),
            [only] => Ok(only.name.clone()),
            several => {
                let names: Vec<&str> = several.iter().map(|run| run.name.as_str()).collect();
                let detail = format!("say which run with ?run=; there are {}", names.join(", "));
                Err(ApiError::bad_request(detail))
            }
        }
    }
}

/// Where a page of what only grows begins.
#[derive(Debug, Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CursorQuery {
    /// The run; may be left out where there is only one.
    run: Option<RunName>,
    /// The `next` of the page before; 0 for the first.
    #[serde(default)]
    pub after: i64,
    /// Entries of the page, at most 1,000.
    #[param(minimum = 1)]
    pub limit: Option<u32>,
}

impl CursorQuery {
    pub async fn run(&self, app: &App) -> ApiResult<RunName> {
        let run = self.run.clone();
        RunQuery { run }.resolve(app).await
    }
}

/// Most entries of a page.
const LARGEST_PAGE: u32 = 1000;

/// Entries of a page: as many as were asked for, within bounds, or the usual number.
pub fn page_size(asked: Option<u32>, usual: u32) -> u32 {
    asked.unwrap_or(usual).clamp(1, LARGEST_PAGE)
}

/// How well it must be known that a token is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenFreshness {
    /// It was a moment ago: for what workers do all the time, and others learn to trust.
    Lately,
    /// It is now: for what cannot be taken back.
    Now,
}

/// The token of a request that must be good also when its body is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender(TokenHash);

impl Sender {
    /// Asks the ledger once more.
    pub(super) async fn must_still_be_good(self, app: &App) -> ApiResult<()> {
        let principal = app.db.principal_now(&self.0).await?;
        in_good_standing(principal.ok_or_else(not_known)?).map(drop)
    }
}

fn refuse(detail: &str) -> ApiError {
    ApiError::new(ProblemCode::Unauthorized, detail)
}

fn not_known() -> ApiError {
    refuse("the coordinator does not know this token, or it was revoked")
}

fn in_good_standing(principal: Principal) -> ApiResult<Principal> {
    match principal.standing {
        Standing::Good => Ok(principal),
        Standing::Blocked => {
            let detail = format!("the operator has blocked user {}", principal.name);
            Err(ApiError::new(ProblemCode::Blocked, detail))
        }
    }
}

/// The token in the `Authorization` header.
fn bearer(parts: &Parts) -> ApiResult<Token> {
    let value = parts.headers.get(header::AUTHORIZATION).ok_or_else(|| {
        refuse("send the token as `Authorization: Bearer rk_…`; POST /api/v1/users gives one")
    })?;
    value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| Token::parse(token.trim()))
        .ok_or_else(|| refuse("the Authorization header is not `Bearer rk_…` with 64 digits"))
}

/// Who sent the request.
async fn principal(parts: &mut Parts, app: &App, known: TokenFreshness) -> ApiResult<Principal> {
    let token = bearer(parts)?.hash();
    let principal = match known {
        TokenFreshness::Lately => app.db.principal(&token).await?,
        TokenFreshness::Now => {
            parts.extensions.insert(Sender(token));
            app.db.principal_now(&token).await?
        }
    };
    let principal = principal.ok_or_else(not_known)?;
    let Client(client) = Client::of(parts);
    app.limits
        .contributor(client, principal.user)
        .map_err(|too_much| ApiError::too_many("requests of this user", too_much))?;
    let principal = in_good_standing(principal)?;
    let now = app.clock.now();
    if principal.is_to_be_noted(now) {
        let (db, token) = (app.db.clone(), principal.token);
        // Nobody waits for it.
        tokio::spawn(async move {
            if let Err(error) = db.note_use(token, now).await {
                tracing::debug!(%error, "The use of a token was not noted.");
            }
        });
    }
    Ok(principal)
}

/// Someone with a valid token, whatever it may do.
#[derive(Debug)]
pub struct Anyone(pub Principal);

impl FromRequestParts<App> for Anyone {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        principal(parts, app, TokenFreshness::Now).await.map(Self)
    }
}

/// Whether somebody's token has a scope.
pub fn may(principal: &Principal, scope: Scope) -> ApiResult<()> {
    if principal.scopes.contains(&scope) {
        return Ok(());
    }
    let detail = format!("this needs a token with the scope `{}`", scope.name());
    Err(ApiError::new(ProblemCode::Forbidden, detail))
}

macro_rules! scoped {
    ($(#[$doc:meta])* $name:ident, $scope:ident, $known:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub Principal);

        impl FromRequestParts<App> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
                let principal = principal(parts, app, TokenFreshness::$known).await?;
                may(&principal, Scope::$scope)?;
                Ok(Self(principal))
            }
        }
    };
}

scoped! {
    /// Someone who may take jobs and upload chunks.
    Contributor, Contribute, Lately
}
scoped! {
    /// Someone who may read chunks and submit networks.
    Trainer, Train, Now
}
scoped! {
    /// Someone who may change runs, matches and users.
    Operator, Operate, Now
}
