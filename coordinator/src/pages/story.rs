//! The story of a run: how it became stronger, on one page that people share.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::networks::{NetworkInfo, NetworkName, PuzzleGroup};

use super::chart::{Axis, Chart, ChartData, ChartLinks, ChartQuery, Line, Size, View, ends};
use super::instructive::{self, Instructive};
use super::ladder::{expected, ladder, share_of_points};
use super::layout::{Layout, Page, Tab, page};
use super::networks::{ELO_SPAN, anchor_lines, was_best};
use super::opening_tree::{self, OpeningTree};
use super::rating_scale::RatingScale;
use super::{PagesState, text};
use crate::db::MatchFilter;
use crate::server::address::Address;

/// Promotions that are listed, the newest.
const PROMOTIONS: usize = 40;
/// Fewer tries say nothing of a puzzle's theme.
const TRIES: u64 = 20;
/// Themes at each end.
const THEMES: usize = 4;
/// Matches in which the best networks and the anchors are looked for, the newest.
const MATCHES: u32 = 2_000;
/// How long a run is young: promotions are told with their time of day.
const YOUNG: SignedDuration = SignedDuration::from_hours(72);

#[derive(Template)]
#[template(path = "story.html")]
struct StoryPage {
    layout: Layout,
    run: RunName,
    /// How it all went, in sentences.
    summary: Vec<String>,
    chart: Option<String>,
    /// Whether a part of the chart is shown.
    is_zoomed: bool,
    links: ChartLinks,
    scale: RatingScale,
    promotions: Vec<Promotion>,
    /// Promotions that are listed and all, if there are more.
    newest: Option<(u64, u64)>,
    /// How the best network fares against known opponents.
    ladder: Vec<String>,
    games: Vec<Instructive>,
    openings: Option<OpeningTree>,
    solves: Vec<PuzzleGroup>,
    misses: Vec<PuzzleGroup>,
}

struct Promotion {
    info: NetworkInfo,
    /// When it was submitted.
    at: String,
    /// How many points it gained over the best before it.
    gain: Option<String>,
}

/// `GET /runs/{run}/story`
pub(super) async fn told(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<ChartQuery<()>>, QueryRejection>,
) -> Page {
    let (Path(name), Query(query)) = (name?, query?);
    let run = state.db.run(&name).await?;
    let networks = state.db.networks_in_short(&name).await?;
    let best = networks.iter().find(|info| Some(info.number) == run.best);
    let groups = match best {
        Some(best) => {
            let full = state
                .db
                .network(&name, NetworkName::Number(best.number))
                .await?;
            full.puzzles.map_or_else(Vec::new, |score| score.themes)
        }
        None => Vec::new(),
    };
    let newest = MatchFilter::newest(&name, MATCHES);
    let matches = state.db.matches(&newest, state.now()).await?;
    let (solves, misses) = themes(groups);
    let bests = bests(&networks);
    let points = rated(&bests);
    let ends = ends(points.iter().map(|(day, _)| *day));
    let path = format!("/runs/{name}/story");
    let scale = RatingScale::of(&networks);
    let games_played = text::counted(run.games, "game");
    let positions = text::counted(run.positions, "position");
    let since = text::ago(state.now(), &run.created_at);
    let own = networks.iter().filter(|info| info.anchor.is_none()).count();
    let mut summary = vec![format!(
        "The run began {since}. Since then volunteers' machines have played {games_played} with {positions}, and {} of {} became best.",
        text::count(bests.len() as u64),
        text::counted(own as u64, "network")
    )];
    summary.extend(gained(&bests, &scale));
    page(&StoryPage {
        layout: Layout::of(&state.presentation, &run, Tab::Story)
            .described(&summary.join(" "))
            .pictured(&address),
        chart: over_time(&name, &networks, points, query.view())?,
        is_zoomed: query.view().is_part() && ends.is_some(),
        links: ChartQuery::links(&path, &query, |query| query, ends),
        promotions: promotions(&bests, is_young(&run.created_at, state.now())),
        newest: (bests.len() > PROMOTIONS).then_some((PROMOTIONS as u64, bests.len() as u64)),
        ladder: best.map_or_else(Vec::new, |best| ladder(best, &networks, &matches)),
        games: instructive::find(&state, &name, &networks).await?,
        openings: opening_tree::of_run(&state, &name, &bests).await?,
        summary,
        scale,
        solves,
        misses,
        run: name,
    })
}

