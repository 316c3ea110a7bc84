//! Pages that cannot be shown.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use super::layout::Layout;
use crate::store::StoreError;

/// Why a page cannot be shown.
#[derive(Debug)]
pub(super) enum PageError {
    /// There is no such thing; the text names it.
    NotFound(String),
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
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::NotFound(format!("There is no {what}.")),
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
        let (status, title, detail) = match self {
            Self::NotFound(what) => (StatusCode::NOT_FOUND, "Not found", what),
            Self::Internal(error) => {
                tracing::error!(error = format!("{error:#}"), "a page could not be shown");
                let detail = "The coordinator could not show this page; its log says why.";
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Something went wrong",
                    detail.to_owned(),
                )
            }
        };
        let page = ErrorPage {
            layout: Layout::plain(),
            title,
            detail,
        };
        match page.render() {
            Ok(html) => (status, Html(html)).into_response(),
            Err(_) => status.into_response(),
        }
    }
}
