//! Puzzle sets of a run, and how its networks do at them.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::networks::{NetworkInfo, PuzzleGroup, PuzzleScore};
use serde::Deserialize;

use super::chart::{Chart, ChartData, Line, Point};
use super::layout::{Layout, Page, Tab, page};
use super::networks::paginate;
use super::{PagesState, text};
use crate::db::{DbError, PuzzleSetInfo};
use crate::server::address::Address;

/// Networks and themes with fewer tries are not drawn: their share says nothing yet.
const LEAST: u64 = 30;

/// With fewer tries a point is hollow.
const FEW: u64 = 1_000;

/// Most points: of more networks, each stands for several neighbours.
const DRAWN: usize = 360;

/// Most themes that have a column and a line.
const THEMES: usize = 4;

/// Classes of the lines in the style sheet.
const LINES: [&str; THEMES + 1] = ["plain", "second", "third", "fourth", "fifth"];

/// What stands after the question mark.
#[derive(Debug, Deserialize)]
pub(super) struct PuzzlesQuery {
    /// Only networks that are older than this one are listed.
    before: Option<NetworkNumber>,
}

#[derive(Template)]
#[template(path = "puzzles.html")]
struct PuzzlesPage {
    layout: Layout,
    run: RunName,
    chart: Option<String>,
    themes: Vec<String>,
    /// Whether puzzles have ratings: mined ones have none.
    rated: bool,
    scores: Vec<ScoreRow>,
    /// Whether the chart has networks that are not listed.
    is_part: bool,
    /// Older networks than those that are listed.
    next: Option<String>,
    /// Networks that have tried too few puzzles to be drawn.
    left_out: usize,
    sets: Vec<SetRow>,
}

/// A network and how it did.
type Scored = (NetworkNumber, PuzzleScore);

struct ScoreRow {
    number: NetworkNumber,
    score: PuzzleScore,
    themes: Vec<String>,
}

struct SetRow {
    info: PuzzleSetInfo,
    ago: String,
}

/// `GET /runs/{run}/puzzles`
pub(super) async fn scores(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<PuzzlesQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(query)) = (name?, query?);
    let info = state.db.run(&run).await?;
    let now = state.now();
    let mut networks = state.db.networks_in_short(&run).await?;
    networks.retain(|info| info.puzzles.is_some());
    let all: Vec<Scored> = networks.iter().filter_map(score_of).collect();
    let (networks, last) = paginate(networks, query.before);
    let scored = with_groups(&state, &run, &networks).await?;
    let themes = themes(&scored);
    let set = |info: PuzzleSetInfo| SetRow {
        ago: text::ago(now, &info.added_at),
        info,
    };
    page(&PuzzlesPage {
        layout: Layout::of(&state.presentation, &info, Tab::Puzzles).pictured(&address),
        chart: draw(&run, &all, &scored, &themes)?,
        is_part: scored.len() < all.len(),
        next: last.map(|last| format!("/runs/{run}/puzzles?before={last}")),
        left_out: all.iter().filter(|(_, score)| score.tried < LEAST).count(),
        rated: scored.iter().any(|(_, score)| score.performance.is_some()),
        scores: scored
            .into_iter()
            .map(|scored| row(scored, &themes))
            .collect(),
        themes,
        sets: state
            .db
            .puzzle_sets(&run)
            .await?
            .into_iter()
            .filter(|info| info.puzzles > 0)
            .map(set)
            .collect(),
        run,
    })
}

fn score_of(info: &NetworkInfo) -> Option<Scored> {
    Some((info.number, info.puzzles.clone()?))
}

/// The same networks with their scores by theme and by rating.
async fn with_groups(
    state: &PagesState,
    run: &RunName,
    networks: &[NetworkInfo],
) -> Result<Vec<Scored>, DbError> {
    let (Some(newest), Some(oldest)) = (networks.first(), networks.last()) else {
        return Ok(Vec::new());
    };
    let (of, numbers) = (run.clone(), oldest.number..=newest.number);
    let mut scores = state
        .list(|db| async move { db.puzzle_scores(&of, numbers).await })
        .await?;
    let scored = networks.iter().map(|info| info.number);
    Ok(scored
        .filter_map(|number| Some((number, scores.remove(&number)?)))
        .collect())
}

/// The lengths of mates, which tell most; without mates, the themes that were tried most.
fn themes(scored: &[Scored]) -> Vec<String> {
    let mut tried = std::collections::BTreeMap::<&str, u64>::new();
    for group in scored.iter().flat_map(|(_, score)| &score.themes) {
        *tried.entry(&group.name).or_default() += group.tried;
    }
    if tried.keys().any(|name| name.starts_with("mateIn")) {
        tried.retain(|name, _| name.starts_with("mateIn"));
    }
    let mut themes: Vec<_> = tried.into_iter().collect();
    themes.sort_by_key(|(_, tried)| std::cmp::Reverse(*tried));
    themes.truncate(THEMES);
    themes.sort_unstable();
    themes
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn group<'a>(score: &'a PuzzleScore, theme: &str) -> Option<&'a PuzzleGroup> {
    score.themes.iter().find(|group| group.name == theme)
}