/// The networks that were best, the first one first.
fn bests(networks: &[NetworkInfo]) -> Vec<&NetworkInfo> {
    let mut bests: Vec<_> = networks.iter().filter(|info| was_best(info)).collect();
    bests.sort_by_key(|info| info.number);
    bests
}

/// How much stronger the last best network is than the first.
fn gained(bests: &[&NetworkInfo], scale: &RatingScale) -> Option<String> {
    let rated = |info: &&NetworkInfo| Some((info.number, info.rating?));
    let (first, from) = bests.iter().find_map(rated)?;
    let (last, to) = bests.iter().rev().find_map(rated)?;
    (first != last).then(|| {
        let difference = to.elo - from.elo;
        // Counted from the first network, a rating is the difference already.
        let than = if from.elo == 0.0 {
            format!(" above network #{first}")
        } else {
            format!(
                ", {} points from network #{first}",
                text::signed(difference)
            )
        };
        format!(
            "Network #{last} stands at {} {}{than}: it would score {} of the points against it.",
            scale.elo(&to),
            scale.unit(),
            share_of_points(expected(difference))
        )
    })
}

/// When the best networks were submitted, and their ratings.
fn rated(bests: &[&NetworkInfo]) -> Vec<(f64, f64)> {
    let rated = |info: &&NetworkInfo| Some((text::day(&info.submitted_at)?, info.rating?.elo));
    bests.iter().filter_map(rated).collect()
}

/// The ratings of the best networks over time, between level lines of the anchors; nothing if none of them is in view.
fn over_time(
    run: &RunName,
    networks: &[NetworkInfo],
    mut points: Vec<(f64, f64)>,
    view: View,
) -> Result<Option<String>, askama::Error> {
    points.retain(|(day, _)| view.holds(*day));
    let Some(level) = ends(points.iter().map(|(day, _)| *day)) else {
        return Ok(None);
    };
    let mut lines = vec![Line {
        name: "best network".to_owned(),
        class: "first",
        points,
    }];
    lines.extend(anchor_lines(networks, level, |anchor, _| {
        anchor.to_string()
    }));
    Chart::render(ChartData {
        title: format!("Ratings of the best networks of run {run} over time"),
        x_name: "time (UTC)",
        lines,
        x_axis: Axis::Days,
        y_span: ELO_SPAN,
        size: Size::Full,
        view,
        ..ChartData::default()
    })
}

fn is_young(created_at: &str, now: Timestamp) -> bool {
    let created = created_at.parse::<Timestamp>();
    created.is_ok_and(|created| now.duration_since(created) < YOUNG)
}

/// The newest promotions: of a young run with the time of day, of others with the day only.
fn promotions(bests: &[&NetworkInfo], is_young: bool) -> Vec<Promotion> {
    let digits = if is_young { 16 } else { 10 };
    let at = |time: &str| time.replace('T', " ").chars().take(digits).collect();
    let before = std::iter::once(None).chain(bests.iter().map(Some));
    let mut all: Vec<Promotion> = bests
        .iter()
        .zip(before)
        .map(|(info, before)| Promotion {
            at: at(&info.submitted_at),
            gain: before.and_then(|before| {
                let (now, then) = (info.rating?, before.rating?);
                Some(text::signed(now.elo - then.elo))
            }),
            info: (*info).clone(),
        })
        .collect();
    all.reverse();
    all.truncate(PROMOTIONS);
    all
}

