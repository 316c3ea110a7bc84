//! The story of a run: how it became stronger, on one page that people share.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::{AnchorName, RunName};
use rookery_common::protocol::networks::{NetworkInfo, NetworkName, PuzzleGroup, Rating};

use super::address::Address;
use super::chart::{Axis, Chart, ChartData, Line, Size};
use super::instructive::{self, Instructive};
use super::layout::{Layout, Page, Tab, page};
use super::networks::{ELO_SPAN, anchor_lines, explained, was_best};
use super::opening_tree::{self, OpeningTree};
use super::rating_scale::RatingScale;
use super::{PagesState, text};

/// Promotions that are listed, the newest.
const PROMOTIONS: usize = 40;
/// Fewer tries say nothing of a puzzle's theme.
const TRIES: u64 = 20;
/// Themes at each end.
const THEMES: usize = 4;
/// Where a share of the points is known no better than this, one word for it would be a guess.
const LOOSE: f64 = 0.15;

#[derive(Template)]
#[template(path = "story.html")]
struct StoryPage {
    layout: Layout,
    run: RunName,
    /// How it all went, in sentences.
    summary: Vec<String>,
    chart: Option<String>,
    scale: RatingScale,
    promotions: Vec<Promotion>,
    /// How the best network fares against known opponents.
    ladder: Vec<String>,
    games: Vec<Instructive>,
    openings: Option<OpeningTree>,
    solves: Vec<PuzzleGroup>,
    misses: Vec<PuzzleGroup>,
}

/// A network that became best.
struct Promotion {
    info: NetworkInfo,
    day: String,
    /// How many points it gained over the best before it.
    gain: Option<String>,
}

/// `GET /runs/{run}/story`
pub(super) async fn told(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
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
    let (solves, misses) = themes(groups);
    let bests = bests(&networks);
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
        chart: over_time(&name, &networks, &bests)?,
        promotions: promotions(&bests),
        ladder: best.map_or_else(Vec::new, |best| ladder(best, &networks)),
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
            "Network #{last} stands at {} Elo{than}: it would score {} of the points against it.",
            scale.elo(&to),
            share_of_points(expected(difference))
        )
    })
}

/// The share of the points that somebody so much stronger gets.
fn expected(difference: f64) -> f64 {
    1.0 / (1.0 + 10_f64.powf(-difference / 400.0))
}

/// In whole percent; what rounds to nothing or to everything is neither.
fn share_of_points(score: f64) -> String {
    match score {
        s if s >= 0.995 => "over 99 %".to_owned(),
        s if s < 0.005 => "under 1 %".to_owned(),
        s => text::decimal(100.0 * s, 0) + " %",
    }
}

/// The ratings of the best networks over time, between level lines of the anchors.
fn over_time(
    run: &RunName,
    networks: &[NetworkInfo],
    bests: &[&NetworkInfo],
) -> Result<Option<String>, askama::Error> {
    let points: Vec<(f64, f64)> = bests
        .iter()
        .filter_map(|info| Some((text::day(&info.submitted_at)?, info.rating?.elo)))
        .collect();
    let (Some((first, _)), Some((last, _))) = (points.first().copied(), points.last().copied())
    else {
        return Ok(None);
    };
    let mut lines = vec![Line {
        name: "best network".to_owned(),
        class: "first",
        points,
    }];
    lines.extend(anchor_lines(networks, (first, last), |anchor, _| {
        anchor.to_string()
    }));
    Chart::render(ChartData {
        title: format!("Elo of the best networks of run {run} over time"),
        x_name: "time (UTC)",
        lines,
        x_axis: Axis::Days,
        y_span: ELO_SPAN,
        size: Size::Full,
        ..ChartData::default()
    })
}

