//! The chart of ratings of a run's networks.

use rookery_common::ids::{AnchorName, RunName};
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus, Rating};
use serde::{Deserialize, Serialize};

use crate::pages::chart::{Axis, AxisChoice, Chart, ChartData, Line, Point, Size, View, ends};
use crate::pages::rating_scale::RatingScale;
use crate::pages::text;

/// Networks with points on a small chart, the newest; nobody could tell more of them apart, and the
/// overview is asked for again with every chunk.
const POINTS: usize = 100;
/// If no more networks than these are in view, each has a point on a large chart.
const ALL: usize = 400;
/// Else so many of those that were best have points, beside the newest [`POINTS`].
const BESTS: usize = 300;
/// A rating whose interval is wider, in Elo, is not drawn: it would flatten all others. Where all are wide, because the
/// anchors lost nearly every game, it is one that is twice as wide as the narrowest.
const WIDEST: f64 = 1_000.0;
/// What an axis of Elo spans at least: less is hardly a difference in strength.
pub(in crate::pages) const ELO_SPAN: f64 = 100.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::pages) enum Over {
    #[default]
    Numbers,
    /// The training positions that the run had when they were submitted.
    Positions,
    /// When they were submitted.
    Time,
}

impl AxisChoice for Over {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Numbers, "by number"),
        (Self::Positions, "by positions played"),
        (Self::Time, "by time"),
    ];
}

impl Over {
    /// Where a network is; nowhere if that is not known.
    pub(in crate::pages) fn place(self, info: &NetworkInfo) -> Option<f64> {
        match self {
            Self::Numbers => Some(f64::from(info.number.0)),
            Self::Positions => info.positions.map(|positions| positions as f64),
            Self::Time => text::day(&info.submitted_at),
        }
    }

    pub(in crate::pages) const fn axis(self) -> Axis {
        match self {
            Self::Numbers | Self::Positions => Axis::Whole,
            Self::Time => Axis::Days,
        }
    }

    pub(in crate::pages) const fn name(self) -> &'static str {
        match self {
            Self::Numbers => "network",
            Self::Positions => "training positions",
            Self::Time => "time (UTC)",
        }
    }
}

/// How many networks have points on a small chart, if there are more.
pub(in crate::pages) fn cut_off(networks: &[NetworkInfo]) -> Option<u32> {
    let own = networks.iter().filter(|info| info.anchor.is_none());
    (own.count() > POINTS).then_some(POINTS as u32)
}

/// A level line for each rated anchor, the strongest first as on the chart, with a pattern of its own.
pub(in crate::pages) fn anchor_lines(
    networks: &[NetworkInfo],
    (first, last): (f64, f64),
    name: impl Fn(&AnchorName, &Rating) -> String,
) -> Vec<Line> {
    const PATTERNS: [&str; 4] = ["anchor", "anchor dashed", "anchor mixed", "anchor long"];
    let mut anchors: Vec<_> = networks
        .iter()
        .filter_map(|info| Some((info.anchor.as_ref()?, info.rating?)))
        .collect();
    anchors.sort_by(|a, b| b.1.elo.total_cmp(&a.1.elo));
    let lines = anchors.iter().zip(PATTERNS.into_iter().cycle());
    lines
        .map(|((anchor, rating), class)| Line {
            name: name(anchor, rating),
            class,
            points: vec![(first, rating.elo), (last, rating.elo)],
        })
        .collect()
}

/// Ratings of networks, given newest first, over numbers or positions: a point with its interval for
/// each that has one, coloured by what became of it, a line through those that were best, and a
/// level line for each anchor.
pub(in crate::pages) fn rating_chart(
    run: &RunName,
    networks: &[NetworkInfo],
    over: Over,
    size: Size,
    view: View,
) -> Result<Option<String>, askama::Error> {
    let data = rating_data(run, networks, over, size, view);
    Ok(data.map(Chart::render).transpose()?.flatten())
}