/// Puzzle themes that a network solves best, of those that it solves by half or more, and worst.
fn themes(groups: Vec<PuzzleGroup>) -> (Vec<PuzzleGroup>, Vec<PuzzleGroup>) {
    let mut groups: Vec<_> = groups
        .into_iter()
        .filter(|group| group.tried >= TRIES)
        .collect();
    let share = |group: &PuzzleGroup| group.solved as f64 / group.tried as f64;
    groups.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let solved = groups.partition_point(|group| share(group) >= 0.5);
    let mut misses = groups.split_off(solved.min(groups.len().div_ceil(2)));
    misses.reverse();
    misses.truncate(THEMES);
    groups.truncate(THEMES);
    (groups, misses)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::pages) fn network(number: u32, elo: f64, anchor: Option<&str>) -> NetworkInfo {
        serde_json::from_value(json!({
            "run": "main", "number": number, "hash": "0".repeat(64), "bytes": 1, "anchor": anchor,
            "spec": rookery_common::network::NetworkSpec::resnet(1, 8),
            "status": if anchor.is_some() { "anchor" } else { "promoted" },
            "rating": {"elo": elo, "low": elo - 20.0, "high": elo + 20.0, "games": 80},
            "submitted_at": format!("2030-01-0{}T00:00:00Z", number + 1), "file": "", "training_games": 0,
        }))
        .unwrap()
    }

    #[test]
    fn promotions_say_what_they_gained() {
        let networks = [network(1, 45.0, None), network(0, 0.0, None)];
        let bests = bests(&networks);
        let all = promotions(&bests, false);
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.info.number.0, one.gain.as_deref()))
            .collect();
        assert_eq!(told, [(1, Some("+45")), (0, None)]);
        assert_eq!(
            gained(&bests, &RatingScale::First).unwrap(),
            "Network #1 stands at +45 ± 20 self-play Elo above network #0: it would score 56 % of the points against it."
        );
        let networks = [network(1, 1_545.0, None), network(0, 500.0, None)];
        let said = gained(&[&networks[1], &networks[0]], &RatingScale::First).unwrap();
        assert!(said.contains("Elo, +1045 points from network #0"), "{said}");
        assert!(said.contains("over 99 % of the points"), "{said}");
    }

    #[test]
    fn a_theme_counts_as_solved_from_half_of_its_puzzles_on() {
        let told = |solved: &[u64]| {
            let group = |solved: &u64| PuzzleGroup {
                name: solved.to_string(),
                solved: *solved,
                tried: 100,
            };
            let (solves, misses) = themes(solved.iter().map(group).collect());
            let names = |groups: Vec<PuzzleGroup>| {
                let names: Vec<_> = groups.into_iter().map(|group| group.name).collect();
                names.join(" ")
            };
            (names(solves), names(misses))
        };
        let expect = |solves: &str, misses: &str| (solves.to_owned(), misses.to_owned());
        assert_eq!(told(&[33, 28]), expect("", "28 33"));
        assert_eq!(told(&[28]), expect("", "28"));
        assert_eq!(told(&[50]), expect("50", ""));
        assert_eq!(told(&[20, 70, 30]), expect("70", "20 30"));
        assert_eq!(told(&[80, 90, 70]), expect("90 80", "70"));
        let many: Vec<u64> = (1..=20).map(|place| 5 * place).collect();
        assert_eq!(told(&many), expect("100 95 90 85", "5 10 15 20"));
    }

    #[test]
    fn promotions_of_a_young_run_have_their_time_of_day() {
        let created = "2030-01-01T00:00:00Z";
        let network = network(0, 0.0, None);
        let at = |now: &str| {
            let young = is_young(created, now.parse().unwrap());
            promotions(&[&network], young)[0].at.clone()
        };
        assert_eq!(at("2030-01-02T00:00:00Z"), "2030-01-01 00:00");
        assert_eq!(at("2030-01-09T00:00:00Z"), "2030-01-01");
    }
}
