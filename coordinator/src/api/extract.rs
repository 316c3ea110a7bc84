//! Typed parts of requests, whose refusals are problems as everything else.

use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use rookery_common::ids::RunName;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::Scope;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{ApiError, ApiResult};
use crate::app::App;
use crate::store::{Principal, Standing};
use crate::tokens::Token;

/// A JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let parsed = axum::Json::<T>::from_request(request, app).await;
        parsed
            .map(|axum::Json(value)| Self(value))
            .map_err(|refusal| refused_json(&refusal))
    }
}

fn refused_json(refusal: &JsonRejection) -> ApiError {
    match refusal.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(&refusal.body_text()),
        _ => ApiError::bad_request(refusal.body_text()),
    }
}

fn too_large(detail: &str) -> ApiError {
    ApiError::new(ProblemCode::TooLarge, detail)
}

/// A body of bytes.
#[derive(Debug)]
pub struct Bytes(pub bytes::Bytes);

impl FromRequest<App> for Bytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let body = bytes::Bytes::from_request(request, app).await;
        body.map(Self)
            .map_err(|refusal: BytesRejection| match refusal.status() {
                StatusCode::PAYLOAD_TOO_LARGE => too_large(&refusal.body_text()),
                _ => ApiError::bad_request(refusal.body_text()),
            })
    }
}

/// Parts of the path.
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
pub struct RunQuery {
    /// The run; may be left out where there is only one.
    pub run: Option<RunName>,
}

impl RunQuery {
    /// The run's name.
    ///
    /// # Errors
    ///
    /// A problem if none is named and there are none or several.
    pub async fn resolve(&self, app: &App) -> ApiResult<RunName> {
        if let Some(run) = &self.run {
            return Ok(run.clone());
        }
        let runs = app.store.runs().await?;
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

/// Who sent the request, by the token in its `Authorization` header.
async fn principal(parts: &Parts, app: &App) -> ApiResult<Principal> {
    let refuse = |detail: &str| ApiError::new(ProblemCode::Unauthorized, detail);
    let value = parts.headers.get(header::AUTHORIZATION).ok_or_else(|| {
        refuse("send the token as `Authorization: Bearer rk_…`; POST /api/v1/users gives one")
    })?;
    let token = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| Token::parse(token.trim()))
        .ok_or_else(|| refuse("the Authorization header is not `Bearer rk_…` with 64 digits"))?;
    let principal = app.store.principal(&token.hash()).await?;
    let principal =
        principal.ok_or_else(|| refuse("this token is not known here, or it was revoked"))?;
    match principal.standing {
        Standing::Good => Ok(principal),
        Standing::Blocked => {
            let detail = format!("the operator has blocked user {}", principal.name);
            Err(ApiError::new(ProblemCode::Blocked, detail))
        }
    }
}

async fn with_scope(parts: &Parts, app: &App, scope: Scope) -> ApiResult<Principal> {
    let principal = principal(parts, app).await?;
    if principal.scopes.contains(&scope) {
        return Ok(principal);
    }
    let detail = format!("this needs a token with the scope `{}`", scope.name());
    Err(ApiError::new(ProblemCode::Forbidden, detail))
}

macro_rules! scoped {
    ($(#[$doc:meta])* $name:ident, $scope:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub Principal);

        impl FromRequestParts<App> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
                with_scope(parts, app, Scope::$scope).await.map(Self)
            }
        }
    };
}

scoped! {
    /// Someone who may take jobs and upload chunks.
    Contributor, Contribute
}
scoped! {
    /// Someone who may read chunks and submit networks.
    Trainer, Train
}
scoped! {
    /// Someone who may change runs, matches and users.
    Operator, Operate
}
