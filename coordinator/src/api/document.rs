//! The OpenAPI document: what the handlers say, and what is true of all of them.

use rookery_common::protocol::{API_PREFIX, Problem, ProblemCode};
use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response};

/// The media type of problems (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// What stands at the head of the document.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Rookery coordinator",
        description = "Jobs, chunks, networks, matches and ratings of distributed chess training. \
            Errors are RFC 9457 problems; docs/protocol.md says what clients do with each. Every \
            call may be answered with too-many-requests, and one with a body with \
            request-timeout or too-large.",
        license(name = "GPL-3.0-or-later")
    ),
    components(schemas(Problem))
)]
struct Head;

/// The document's head, to which the handlers add their calls.
pub(super) fn head() -> OpenApi {
    Head::openapi()
}

/// Adds what every call has in common: an identifier of its own, tokens, and problems of clients
/// and of the coordinator.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    // The derived schema has the names of the variants instead of the codes.
    let codes = ProblemCode::ALL.iter().map(|code| code.as_str());
    let codes = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(codes));
    let schemas = &mut components.schemas;
    schemas.insert("ProblemCode".to_owned(), codes.into());
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            operation.operation_id = Some(operation_id(method, path));
            add_problems(operation);
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("get", &mut item.get),
        ("put", &mut item.put),
        ("post", &mut item.post),
        ("delete", &mut item.delete),
        ("patch", &mut item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// What a call is named in programs that are made from the document: handlers of several modules
/// have the same name. `GET /api/v1/matches/{id}` is `get_matches_id`.
fn operation_id(method: &str, path: &str) -> String {
    let path = path.strip_prefix(API_PREFIX).unwrap_or(path);
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    let words = std::iter::once(method).chain(words.filter(|word| !word.is_empty()));
    words.collect::<Vec<_>>().join("_")
}

fn add_problems(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    for (status, description) in [
        ("4XX", "bad-request, too-many-requests"),
        (
            "5XX",
            "internal, unavailable: try again after Retry-After seconds",
        ),
    ] {
        let response = responses
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(Response::new(description)));
        if let RefOr::T(response) = response {
            let schema = Content::new(Some(Ref::from_schema_name("Problem")));
            response.content = [(PROBLEM.to_owned(), RefOr::T(schema))]
                .into_iter()
                .collect();
        }
    }
}