fn row((number, score): Scored, themes: &[String]) -> ScoreRow {
    let cell = |theme: &String| {
        group(&score, theme).map_or_else(|| "–".to_owned(), |g| text::percent(g.solved, g.tried))
    };
    ScoreRow {
        number,
        themes: themes.iter().map(cell).collect(),
        score,
    }
}

/// The share that all networks solved, and by theme that those did which are listed; both newest first.
fn draw(
    run: &RunName,
    all: &[Scored],
    listed: &[Scored],
    themes: &[String],
) -> Result<Option<String>, askama::Error> {
    let of_theme = |theme: &str| {
        let share = |(number, score): &Scored| {
            let group = group(score, theme).filter(|group| group.tried >= LEAST)?;
            Some((f64::from(number.0), text::share(group.solved, group.tried)))
        };
        listed.iter().rev().filter_map(share).collect()
    };
    let points: Vec<Point> = points(run, all);
    let all = points.iter().map(|point| (point.x, point.y));
    let named = themes.iter().map(|theme| (theme.clone(), of_theme(theme)));
    let lines = std::iter::once(("all".to_owned(), all.collect())).chain(named);
    let lines = lines.zip(LINES).map(|((name, points), class)| Line {
        name,
        class,
        points,
    });
    Chart::render(ChartData {
        title: format!("Share of puzzles solved by the networks of run {run}"),
        x_name: "network",
        lines: lines.collect(),
        points,
        y_range: Some((0.0, 100.0)),
        ..ChartData::default()
    })
}

/// The shares that networks have solved, without those that have tried too few: a point for each, or for several
/// neighbours together.
fn points(run: &RunName, scored: &[Scored]) -> Vec<Point> {
    let tried = scored.iter().rev().filter(|(_, s)| s.tried >= LEAST);
    let tried: Vec<&Scored> = tried.collect();
    let each = tried.len().div_ceil(DRAWN).max(1);
    let neighbours = tried.chunks(each);
    neighbours.filter_map(|part| point(run, part)).collect()
}

/// The share that neighbours have solved, the oldest first.
fn point(run: &RunName, neighbours: &[&Scored]) -> Option<Point> {
    let (first, last) = (neighbours.first()?.0, neighbours.last()?.0);
    let scores = || neighbours.iter().map(|(_, score)| score);
    let score = PuzzleScore {
        tried: scores().map(|score| score.tried).sum(),
        solved: scores().map(|score| score.solved).sum(),
        ..PuzzleScore::default()
    };
    let name = if first == last {
        format!("#{first}")
    } else {
        format!("#{first} to #{last}")
    };
    Some(Point {
        x: f64::midpoint(f64::from(first.0), f64::from(last.0)),
        y: text::share(score.solved, score.tried),
        interval: Some(text::share_interval(score.solved, score.tried)),
        class: if score.tried < FEW { "few" } else { "score" },
        label: format!(
            "{name}: {} of {} solved",
            text::solved(&score),
            text::counted(score.tried, "puzzle")
        ),
        link: (first == last).then(|| format!("/runs/{run}/networks/{first}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(number: u32, tried: u64) -> Scored {
        let score = PuzzleScore {
            tried,
            solved: tried / 2,
            ..PuzzleScore::default()
        };
        (NetworkNumber(number), score)
    }

    #[test]
    fn what_few_puzzles_say_is_drawn_as_such_or_not_at_all() {
        let run = "main".parse().unwrap();
        let of = |tried| points(&run, &[score(3, tried)]).pop();
        assert!(of(29).is_none());
        assert_eq!(of(32).unwrap().class, "few");
        let many = of(3_360).unwrap();
        assert_eq!(many.class, "score");
        let (low, high) = many.interval.unwrap();
        assert!(high - low < 4.0 && low < many.y && many.y < high);
        let all = [score(4, 8), score(3, 32)];
        let svg = draw(&run, &all, &all, &[]).unwrap().unwrap();
        assert!(svg.contains("aria-label=\"#3: 50.0 ± 16.4"), "{svg}");
        assert!(!svg.contains("#4: "), "{svg}");
        let few = [score(4, 8)];
        assert!(draw(&run, &few, &few, &[]).unwrap().is_none());
    }

    #[test]
    fn neighbours_of_a_long_run_are_drawn_together() {
        let run = "main".parse().unwrap();
        let all: Vec<_> = (0..1_000).rev().map(|number| score(number, 60)).collect();
        let points = points(&run, &all);
        assert_eq!(points.len(), 334);
        let first = &points[0];
        assert_eq!((first.x, first.y, &first.link), (1.0, 50.0, &None));
        assert!(first.label.starts_with("#0 to #2: "), "{}", first.label);
        assert!(first.label.contains("180 puzzles"), "{}", first.label);
    }
}
