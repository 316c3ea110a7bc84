//! Whose searches can be believed: for contributors who want to know what of theirs is held, and
//! for operators.
//!
//! How much is audited, and by whom, is for everyone. The rest is not, and pages know nobody: its
//! script asks the API with the token that is typed into it.

use askama::Template;
use axum::extract::State;

use super::PagesState;
use super::layout::{Layout, Page, page};
use super::text;
use crate::db::{Auditing, NAME_AN_AUDITOR};

#[derive(Template)]
#[template(path = "trust.html")]
struct TrustPage {
    layout: Layout,
    auditing: Auditing,
    /// What an operator types where nobody is trusted.
    command: &'static str,
}

/// `GET /trust`
pub(super) async fn look(State(state): State<PagesState>) -> Page {
    page(&TrustPage {
        layout: Layout::plain(&state.presentation, "Trust"),
        auditing: state.db.auditing(state.now()).await?,
        command: NAME_AN_AUDITOR,
    })
}
