//! What all pages share: the frame around them, and how a template becomes an answer.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use rookery_common::ids::RunName;

use super::assets;
use super::error::PageError;

/// The frame around a page.
#[derive(Debug)]
pub(super) struct Layout {
    /// The run that the page belongs to.
    pub run: Option<RunName>,
    /// The tab that leads here.
    pub tab: Tab,
}

/// A page of a run's navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    /// What is happening now.
    Overview,
    /// Networks and their ratings.
    Networks,
    /// Matches.
    Matches,
    /// Games.
    Games,
    /// Losses.
    Training,
    /// Puzzle scores.
    Puzzles,
    /// Who plays.
    Contributors,
    /// How to join.
    Join,
    /// None of these.
    Other,
}

impl Tab {
    const ALL: [(Self, &str, &str); 8] = [
        (Self::Overview, "Overview", ""),
        (Self::Networks, "Networks", "/networks"),
        (Self::Matches, "Matches", "/matches"),
        (Self::Games, "Games", "/games"),
        (Self::Training, "Training", "/training"),
        (Self::Puzzles, "Puzzles", "/puzzles"),
        (Self::Contributors, "Contributors", "/contributors"),
        (Self::Join, "Join", "/join"),
    ];
}

/// One of several links, of which one leads to what is shown.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: &'static str,
    pub(super) href: String,
    pub(super) current: bool,
}

impl Layout {
    /// The frame of a run's page.
    pub(super) fn of(run: &RunName, tab: Tab) -> Self {
        Self {
            run: Some(run.clone()),
            tab,
        }
    }

    /// The frame of a page that belongs to no run.
    pub(super) const fn plain() -> Self {
        Self {
            run: None,
            tab: Tab::Other,
        }
    }

    /// The links of the run's pages.
    pub(super) fn tabs(&self) -> Vec<Choice> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        Tab::ALL
            .iter()
            .map(|(tab, name, path)| Choice {
                name,
                href: format!("/runs/{run}{path}"),
                current: *tab == self.tab,
            })
            .collect()
    }

    /// The address of an asset.
    #[expect(
        clippy::unused_self,
        reason = "templates call it on the layout they are given"
    )]
    pub(super) fn asset(&self, name: &str) -> String {
        assets::path(name)
    }

    /// The program's version.
    #[expect(
        clippy::unused_self,
        reason = "templates call it on the layout they are given"
    )]
    pub(super) const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

/// What a handler gives back.
pub(super) type Page = Result<Response, PageError>;

/// Renders a template as the answer.
pub(super) fn page(template: &impl Template) -> Page {
    Ok(Html(template.render()?).into_response())
}
