//! HTTP: router, typed extractors, handlers, one error type.
//!
//! The OpenAPI document follows from the handlers and is served at `/api/v1/openapi.json`.

mod body;
pub mod chunks;
mod compression;
mod document;
pub(crate) mod download;
pub mod error;
pub mod events;
pub mod extract;
pub mod games;
pub mod health;
pub mod jobs;
pub mod matches;
mod middleware;
pub mod networks;
mod operator_log;
pub mod people;
pub mod puzzles;
mod rejections;
mod request_id;
pub mod runs;
mod server;
pub mod tokens;
pub mod trust;

use axum::extract::{DefaultBodyLimit, State};
use axum::handler::Handler as _;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use rookery_common::protocol::{API_PREFIX, ProblemCode};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::config::{MetricsAddress, Origins};
use crate::pages;
use error::ApiError;

/// Largest body of a request that is neither chunk nor network nor report, in bytes.
const BODY_BYTES: usize = 256 << 10;

/// Headers of every answer that does not say otherwise. Answers of the API are data: a browser
/// that is shown one runs nothing and loads nothing.
const SECURITY_HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=()",
    ),
];

/// Everything that the coordinator serves.
pub fn router(app: App) -> Router {
    let (api, document) = documented().split_for_parts();
    let document = axum::Json(document::complete(document));
    let openapi = format!("{API_PREFIX}/openapi.json");
    let metrics = match app.metrics_address {
        MetricsAddress::WithApi => health::metrics(),
        MetricsAddress::Own => Router::new(),
    };
    let routes = api
        .route(&openapi, get(async || document))
        // What a browser asks before it reads comes as another method.
        .method_not_allowed_fallback(no_such_method)
        .layer(cross_origin(&app.origins))
        .merge(health::router())
        .with_state(app.clone())
        .merge(metrics)
        .merge(pages::router(app.clone()))
        .fallback_service(no_such_address.with_state(app.clone()))
        .method_not_allowed_fallback(no_such_method);
    let routes = match app.site.clone() {
        Some(site) => routes.layer(Extension(site)),
        None => routes,
    };
    with_layers(routes, app)
}

pub fn document() -> OpenApi {
    document::complete(documented().into_openapi())
}

fn documented() -> OpenApiRouter<App> {
    let api = OpenApiRouter::new()
        .merge(people::router())
        .merge(tokens::router())
        .merge(operator_log::router())
        .merge(jobs::router())
        .merge(server::router())
        .merge(runs::router())
        .merge(matches::router())
        .merge(rejections::router())
        .merge(games::router())
        .merge(puzzles::router())
        .merge(trust::router())
        .merge(events::router())
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        // These have larger limits of their own.
        .merge(chunks::router())
        .merge(networks::router());
    OpenApiRouter::with_openapi(document::head()).nest(API_PREFIX, api)
}

/// From the outside in: a request's identifier, its task, who asks, its log span, its duration, whether it
/// is too much, panics, time limits, compression.
fn with_layers(routes: Router, app: App) -> Router {
    let id = middleware::REQUEST_ID;
    let routes = routes
        .layer(compression::layer())
        .layer(from_fn(compression::withdraw))
        .layer(from_fn(middleware::time_limit))
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(from_fn_with_state(app.clone(), middleware::admit))
        .layer(from_fn(middleware::measure))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(middleware::span)
                .on_failure(middleware::broke_off),
        )
        .layer(from_fn_with_state(app, middleware::identify))
        // Outside of what a task keeps for itself, such as the name of its request.
        .layer(from_fn(middleware::finish));
    let routes = SECURITY_HEADERS
        .iter()
        .fold(routes, |routes, (name, value)| {
            let name = HeaderName::from_static(name);
            let value = HeaderValue::from_static(value);
            routes.layer(SetResponseHeaderLayer::if_not_present(name, value))
        });
    routes
        .layer(PropagateRequestIdLayer::new(id.clone()))
        .layer(SetRequestIdLayer::new(id, MakeRequestUuid))
        .layer(from_fn(middleware::check_id))
}

/// Lets pages of other sites read what anyone may read, if the operator names them.
fn cross_origin(origins: &Origins) -> CorsLayer {
    let readers = match origins {
        Origins::None => AllowOrigin::list([]),
        Origins::Any => AllowOrigin::any(),
        Origins::These(origins) => AllowOrigin::list(origins.iter().cloned()),
    };
    CorsLayer::new()
        .allow_origin(readers)
        .allow_methods([Method::GET, Method::HEAD])
        .allow_headers([header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH])
        .expose_headers([header::ETAG, header::RETRY_AFTER, middleware::REQUEST_ID])
}

/// A page for people, a problem for programs.
async fn no_such_address(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path();
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if !path.starts_with("/api/") && accepted.is_some_and(|kinds| kinds.contains("text/html")) {
        return pages::no_such_address(&app, path).await;
    }
    ApiError::not_found(format!("there is nothing at {path}")).into_response()
}

async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{method} is not for {}", uri.path());
    ApiError::new(ProblemCode::MethodNotAllowed, detail)
}
