//! Whose searches can be believed: for contributors who want to know what of theirs is held, and
//! for operators.
//!
//! What stands here is not for everyone, and pages know nobody. So this one is empty, and its
//! script asks the API with the token that is typed into it.

use askama::Template;
use axum::extract::State;

use super::PagesState;
use super::layout::{Layout, Page, page};

#[derive(Template)]
#[template(path = "trust.html")]
struct TrustPage {
    layout: Layout,
}

/// `GET /trust`
pub(super) async fn look(State(state): State<PagesState>) -> Page {
    page(&TrustPage {
        layout: Layout::plain(&state.presentation, "Trust"),
    })
}
