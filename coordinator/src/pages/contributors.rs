//! Who plays for a run: those who gave most, lately or of all time.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{ContributorInfo, Credit, NAME_CHARS, Span};
use rookery_common::protocol::user_name::in_url;
use serde::Deserialize;

use super::address::Address;
use super::join::worker_command;
use super::layout::{Choice, Layout, Page, Tab, page};
use super::{PagesState, text};
use crate::db::{ContributorFilter, Contributors};

/// Contributors on a page.
const PEOPLE: u32 = 100;

/// What stands after the question mark.
#[derive(Debug, Deserialize)]
pub(super) struct ContributorsQuery {
    /// When they gave what is counted.
    span: Option<Span>,
    /// What their names contain.
    name: Option<String>,
    /// Not so many of the first.
    skip: Option<u32>,
}

#[derive(Template)]
#[template(path = "contributors.html")]
struct ContributorsPage {
    layout: Layout,
    worker_command: String,
    run: RunName,
    choices: Vec<Choice>,
    nobody_yet: bool,
    /// Whether they are listed by what they gave lately.
    recent: bool,
    span: Span,
    /// What their names contain, if that is asked for.
    sought: Option<String>,
    /// The same list with any name.
    any_name: String,
    in_time: &'static str,
    all: u64,
    credit: Credit,
    /// Games of the run that are excluded now.
    held: u64,
    contributors: Vec<ContributorRow>,
    next: Option<String>,
}

struct ContributorRow {
    /// By which they are listed.
    credit: Credit,
    seen: String,
    joined: String,
    info: ContributorInfo,
}

/// `GET /runs/{run}/contributors`
pub(super) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<ContributorsQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(query)) = (name?, query?);
    let skip = query.skip.unwrap_or_default();
    let chosen = Chosen {
        span: query.span.unwrap_or_default(),
        name: query.name.as_deref().and_then(sought),
    };
    let span = chosen.span;
    let now = state.now();
    let info = state.db.run(&run).await?;
    let filter = ContributorFilter {
        run: Some(run.clone()),
        span,
        name: chosen.name.clone(),
        skip,
        limit: PEOPLE,
    };
    let found = state
        .list(|db| async move { db.contributors(filter, now).await })
        .await?;
    let row = |info: ContributorInfo| ContributorRow {
        credit: info.recent.unwrap_or_else(|| info.credit()),
        seen: info
            .last_seen
            .as_deref()
            .map_or_else(|| "–".to_owned(), |at| text::ago(now, at)),
        joined: text::ago(now, &info.joined_at),
        info,
    };
    page(&ContributorsPage {
        layout: Layout::of(&state.presentation, &info, Tab::Contributors).pictured(&address),
        worker_command: worker_command(state.registration, &address, &run),
        choices: chosen.choices(&run),
        nobody_yet: chosen == Chosen::default() && skip == 0 && found.list.is_empty(),
        recent: span != Span::All,
        span,
        in_time: in_time(span),
        next: chosen.next_page(&run, skip, &found),
        any_name: Chosen { span, name: None }.href(&run),
        all: found.all,
        held: match span {
            Span::All if chosen.name.is_none() => info.games.saturating_sub(found.credit.games),
            _ => 0,
        },
        sought: chosen.name,
        credit: found.credit,
        contributors: found.list.into_iter().map(row).collect(),
        run,
    })
}

/// How a visitor wants the list.
#[derive(Debug, Clone, Default, PartialEq)]
struct Chosen {
    span: Span,
    name: Option<String>,
}

/// What a name is to contain. A form sends an empty text where nothing was written.
fn sought(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    let some: String = text.chars().take(NAME_CHARS).collect();
    (!some.is_empty()).then_some(some)
}

impl Chosen {
    /// The address of the list, to which more can be added.
    fn address(&self, run: &RunName) -> String {
        let span = match self.span {
            Span::All => String::new(),
            span => format!("span={}&", span.name()),
        };
        let name = self.name.as_deref();
        let name = name.map_or_else(String::new, |name| format!("name={}&", in_url(name)));
        format!("/runs/{run}/contributors?{span}{name}")
    }

    fn href(&self, run: &RunName) -> String {
        self.address(run).trim_end_matches(['?', '&']).to_owned()
    }

    fn choices(&self, run: &RunName) -> Vec<Choice> {
        let choice = |span: Span| Choice {
            name: text::span(span),
            href: Self {
                span,
                name: self.name.clone(),
            }
            .href(run),
            current: span == self.span,
        };
        Span::ALL.map(choice).into()
    }

    /// The address of those behind these, if there are any.
    fn next_page(&self, run: &RunName, skip: u32, found: &Contributors) -> Option<String> {
        let told = u64::from(skip) + found.list.len() as u64;
        let more = !found.list.is_empty() && told < found.all;
        more.then(|| format!("{}skip={told}", self.address(run)))
    }
}

const fn in_time(span: Span) -> &'static str {
    match span {
        Span::Day => "in the last 24 hours",
        Span::Week => "in the last 7 days",
        Span::Month => "in the last 30 days",
        Span::All => "in all",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_sought_is_short_and_not_empty() {
        assert_eq!([sought(""), sought("  \0 ")], [None, None]);
        assert_eq!(sought(" Ada ").as_deref(), Some("Ada"));
        assert_eq!(
            sought(&"a".repeat(200)).map(|name| name.len()),
            Some(NAME_CHARS)
        );
    }

    #[test]
    fn those_who_follow_are_a_page_further() {
        let run: RunName = "main".parse().unwrap();
        let someone = ContributorInfo {
            name: "a".to_owned(),
            games: 1,
            positions: 8,
            audits: 0,
            audit_positions: 0,
            rank: None,
            recent: None,
            active_workers: 0,
            last_seen: None,
            joined_at: String::new(),
        };
        let next = |all, listed, skip| {
            let found = Contributors {
                all,
                list: vec![someone.clone(); listed],
                ..Contributors::default()
            };
            let chosen = Chosen {
                span: Span::Week,
                name: Some("a b".to_owned()),
            };
            chosen.next_page(&run, skip, &found)
        };
        let path = "/runs/main/contributors?span=7d&name=a+b&skip=";
        assert_eq!(next(101, 100, 0), Some(format!("{path}100")));
        assert_eq!(next(250, 100, 100), Some(format!("{path}200")));
        for (all, listed, skip) in [(100, 100, 0), (250, 50, 200), (0, 0, 0), (0, 0, 300)] {
            assert_eq!(next(all, listed, skip), None);
        }
    }
}
