//! Puzzle sets of a run, and how its networks do at them.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::networks::{NetworkInfo, PuzzleGroup, PuzzleScore};

use super::chart::{Chart, ChartData, Line};
use super::layout::{Layout, Page, Tab, page};
use super::{PagesState, text};
use crate::store::PuzzleSetInfo;

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
    scores: Vec<ScoreRow>,
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
    state.store.run(&run).await?;
    let now = state.now();
    let networks = state.store.networks(&run).await?;
    let scored: Vec<_> = networks.into_iter().filter_map(score_of).collect();
    let themes = themes(&scored);
    let set = |info: PuzzleSetInfo| SetRow {
        ago: text::ago(now, &info.added_at),
        info,
    };
    page(&PuzzlesPage {
        layout: Layout::of(&run, Tab::Puzzles),
        chart: draw(&run, &scored, &themes)?,
        scores: scored
            .into_iter()
            .map(|scored| row(scored, &themes))
            .collect(),
        themes,
        sets: state
            .store
            .puzzle_sets(&run)
            .await?
            .into_iter()
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
            let group = group(score, theme)?;
            Some((f64::from(number.0), text::share(group.solved, group.tried)))
        };
        scored.iter().rev().filter_map(share).collect()
    };
    let all = scored.iter().rev();
    let all = all.map(|(number, s)| (f64::from(number.0), text::share(s.solved, s.tried)));
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
        y_range: Some((0.0, 100.0)),
        ..ChartData::default()
    })
}
