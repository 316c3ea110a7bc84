//! Who plays for a run: those who gave most, lately or of all time.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{ContributorInfo, Credit, Span};
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
    in_time: &'static str,
    all: u64,
    credit: Credit,
    /// Games of the run that are excluded now.
    held: u64,
    contributors: Vec<ContributorRow>,
    next: Option<String>,
}

struct ContributorRow {
    place: u64,
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
    let (span, skip) = (
        query.span.unwrap_or_default(),
        query.skip.unwrap_or_default(),
    );
    let now = state.now();
    let info = state.db.run(&run).await?;
    let filter = ContributorFilter {
        run: Some(run.clone()),
        span,
        skip,
        limit: PEOPLE,
    };
    let found = state
        .list(|db| async move { db.contributors(filter, now).await })
        .await?;
    let row = |(place, info): (u64, ContributorInfo)| ContributorRow {
        place,
        credit: info.recent.unwrap_or_else(|| info.credit()),
        seen: info
            .last_seen
            .as_deref()
            .map_or_else(|| "–".to_owned(), |at| text::ago(now, at)),
        joined: text::ago(now, &info.joined_at),
        info,
    };
    page(&ContributorsPage {
        layout: Layout::of(&state.presentation, &info, Tab::Contributors),
        worker_command: worker_command(state.registration, &address, &run),
        choices: choices(&run, span),
        nobody_yet: span == Span::All && skip == 0 && found.list.is_empty(),
        recent: span != Span::All,
        in_time: in_time(span),
        next: next_page(&run, span, skip, &found),
        all: found.all,
        held: match span {
            Span::All => info.games.saturating_sub(found.credit.games),
            _ => 0,
        },
        credit: found.credit,
        contributors: (u64::from(skip) + 1..).zip(found.list).map(row).collect(),
        run,
    })
}

fn choices(run: &RunName, chosen: Span) -> Vec<Choice> {
    let choice = |span: Span| Choice {
        name: text::span(span),
        href: match span {
            Span::All => format!("/runs/{run}/contributors"),
            span => format!("/runs/{run}/contributors?span={}", span.name()),
        },
        current: span == chosen,
    };
    Span::ALL.map(choice).into()
}

const fn in_time(span: Span) -> &'static str {
    match span {
        Span::Day => "in the last 24 hours",
        Span::Week => "in the last 7 days",
        Span::Month => "in the last 30 days",
        Span::All => "in all",
    }
}

/// The address of those behind these, if there are any.
fn next_page(run: &RunName, span: Span, skip: u32, found: &Contributors) -> Option<String> {
    let told = u64::from(skip) + found.list.len() as u64;
    let more = !found.list.is_empty() && told < found.all;
    more.then(|| {
        let span = span.name();
        format!("/runs/{run}/contributors?span={span}&skip={told}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            next_page(&run, Span::Week, skip, &found)
        };
        let path = "/runs/main/contributors?span=7d&skip=";
        assert_eq!(next(101, 100, 0), Some(format!("{path}100")));
        assert_eq!(next(250, 100, 100), Some(format!("{path}200")));
        for (all, listed, skip) in [(100, 100, 0), (250, 50, 200), (0, 0, 0), (0, 0, 300)] {
            assert_eq!(next(all, listed, skip), None);
        }
    }
}