/// What that chart shows; nothing if there are no networks in view.
pub(in crate::pages) fn rating_data(
    run: &RunName,
    networks: &[NetworkInfo],
    over: Over,
    size: Size,
    view: View,
) -> Option<ChartData> {
    let scale = RatingScale::of(networks);
    let own: Vec<&NetworkInfo> = match size {
        Size::Full => own_in(networks, over, View::Whole).collect(),
        Size::Half | Size::Preview => own_in(networks, over, View::Whole).take(POINTS).collect(),
    };
    let widest = widest(networks);
    let points: Vec<Point> = with_points(&own, over, view)
        .into_iter()
        .filter_map(|info| rating_point(run, info, over, widest, &scale))
        .collect();
    let mut best: Vec<(f64, f64)> = networks
        .iter()
        .filter(|info| was_best(info))
        .filter_map(|info| rating_point(run, info, over, widest, &scale))
        .map(|point| (point.x, point.y))
        .collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lines = vec![Line {
        name: String::new(),
        class: "best",
        points: best,
    }];
    // A level line goes as far as the networks.
    let (first, last) = ends(own.iter().filter_map(|info| over.place(info)))?;
    let last = if first < last { last } else { first + 1.0 };
    let level = view.clip((first, last))?;
    lines.extend(anchor_lines(networks, level, |anchor, rating| {
        format!("{anchor} ({})", scale.rating(rating))
    }));
    let unit = scale.unit();
    let title = format!("Ratings of the networks of run {run} in {unit}, counted from {scale}");
    Some(ChartData {
        title,
        x_name: over.name(),
        lines,
        points,
        x_axis: over.axis(),
        y_span: ELO_SPAN,
        size,
        view,
        ..ChartData::default()
    })
}

/// The run's own networks that lie in a view, newest first.
fn own_in(networks: &[NetworkInfo], over: Over, view: View) -> impl Iterator<Item = &NetworkInfo> {
    networks
        .iter()
        .filter(move |info| info.anchor.is_none() && lies_in(info, over, view))
}

fn lies_in(info: &NetworkInfo, over: Over, view: View) -> bool {
    over.place(info).is_some_and(|place| view.holds(place))
}

/// Whether some of the networks in view have no point on a large chart.
pub(super) fn is_thinned(networks: &[NetworkInfo], over: Over, view: View) -> bool {
    own_in(networks, over, view).nth(ALL).is_some()
}

/// The networks that have points: all in view if they are few, else the newest, and some of those before them that
/// were best.
fn with_points<'a>(own: &[&'a NetworkInfo], over: Over, view: View) -> Vec<&'a NetworkInfo> {
    let in_view = own.iter().filter(|info| lies_in(info, over, view));
    let mut shown: Vec<&NetworkInfo> = in_view.copied().collect();
    if shown.len() <= ALL {
        return shown;
    }
    let mut bests = shown.split_off(POINTS);
    bests.retain(|info| was_best(info));
    let each = bests.len().div_ceil(BESTS).max(1);
    shown.extend(bests.into_iter().step_by(each));
    shown
}

/// Whether a network is best or was, and nobody has moved best back from it.
pub(in crate::pages) const fn was_best(info: &NetworkInfo) -> bool {
    matches!(
        info.status,
        NetworkStatus::Initial | NetworkStatus::Promoted
    )
}

fn widest(networks: &[NetworkInfo]) -> f64 {
    let own = networks.iter().filter(|info| info.anchor.is_none());
    let widths = own.filter_map(|info| Some(width(&info.rating?)));
    WIDEST.max(2.0 * widths.reduce(f64::min).unwrap_or(0.0))
}

fn width(rating: &Rating) -> f64 {
    rating.high - rating.low
}

