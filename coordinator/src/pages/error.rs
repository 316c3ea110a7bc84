//! Pages that cannot be shown.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use rookery_common::ids::RunName;
use rookery_common::protocol::server::Presentation;

use super::PagesState;
use super::layout::{Layout, Tab};
use crate::app::App;
use crate::db::DbError;

/// Seconds after which a page is asked for again that could not be shown for now.
const RETRY_AFTER: u64 = 5;

#[derive(Debug)]
pub(super) enum PageError {
    /// The address is not understood; the text says why.
    BadRequest(String),
    /// There is no such thing; the text names it.
    NotFound(String),
    /// The database is away for now; the text goes to the log and not to the page.
    Unavailable(DbError),
    /// Something failed inside; the text goes to the log and not to the page.
    Internal(anyhow::Error),
}

/// What a page says that cannot be shown.
#[derive(Debug, Clone)]
struct ErrorText {
    title: &'static str,
    detail: String,
}

impl ErrorText {
    fn page(&self, layout: Layout) -> Html<String> {
        let page = ErrorPage {
            layout,
            title: self.title,
            detail: self.detail.clone(),
        };
        Html(page.render().unwrap_or_default())
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    layout: Layout,
    title: &'static str,
    detail: String,
}

impl PageError {
    pub(super) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound(what.into())
    }

    /// The status, the title and a sentence. The log gets the rest.
    fn parts(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::BadRequest(why) => (StatusCode::BAD_REQUEST, "Bad request", why),
            Self::NotFound(what) => (StatusCode::NOT_FOUND, "Page not found", what),
            Self::Unavailable(error) => {
                tracing::warn!(%error, "A page could not be shown for now.");
                let detail = "The coordinator cannot reach its database now. It recovers by itself: \
                              reload the page in a minute.";
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Temporarily unavailable",
                    detail.to_owned(),
                )
            }
            Self::Internal(error) => {
                tracing::error!(error = format!("{error:#}"), "A page could not be shown.");
                let detail = "The coordinator failed to make this page. The cause is in its log.";
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Something went wrong",
                    detail.to_owned(),
                )
            }
        }
    }
}

impl From<DbError> for PageError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::NotFound(what) => Self::NotFound(format!("There is no {what}.")),
            error if error.is_temporary() => Self::Unavailable(error),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<anyhow::Error> for PageError {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::Internal(error.into())
    }
}

impl From<PathRejection> for PageError {
    fn from(_: PathRejection) -> Self {
        Self::not_found("There is no page at this address.")
    }
}

impl From<QueryRejection> for PageError {
    fn from(refusal: QueryRejection) -> Self {
        let why = refusal.body_text();
        let why = why.trim_start_matches("Failed to deserialize query string: ");
        Self::BadRequest(format!("The query of the address is not valid: {why}."))
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, title, detail) = self.parts();
        let error_text = ErrorText { title, detail };
        let mut response = (
            status,
            error_text.page(Layout::plain(&Presentation::default(), title)),
        )
            .into_response();
        response.extensions_mut().insert(error_text);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, RETRY_AFTER.into());
        }
        response
    }
}

/// Gives pages that cannot be shown the frame of others, with the navigation of the run that they would belong to.
pub(super) async fn navigate(
    State(state): State<PagesState>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    present(&state, &path, next.run(request).await).await
}

/// A page that cannot be shown, in the frame of others, with the navigation of the run whose address the
/// path begins with.
pub(super) async fn present(app: &App, path: &str, mut response: Response) -> Response {
    let Some(error_text) = response.extensions_mut().remove::<ErrorText>() else {
        return response;
    };
    let run = path.strip_prefix("/runs/").and_then(|rest| {
        let name = rest.split('/').next()?;
        name.parse::<RunName>().ok()
    });
    let run = match run {
        // A ledger that is away tells nothing of runs either.
        Some(run) if response.status().is_client_error() => app.db.run(&run).await.ok(),
        _ => None,
    };
    let layout = match run {
        Some(run) => {
            Layout::of(&app.presentation, &run, Tab::Other).titled(error_text.title.to_owned())
        }
        None => Layout::plain(&app.presentation, error_text.title),
    };
    *response.body_mut() = error_text.page(layout).into_response().into_body();
    response
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    async fn shown(error: DbError) -> (StatusCode, Option<HeaderValue>, String) {
        let response = PageError::from(error).into_response();
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        (
            head.status,
            head.headers.get(header::RETRY_AFTER).cloned(),
            text,
        )
    }

    #[tokio::test]
    async fn a_database_that_is_away_is_no_failure_of_the_coordinator() {
        let (status, retry, page) = shown(DbError::Unavailable("gone".into())).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(retry, Some(HeaderValue::from(RETRY_AFTER)));
        assert!(page.contains("cannot reach its database"), "{page}");
        let unreadable = DbError::Unreadable {
            what: "game",
            reason: "torn".to_owned(),
        };
        let (status, retry, page) = shown(unreadable).await;
        assert_eq!((status, retry), (StatusCode::INTERNAL_SERVER_ERROR, None));
        assert!(!page.contains("torn"), "{page}");
    }
}
