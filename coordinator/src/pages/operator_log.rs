//! What operators did, for operators: an empty page, whose script asks the API with the token that is typed
//! into it, as the page of trust does.

use askama::Template;
use axum::extract::State;

use super::PagesState;
use super::layout::{Layout, Page, page};

#[derive(Template)]
#[template(path = "operator-log.html")]
struct OperatorLogPage {
    layout: Layout,
}

/// `GET /operator-log`
pub(super) async fn look(State(state): State<PagesState>) -> Page {
    page(&OperatorLogPage {
        layout: Layout::plain(&state.presentation, "Operator log"),
    })
}