fn promotions(bests: &[&NetworkInfo]) -> Vec<Promotion> {
    let before = std::iter::once(None).chain(bests.iter().map(Some));
    let mut all: Vec<Promotion> = bests
        .iter()
        .zip(before)
        .map(|(info, before)| Promotion {
            day: info.submitted_at.chars().take(10).collect(),
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

/// How a network fares against each anchor, the strongest first.
fn ladder(best: &NetworkInfo, networks: &[NetworkInfo]) -> Vec<String> {
    let Some(own) = best.rating else {
        return Vec::new();
    };
    let mut anchors: Vec<_> = networks
        .iter()
        .filter_map(|info| Some((info, info.anchor.as_ref()?, info.rating?)))
        .collect();
    anchors.sort_by(|a, b| b.2.elo.total_cmp(&a.2.elo));
    let rung = |(info, name, rating): &(&NetworkInfo, &AnchorName, Rating)| {
        let what = info.spec.program().map(explained);
        let what = what.map_or_else(String::new, |what| format!(" ({what})"));
        format!("Against {name}{what} it {}", fares(&own, rating))
    };
    anchors.iter().map(rung).collect()
}

/// How a rating's owner fares against another, or between which shares of the points if few games tell.
fn fares(own: &Rating, other: &Rating) -> String {
    let difference = own.elo - other.elo;
    let up = (own.high - own.elo).hypot(other.elo - other.low);
    let down = (own.elo - own.low).hypot(other.high - other.elo);
    let [low, score, high] = [difference - down, difference, difference + up].map(expected);
    if high - low > LOOSE {
        let (low, high) = (share_of_points(low), share_of_points(high));
        format!("may get from {low} to {high} of the points; more matches will tell")
    } else {
        format!(
            "{}: {} of the points",
            in_words(score),
            share_of_points(score)
        )
    }
}

/// What a share of the points means, as people say it.
const fn in_words(score: f64) -> &'static str {
    match score {
        s if s >= 0.98 => "wins almost every game",
        s if s >= 0.85 => "wins most games",
        s if s >= 0.65 => "wins more often than not",
        s if s >= 0.35 => "is about as strong",
        s if s >= 0.15 => "loses more often than not",
        _ => "loses most games",
    }
}

/// Puzzle themes that a network solves best, and worst.
fn themes(groups: Vec<PuzzleGroup>) -> (Vec<PuzzleGroup>, Vec<PuzzleGroup>) {
    let mut groups: Vec<_> = groups
        .into_iter()
        .filter(|group| group.tried >= TRIES)
        .collect();
    let share = |group: &PuzzleGroup| group.solved as f64 / group.tried as f64;
    groups.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let each = THEMES.min(groups.len() / 2);
    let mut misses = groups.split_off(groups.len() - each);
    misses.reverse();
    groups.truncate(each.max(groups.len().min(1)));
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
    fn the_ladder_is_told_in_words_with_the_strongest_first() {
        let networks = [
            network(0, 700.0, None),
            network(1, 0.0, Some("random")),
            network(2, 700.0, Some("alphabeta-1")),
        ];
        assert_eq!(
            ladder(&networks[0], &networks),
            [
                "Against alphabeta-1 it is about as strong: 50 % of the points",
                "Against random it wins almost every game: 98 % of the points",
            ]
        );
    }

    #[test]
    fn a_rung_of_which_few_games_tell_is_told_by_its_bounds() {
        let mut best = network(0, 1_100.0, None);
        let networks = [network(1, 0.0, Some("alphabeta-1"))];
        let told = |best: &NetworkInfo| ladder(best, &networks).concat();
        assert!(told(&best).contains("it wins almost every game"));
        best.rating.as_mut().unwrap().low = -300.0;
        assert_eq!(
            told(&best),
            "Against alphabeta-1 it may get from 15 % to over 99 % of the points; more matches will tell"
        );
    }

    #[test]
    fn promotions_say_what_they_gained() {
        let networks = [network(1, 45.0, None), network(0, 0.0, None)];
        let bests = bests(&networks);
        let all = promotions(&bests);
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.info.number.0, one.gain.as_deref()))
            .collect();
        assert_eq!(told, [(1, Some("+45")), (0, None)]);
        assert_eq!(
            gained(&bests, &RatingScale::First).unwrap(),
            "Network #1 stands at +45 ± 20 Elo above network #0: it would score 56 % of the points against it."
        );
        let networks = [network(1, 1_545.0, None), network(0, 500.0, None)];
        let said = gained(&[&networks[1], &networks[0]], &RatingScale::First).unwrap();
        assert!(said.contains("Elo, +1045 points from network #0"), "{said}");
        assert!(said.contains("over 99 % of the points"), "{said}");
    }
}
