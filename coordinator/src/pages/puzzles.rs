//! Puzzle sets of a run, and how its networks do at them.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::networks::{NetworkInfo, PuzzleGroup, PuzzleScore};
use serde::{Deserialize, Serialize};

use super::chart::{Chart, ChartData, ChartLinks, ChartQuery, Line, Point, View, ends};
use super::layout::{Layout, Page, Tab, link, page};
use super::networks::{Over, paginate};
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
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct PuzzlesQuery {
    #[serde(flatten)]
    chart: ChartQuery<Over>,
    /// Only networks that are older than this one are listed.
    before: Option<NetworkNumber>,
}

#[derive(Template)]
#[template(path = "puzzles.html")]
struct PuzzlesPage {
    layout: Layout,
    run: RunName,
    chart: Option<String>,
    /// Whether some network has tried enough puzzles to be drawn.
    is_drawn: bool,
    links: ChartLinks,
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

struct Scored {
    number: NetworkNumber,
    /// Where it is on the chart's horizontal axis; nowhere if that is not known.
    place: Option<f64>,
    score: PuzzleScore,
}

impl Scored {
    /// Whether it has tried enough puzzles to be drawn.
    const fn is_drawn(&self) -> bool {
        self.score.tried >= LEAST
    }
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
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<PuzzlesQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(query)) = (name?, query?);
    let info = state.db.run(&run).await?;
    let now = state.now();
    let mut networks = state.db.networks_in_short(&run).await?;
    networks.retain(|info| info.puzzles.is_some());
    let over = query.chart.over;
    let all: Vec<Scored> = networks
        .iter()
        .filter_map(|info| scored(info, over, info.puzzles.clone()))
        .collect();
    let drawn = all.iter().filter(|scored| scored.is_drawn());
    let path = format!("/runs/{run}/puzzles");
    let ends = ends(drawn.filter_map(|scored| scored.place));
    let links = ChartQuery::links(&path, &query, |query| &mut query.chart, ends);
    let (networks, last) = paginate(networks, query.before);
    let scored = with_groups(&state, &run, &networks, over).await?;
    let themes = themes(&scored);
    let set = |info: PuzzleSetInfo| SetRow {
        ago: text::ago(now, &info.added_at),
        info,
    };
    page(&PuzzlesPage {
        layout: Layout::of(&state.presentation, &info, Tab::Puzzles).pictured(&address),
        chart: draw(&run, &all, &scored, &themes, query.chart)?,
        is_drawn: all.iter().any(Scored::is_drawn),
        links,
        is_part: scored.len() < all.len(),
        next: last.map(|last| {
            let before = Some(last);
            link(&path, &PuzzlesQuery { before, ..query })
        }),
        left_out: all.iter().filter(|scored| !scored.is_drawn()).count(),
        rated: scored
            .iter()
            .any(|scored| scored.score.performance.is_some()),
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

fn scored(info: &NetworkInfo, over: Over, score: Option<PuzzleScore>) -> Option<Scored> {
    Some(Scored {
        number: info.number,
        place: over.place(info),
        score: score?,
    })
}

/// The same networks with their scores by theme and by rating.
async fn with_groups(
    state: &PagesState,
    run: &RunName,
    networks: &[NetworkInfo],
    over: Over,
) -> Result<Vec<Scored>, DbError> {
    let (Some(newest), Some(oldest)) = (networks.first(), networks.last()) else {
        return Ok(Vec::new());
    };
    let (of, numbers) = (run.clone(), oldest.number..=newest.number);
    let mut scores = state
        .list(|db| async move { db.puzzle_scores(&of, numbers).await })
        .await?;
    let with_groups = |info: &NetworkInfo| scored(info, over, scores.remove(&info.number));
    Ok(networks.iter().filter_map(with_groups).collect())
}

/// The lengths of mates, which tell most; without mates, the themes that were tried most.
fn themes(scored: &[Scored]) -> Vec<String> {
    let mut tried = std::collections::BTreeMap::<&str, u64>::new();
    for group in scored.iter().flat_map(|scored| &scored.score.themes) {
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

fn row(scored: Scored, themes: &[String]) -> ScoreRow {
    let Scored { number, score, .. } = scored;
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
    query: ChartQuery<Over>,
) -> Result<Option<String>, askama::Error> {
    let (over, view) = (query.over, query.view());
    let of_theme = |theme: &str| {
        let share = |scored: &Scored| {
            let group = group(&scored.score, theme).filter(|group| group.tried >= LEAST)?;
            Some((scored.place?, text::share(group.solved, group.tried)))
        };
        listed.iter().rev().filter_map(share).collect()
    };
    let points: Vec<Point> = points(run, all, view);
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
        x_name: over.name(),
        x_axis: over.axis(),
        lines: lines.collect(),
        points,
        y_range: Some((0.0, 100.0)),
        view,
        ..ChartData::default()
    })
}

/// The shares that networks in view have solved, without those that have tried too few: a point for each, or for
/// several neighbours together.
fn points(run: &RunName, scored: &[Scored], view: View) -> Vec<Point> {
    let in_view = |scored: &&Scored| scored.place.is_some_and(|place| view.holds(place));
    let drawn = scored.iter().rev().filter(|scored| scored.is_drawn());
    let drawn: Vec<&Scored> = drawn.filter(in_view).collect();
    let each = drawn.len().div_ceil(DRAWN).max(1);
    let neighbours = drawn.chunks(each);
    neighbours.filter_map(|part| point(run, part)).collect()
}

/// The share that neighbours have solved, the oldest first.
fn point(run: &RunName, neighbours: &[&Scored]) -> Option<Point> {
    let (oldest, newest) = (neighbours.first()?, neighbours.last()?);
    let (first, last) = (oldest.number, newest.number);
    let scores = || neighbours.iter().map(|scored| &scored.score);
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
        x: f64::midpoint(oldest.place?, newest.place?),
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
        Scored {
            number: NetworkNumber(number),
            place: Some(f64::from(number)),
            score,
        }
    }

    #[test]
    fn what_few_puzzles_say_is_drawn_as_such_or_not_at_all() {
        let run = "main".parse().unwrap();
        let of = |tried| points(&run, &[score(3, tried)], View::Whole).pop();
        assert!(of(29).is_none());
        assert_eq!(of(32).unwrap().class, "few");
        let many = of(3_360).unwrap();
        assert_eq!(many.class, "score");
        let (low, high) = many.interval.unwrap();
        assert!(high - low < 4.0 && low < many.y && many.y < high);
        let all = [score(4, 8), score(3, 32)];
        let query = ChartQuery::default();
        let svg = draw(&run, &all, &all, &[], query).unwrap().unwrap();
        assert!(svg.contains("aria-label=\"#3: 50.0 ± 16.4"), "{svg}");
        assert!(!svg.contains("#4: "), "{svg}");
        let few = [score(4, 8)];
        assert!(draw(&run, &few, &few, &[], query).unwrap().is_none());
    }

    #[test]
    fn neighbours_of_a_long_run_are_drawn_together() {
        let run = "main".parse().unwrap();
        let all: Vec<_> = (0..1_000).rev().map(|number| score(number, 60)).collect();
        let whole = points(&run, &all, View::Whole);
        assert_eq!(whole.len(), 334);
        let first = &whole[0];
        assert_eq!((first.x, first.y, &first.link), (1.0, 50.0, &None));
        assert!(first.label.starts_with("#0 to #2: "), "{}", first.label);
        assert!(first.label.contains("180 puzzles"), "{}", first.label);
        let part = points(&run, &all, View::Part(100.0, 399.5));
        assert_eq!(part.len(), 300, "each has a point");
        assert!(part[0].label.starts_with("#100: "), "{}", part[0].label);
    }

    #[test]
    fn a_network_whose_place_on_the_axis_is_not_known_is_not_drawn() {
        let run = "main".parse().unwrap();
        let unplaced = Scored {
            place: None,
            ..score(3, 60)
        };
        assert!(points(&run, &[unplaced], View::Whole).is_empty());
    }
}
