//! Puzzle sets of a run, and how its networks do at them.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::networks::{NetworkInfo, PuzzleGroup, PuzzleScore};

use super::chart::{Chart, ChartData, Line, Point};
use super::layout::{Layout, Page, Tab, page};
use super::{PagesState, text};
use crate::db::PuzzleSetInfo;

/// Networks and themes with fewer tries are not drawn: their share says nothing yet.
const LEAST: u64 = 30;

/// With fewer tries a point is hollow.
const FEW: u64 = 1_000;

/// Most themes that have a column and a line.
const THEMES: usize = 4;

/// Classes of the lines in the style sheet.
const LINES: [&str; THEMES + 1] = ["plain", "second", "third", "fourth", "fifth"];

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
    /// Networks that have tried too few puzzles to be drawn.
    left_out: usize,
    sets: Vec<SetRow>,
}

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
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(run) = name?;
    let info = state.db.run(&run).await?;
    let now = state.now();
    let of = run.clone();
    let networks = state
        .list(|db| async move { db.networks(&of).await })
        .await?;
    let scored: Vec<_> = networks.into_iter().filter_map(score_of).collect();
    let themes = themes(&scored);
    let set = |info: PuzzleSetInfo| SetRow {
        ago: text::ago(now, &info.added_at),
        info,
    };
    page(&PuzzlesPage {
        layout: Layout::of(&state.presentation, &info, Tab::Puzzles),
        chart: draw(&run, &scored, &themes)?,
        left_out: scored
            .iter()
            .filter(|(_, score)| score.tried < LEAST)
            .count(),
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

fn score_of(info: NetworkInfo) -> Option<(NetworkNumber, PuzzleScore)> {
    let score = info.puzzles.filter(|score| score.tried > 0)?;
    Some((info.number, score))
}

/// The lengths of mates, which tell most; without mates, the themes that were tried most.
fn themes(scored: &[(NetworkNumber, PuzzleScore)]) -> Vec<String> {
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

fn row((number, score): (NetworkNumber, PuzzleScore), themes: &[String]) -> ScoreRow {
    let cell = |theme: &String| {
        group(&score, theme).map_or_else(|| "–".to_owned(), |g| text::percent(g.solved, g.tried))
    };
    ScoreRow {
        number,
        themes: themes.iter().map(cell).collect(),
        score,
    }
}

fn draw(
    run: &RunName,
    scored: &[(NetworkNumber, PuzzleScore)],
    themes: &[String],
) -> Result<Option<String>, askama::Error> {
    let of_theme = |theme: &str| {
        let share = |(number, score): &(NetworkNumber, PuzzleScore)| {
            let group = group(score, theme).filter(|group| group.tried >= LEAST)?;
            Some((f64::from(number.0), text::share(group.solved, group.tried)))
        };
        scored.iter().rev().filter_map(share).collect()
    };
    let all = scored.iter().rev();
    let points: Vec<Point> = all.filter_map(|scored| point(run, scored)).collect();
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

/// The share that a network has solved; none if it has tried too few.
fn point(run: &RunName, (number, score): &(NetworkNumber, PuzzleScore)) -> Option<Point> {
    (score.tried >= LEAST).then(|| Point {
        x: f64::from(number.0),
        y: text::share(score.solved, score.tried),
        interval: Some(text::share_interval(score.solved, score.tried)),
        class: if score.tried < FEW { "few" } else { "score" },
        label: format!(
            "#{number}: {} of {} solved",
            text::solved(score),
            text::counted(score.tried, "puzzle")
        ),
        link: Some(format!("/runs/{run}/networks/{number}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_few_puzzles_say_is_drawn_as_such_or_not_at_all() {
        let score = |number, tried| {
            let score = PuzzleScore {
                tried,
                solved: tried / 2,
                themes: Vec::new(),
                ratings: Vec::new(),
                performance: None,
            };
            (NetworkNumber(number), score)
        };
        let run = "main".parse().unwrap();
        let of = |tried| point(&run, &score(3, tried));
        assert!(of(29).is_none());
        assert_eq!(of(32).unwrap().class, "few");
        let many = of(3_360).unwrap();
        assert_eq!(many.class, "score");
        let (low, high) = many.interval.unwrap();
        assert!(high - low < 4.0 && low < many.y && many.y < high);
        let svg = draw(&run, &[score(4, 8), score(3, 32)], &[])
            .unwrap()
            .unwrap();
        assert!(svg.contains("aria-label=\"#3: 50.0 ± 16.4"), "{svg}");
        assert!(!svg.contains("#4: "), "{svg}");
        assert!(draw(&run, &[score(4, 8)], &[]).unwrap().is_none());
    }
}
