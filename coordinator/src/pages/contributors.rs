//! Who plays for a run: what each gave, lately or of all time.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{ContributorInfo, Credit, NAME_CHARS, Span};
use serde::{Deserialize, Serialize};

use super::join::worker_command;
use super::layout::{
    Choice, ColumnHead, Direction, Layout, Page, Tab, fields, is_default, link, page,
};
use super::{PagesState, text};
use crate::db::{ContributorFilter, ContributorSort, Contributors};
use crate::server::address::Address;

/// Contributors on a page.
const PEOPLE: u32 = 100;

/// What stands after the question mark.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct ContributorsQuery {
    /// When they gave what is counted.
    #[serde(default, skip_serializing_if = "is_default")]
    span: Span,
    /// What their names contain.
    name: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    sort: ContributorSort,
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
    /// What their names contain, if that is asked for.
    sought: Option<String>,
    /// What the form keeps beside its own field.
    kept: Vec<(String, String)>,
    any_name: String,
    in_time: &'static str,
    all: u64,
    credit: Credit,
    /// Games of the run that are excluded now.
    held: u64,
    heads: Heads,
    contributors: Vec<ContributorRow>,
    next: Option<String>,
}

/// The heads by which the list can be sorted.
struct Heads {
    name: ColumnHead,
    positions: ColumnHead,
    games: ColumnHead,
    last_seen: ColumnHead,
}

struct ContributorRow {
    /// What they gave in the span.
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
    let (Path(run), Query(mut query)) = (name?, query?);
    query.name = query.name.as_deref().and_then(sought);
    let (span, skip) = (query.span, query.skip.unwrap_or_default());
    let path = format!("/runs/{run}/contributors");
    let first = ContributorsQuery {
        skip: None,
        ..query.clone()
    };
    let with_any_name = ContributorsQuery {
        name: None,
        ..first.clone()
    };
    let now = state.now();
    let info = state.db.run(&run).await?;
    let filter = ContributorFilter {
        run: Some(run.clone()),
        span,
        name: query.name.clone(),
        sort: query.sort,
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
        choices: Span::ALL
            .map(|span| Choice::new(&path, &first, text::span(span), |other| other.span = span))
            .into(),
        nobody_yet: link(&path, &first) == path && skip == 0 && found.list.is_empty(),
        recent: span != Span::All,
        in_time: in_time(span),
        next: next_page(&query, &found).map(|next| link(&path, &next)),
        kept: fields(&with_any_name),
        any_name: link(&path, &with_any_name),
        heads: heads(&path, &first),
        all: found.all,
        held: match span {
            Span::All if query.name.is_none() => info.games.saturating_sub(found.credit.games),
            _ => 0,
        },
        sought: query.name,
        credit: found.credit,
        contributors: found.list.into_iter().map(row).collect(),
        run,
    })
}

fn heads(path: &str, query: &ContributorsQuery) -> Heads {
    let head = |name, sort, direction| {
        ColumnHead::new(name, [(sort, direction)], query.sort, |sort| {
            let sorted = ContributorsQuery {
                sort,
                ..query.clone()
            };
            link(path, &sorted)
        })
    };
    let most_first = |name, sort| head(name, sort, Direction::Descending);
    Heads {
        name: head("Name", ContributorSort::Name, Direction::Ascending),
        positions: most_first("Positions", ContributorSort::Positions),
        games: most_first("Games", ContributorSort::Games),
        last_seen: most_first("Last seen", ContributorSort::LastSeen),
    }
}

/// What a name is to contain. A form sends an empty text where nothing was written.
fn sought(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    let some: String = text.chars().take(NAME_CHARS).collect();
    (!some.is_empty()).then_some(some)
}

/// The query for those behind these, if there are any.
fn next_page(query: &ContributorsQuery, found: &Contributors) -> Option<ContributorsQuery> {
    let told = u64::from(query.skip.unwrap_or_default()) + found.list.len() as u64;
    let more = !found.list.is_empty() && told < found.all;
    more.then(|| ContributorsQuery {
        skip: u32::try_from(told).ok(),
        ..query.clone()
    })
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
            let query = ContributorsQuery {
                span: Span::Week,
                name: Some("a b".to_owned()),
                sort: ContributorSort::LastSeen,
                skip: Some(skip),
            };
            next_page(&query, &found).map(|next| link("/contributors", &next))
        };
        let path = "/contributors?span=7d&name=a+b&sort=last-seen&skip=";
        assert_eq!(next(101, 100, 0), Some(format!("{path}100")));
        assert_eq!(next(250, 100, 100), Some(format!("{path}200")));
        for (all, listed, skip) in [(100, 100, 0), (250, 50, 200), (0, 0, 0), (0, 0, 300)] {
            assert_eq!(next(all, listed, skip), None);
        }
    }
}
