//! Pages that cannot be shown.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::layout::Layout;
use crate::store::StoreError;

/// Seconds after which a page is asked for again that could not be shown for now.
const RETRY_AFTER: u64 = 5;

/// Why a page cannot be shown.
#[derive(Debug)]
pub(super) enum PageError {
    /// There is no such thing; the text names it.
    NotFound(String),
    /// The database is away for now; the text goes to the log and not to the page.
    Unavailable(StoreError),
    /// Something failed inside; the text goes to the log and not to the page.
    Internal(anyhow::Error),
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    layout: Layout,
    title: &'static str,
    detail: String,
}

impl PageError {
    /// Something is not there.
    pub(super) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound(what.into())
    }

    /// The status, the title and a sentence. The log gets the rest.
    fn told(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::NotFound(what) => (StatusCode::NOT_FOUND, "Not found", what),
            Self::Unavailable(error) => {
                tracing::warn!(%error, "a page could not be shown for now");
                let detail = "The coordinator cannot reach its database at present; it goes on by \
                              itself.";
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Not at present",
                    detail.to_owned(),
                )
            }
            Self::Internal(error) => {
                tracing::error!(error = format!("{error:#}"), "a page could not be shown");
                let detail = "The coordinator could not show this page; its log says why.";
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Something went wrong",
                    detail.to_owned(),
                )
            }
        }
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::NotFound(format!("There is no {what}.")),
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
        Self::not_found("Nothing has this address.")
    }
}

impl From<QueryRejection> for PageError {
    fn from(_: QueryRejection) -> Self {
        Self::not_found("The part of the address after the question mark is not understood.")
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, title, detail) = self.told();
        let page = ErrorPage {
            layout: Layout::plain(),
            title,
            detail,
        };
        let mut response = match page.render() {
            Ok(html) => (status, Html(html)).into_response(),
            Err(_) => status.into_response(),
        };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, RETRY_AFTER.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    async fn shown(error: StoreError) -> (StatusCode, Option<HeaderValue>, String) {
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
        let (status, retry, page) = shown(StoreError::Unavailable("gone".into())).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(retry, Some(HeaderValue::from(RETRY_AFTER)));
        assert!(page.contains("cannot reach its database"), "{page}");
        let unreadable = StoreError::Unreadable {
            what: "game",
            reason: "torn".to_owned(),
        };
        let (status, retry, page) = shown(unreadable).await;
        assert_eq!((status, retry), (StatusCode::INTERNAL_SERVER_ERROR, None));
        assert!(!page.contains("torn"), "{page}");
    }
}
