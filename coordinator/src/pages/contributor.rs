//! A contributor's own page: what they gave, their workers, their newest games.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{Credit, DayCredit, SpanCredit, is_user_name};

use super::chart::{Axis, Chart, ChartData, Line, Point};
use super::error::PageError;
use super::layout::{Layout, Page, Tab, page};
use super::rows::{GameRow, WorkerRow};
use super::{PagesState, text};
use crate::db::GameFilter;
use crate::server::address::Address;

/// Games on the page.
const LATEST_GAMES: u32 = 10;

#[derive(Template)]
#[template(path = "contributor.html")]
struct ContributorPage {
    layout: Layout,
    run: RunName,
    name: String,
    joined: String,
    seen: Option<String>,
    /// What was counted in each span of time.
    credit: Vec<(&'static str, SpanCredit)>,
    /// What was counted day by day.
    chart: Option<String>,
    workers: Vec<WorkerRow>,
    games: Vec<GameRow>,
}

/// `GET /runs/{run}/contributors/{name}`
pub(super) async fn one(
    State(state): State<PagesState>,
    address: Address,
    path: Result<Path<(RunName, String)>, PathRejection>,
) -> Page {
    let Path((run, name)) = path?;
    if !is_user_name(&name) {
        return Err(PageError::not_found("No contributor has this name."));
    }
    let now = state.now();
    let (who, of) = (name.clone(), run.clone());
    // The place among all takes as long as a list.
    let found = state
        .list(|db| async move { db.contributor(&who, Some(&of), now).await })
        .await?;
    let filter = GameFilter {
        run: Some(run.clone()),
        contributor: Some(name),
        limit: LATEST_GAMES,
        ..GameFilter::default()
    };
    let games = state
        .list(|db| async move { db.games(filter).await })
        .await?;
    let info = found.info;
    let of = state.db.run(&run).await?;
    let credit = found.credit.into_iter();
    let workers = found.workers.into_iter();
    page(&ContributorPage {
        layout: Layout::of(&state.presentation, &of, Tab::Contributors)
            .pictured(&address)
            .titled(format!("{}, contributor of {run}", info.name)),
        joined: text::ago(now, &info.joined_at),
        seen: info.last_seen.map(|at| text::ago(now, &at)),
        credit: credit
            .map(|given| (text::span(given.span), given))
            .collect(),
        chart: day_by_day(&info.name, &found.days)?,
        workers: workers.map(|worker| WorkerRow::new(worker, now)).collect(),
        games: GameRow::all(games, now),
        name: info.name,
        run,
    })
}

/// Positions over days; nothing before the second day.
fn day_by_day(name: &str, days: &[DayCredit]) -> Result<Option<String>, askama::Error> {
    let points: Vec<Point> = days.iter().filter_map(point).collect();
    if points.len() < 2 {
        return Ok(None);
    }
    let line = Line {
        name: String::new(),
        class: "plain",
        points: points.iter().map(|point| (point.x, point.y)).collect(),
    };
    Chart::render(ChartData {
        title: format!("Positions of {name} that were counted, day by day"),
        x_name: "day (UTC)",
        lines: vec![line],
        points,
        y_range: Some((0.0, 1.0)),
        x_axis: Axis::Dates,
        ..ChartData::default()
    })
}

/// A day on a chart.
fn point(of: &DayCredit) -> Option<Point> {
    let began: Timestamp = format!("{}T00:00:00Z", of.day).parse().ok()?;
    let Credit {
        games,
        positions,
        audits,
        ..
    } = of.credit;
    Some(Point {
        x: (began.as_second() / 86_400) as f64,
        y: positions as f64,
        interval: None,
        class: "day",
        label: format!(
            "{}: {}, {}, {}",
            began.strftime("%-d %b"),
            text::counted(positions, "position"),
            text::counted(games, "game"),
            text::counted(audits, "audit")
        ),
        link: None,
    })
}
