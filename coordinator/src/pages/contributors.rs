//! Who plays for a run: those who gave most, lately or of all time.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{ContributorInfo, Credit, Span};
use serde::Deserialize;

use super::address::Address;
use super::error::PageError;
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
    /// Who gave as many positions shares it; nobody has one without any.
    rank: Option<u64>,
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
    let ranks = ranks(&state, &run, &found, (span, skip)).await?;
    let row = |(rank, info): (Option<u64>, ContributorInfo)| ContributorRow {
        rank,
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
        contributors: ranks.into_iter().zip(found.list).map(row).collect(),
        run,
    })
}

/// The ranks of those who are listed after so many others. Whether the first of them shares that of the page before is
/// asked for.
async fn ranks(
    state: &PagesState,
    run: &RunName,
    found: &Contributors,
    (span, skip): (Span, u32),
) -> Result<Vec<Option<u64>>, PageError> {
    let positions = |info: &ContributorInfo| info.recent.unwrap_or_else(|| info.credit()).positions;
    let positions: Vec<u64> = found.list.iter().map(positions).collect();
    let skip = u64::from(skip);
    let first = match found.list.first() {
        Some(info) if skip > 0 => {
            let (name, run, now) = (info.name.clone(), run.clone(), state.now());
            let first =
                state.list(|db| async move { db.contributor(&name, Some(&run), now).await });
            let mut spans = first.await?.credit.into_iter();
            spans
                .find(|given| given.span == span)
                .and_then(|given| given.rank)
        }
        _ => None,
    };
    Ok(shared_ranks(first.unwrap_or(skip + 1), skip, &positions))
}

/// The ranks of those who gave so many positions each, in order, after `skip` others; `first` is that of the first.
fn shared_ranks(first: u64, skip: u64, positions: &[u64]) -> Vec<Option<u64>> {
    let mut rank = first;
    let mut before = None;
    let places = skip + 1..;
    let each = positions.iter().zip(places).map(|(positions, place)| {
        if before.is_some_and(|before| before != positions) {
            rank = place;
        }
        before = Some(positions);
        (*positions > 0).then_some(rank)
    });
    each.collect()
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
    fn those_who_gave_as_many_share_their_rank() {
        let of = |first, skip, positions: &[u64]| -> Vec<u64> {
            let ranks = shared_ranks(first, skip, positions).into_iter();
            ranks.map(Option::unwrap_or_default).collect()
        };
        assert_eq!(of(1, 0, &[9, 8, 8, 8, 7, 0]), [1, 2, 2, 2, 5, 0]);
        // The first is as good as one of the page before.
        assert_eq!(of(2, 3, &[8, 8, 7]), [2, 2, 6]);
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