fn rating_point(
    run: &RunName,
    info: &NetworkInfo,
    over: Over,
    widest: f64,
    scale: &RatingScale,
) -> Option<Point> {
    let rating = info.rating.filter(|rating| width(rating) <= widest)?;
    Some(Point {
        x: over.place(info)?,
        y: rating.elo,
        interval: Some((rating.low, rating.high)),
        class: info.status.name(),
        label: format!(
            "#{}: {} Elo, {}",
            info.number,
            scale.elo(&rating),
            info.status.name()
        ),
        link: Some(format!("/runs/{run}/networks/{}", info.number)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::networks::tests::network;

    #[test]
    fn a_rating_that_is_hardly_known_is_not_on_the_chart() {
        let mut networks = [rated(2, None), rated(1, None), rated(0, None)];
        let unknown = networks[0].rating.as_mut().unwrap();
        (unknown.low, unknown.high) = (-4_000.0, 4_000.0);
        let svg = chart(&networks, Over::Numbers, Size::Half);
        assert_eq!(points(&svg), 2);
        assert!(!svg.contains("4000"), "{svg}");
    }

    #[test]
    fn ratings_that_are_all_hardly_known_are_on_the_chart() {
        let mut networks = [rated(2, None), rated(1, None), rated(0, None)];
        for rating in networks.iter_mut().filter_map(|info| info.rating.as_mut()) {
            (rating.low, rating.high) = (rating.elo - 600.0, rating.elo + 600.0);
        }
        assert_eq!(points(&chart(&networks, Over::Numbers, Size::Half)), 3);
    }

    fn rated(number: u32, positions: Option<u64>) -> NetworkInfo {
        NetworkInfo {
            rating: Some(Rating {
                elo: f64::from(number),
                low: -5.0,
                high: 50.0,
                games: 8,
            }),
            positions,
            ..network(number)
        }
    }

    fn chart(networks: &[NetworkInfo], over: Over, size: Size) -> String {
        let chart = rating_chart(&"main".parse().unwrap(), networks, over, size, View::Whole);
        chart.unwrap().unwrap()
    }

    fn points(svg: &str) -> usize {
        svg.matches("<g class=\"point").count()
    }

    #[test]
    fn a_small_chart_has_the_newest_points_and_the_whole_line() {
        let all: Vec<_> = (0..150).rev().map(|number| rated(number, None)).collect();
        let small = chart(&all, Over::Numbers, Size::Half);
        assert_eq!(points(&small), POINTS);
        let line = small.split("class=\"line best\" d=\"").nth(1).unwrap();
        let line = line.split('"').next().unwrap();
        assert_eq!(line.matches('L').count(), 149);
        assert!(small.contains("<title>#149: "), "{small}");
        assert_eq!(points(&chart(&all, Over::Numbers, Size::Full)), 150);
    }

    #[test]
    fn a_large_chart_of_a_long_run_leaves_out_what_was_not_best_for_long() {
        let status = |number: u32| match number % 3 {
            0 => NetworkStatus::Promoted,
            _ => NetworkStatus::Rejected,
        };
        let network = |number| NetworkInfo {
            status: status(number),
            ..rated(number, None)
        };
        let all: Vec<_> = (0..3_000).rev().map(network).collect();
        let svg = chart(&all, Over::Numbers, Size::Full);
        // Of the 967 before the newest 100 that were best every fourth.
        assert_eq!(points(&svg), 100 + 242);
        assert!(is_thinned(&all, Over::Numbers, View::Whole));
        let part = View::Part(100.0, 499.0);
        let run = "main".parse().unwrap();
        let svg = rating_chart(&run, &all, Over::Numbers, Size::Full, part);
        assert_eq!(points(&svg.unwrap().unwrap()), 400);
        assert!(!is_thinned(&all, Over::Numbers, part));
    }

    #[test]
    fn ratings_stand_over_numbers_or_over_the_positions_that_are_known() {
        let networks = [rated(2, Some(7_000)), rated(1, Some(0)), rated(0, None)];
        let by_number = chart(&networks, Over::Numbers, Size::Half);
        assert_eq!(points(&by_number), 3);
        assert!(by_number.contains(">network</text>"), "{by_number}");
        let by_positions = chart(&networks, Over::Positions, Size::Half);
        assert_eq!(points(&by_positions), 2);
        for text in [">training positions</text>", ">6000</text>"] {
            assert!(by_positions.contains(text), "{by_positions}");
        }
    }
}
