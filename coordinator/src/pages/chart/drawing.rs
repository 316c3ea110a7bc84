//! A chart at one size, in the drawing's units: where lines, points and the axes' numbers are.

use super::axis::{Axis, Scale, Ticks};
use super::{ChartData, Line, Point, Size, View};

/// Room for the axes' numbers, in the drawing's units; on the left at least so much.
pub(super) const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// What each letter of a number takes where letters are largest, on phones.
const LETTER: f64 = 9.0;
/// Lines of at most so many points show each of them; a line of one point is nothing else.
const DOTTED: usize = 30;
/// A chart at one size.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) screen: Screen,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
    /// For `zoom.js`: the ends of the horizontal axis, and where they are drawn.
    pub(super) span: Option<String>,
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
    pub(super) lines: Vec<DrawnLine>,
    pub(super) points: Vec<DrawnPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Screen {
    Any,
    /// Any; narrow ones scroll it, from its right end.
    AnyScrolled,
    Wide,
    Narrow,
}

impl Screen {
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::AnyScrolled => " full",
            Self::Wide => " wide-screen",
            Self::Narrow => " narrow-screen",
        }
    }
}

impl Drawing {
    /// Whether points are links, which readers and the keyboard must reach.
    pub(super) fn has_links(&self) -> bool {
        self.points.iter().any(|point| point.link.is_some())
    }
}

#[derive(Debug)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

#[derive(Debug)]
pub(super) struct DrawnLine {
    pub(super) class: &'static str,
    pub(super) path: String,
    pub(super) dots: Vec<(f64, f64)>,
}

#[derive(Debug)]
pub(super) struct DrawnPoint {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) class: &'static str,
    pub(super) label: String,
    pub(super) link: Option<String>,
}

impl DrawnPoint {
    /// Whether the mark is a square, which tells what was turned down also without colours.
    pub(super) fn is_square(&self) -> bool {
        matches!(self.class, "rejected" | "demoted")
    }
}

impl Size {
    /// Width and height in the drawing's units.
    const fn extent(self) -> (f64, f64) {
        match self {
            Self::Full => (1040.0, 320.0),
            Self::Half => (500.0, 240.0),
            Self::Preview => (560.0, 230.0),
        }
    }
}

impl Drawing {
    pub(super) fn new(data: &ChartData, size: Size, screen: Screen) -> Option<Self> {
        let (width, height) = size.extent();
        let (x_range, y_range) = ranges(data)?;
        let y_axis = Ticks::covering(y_range, 5, Axis::Real);
        let x_axis = Ticks::within(x_range, (width / 90.0) as usize, data.x_axis);
        let y = Scale::new(y_axis.range, height - BOTTOM, TOP);
        let y_ticks = y_axis.at(&y);
        let left = room_for(&y_ticks);
        let x = Scale::new(x_range, left + 8.0, width - RIGHT - 8.0);
        // Where a chart has points of its own, lines only lead from one to the next.
        let dotted = if data.points.is_empty() { DOTTED } else { 0 };
        Some(Self {
            screen,
            width,
            height,
            left,
            right: width - RIGHT,
            bottom: height - BOTTOM,
            span: (data.view != View::Fixed).then(|| {
                let (low, high) = x_range;
                format!("{low} {high} {} {}", x.at(low), x.at(high))
            }),
            x_ticks: x_axis.at(&x),
            y_ticks,
            lines: data
                .lines
                .iter()
                .filter_map(|line| draw_line(line, dotted, &x, &y))
                .collect(),
            points: data
                .points
                .iter()
                .filter_map(|point| draw(point, &x, &y))
                .collect(),
        })
    }
}

/// What the vertical axis's numbers take on the left, with the gap behind them.
fn room_for(numbers: &[Tick]) -> f64 {
    let letters = numbers.iter().map(|tick| tick.label.chars().count());
    let longest = letters.max().unwrap_or(0);
    LEFT.max(8.0 + LETTER * longest as f64)
}

/// A line, with a dot for each point if there are at most `dotted`, or only one.
fn draw_line(line: &Line, dotted: usize, x: &Scale, y: &Scale) -> Option<DrawnLine> {
    let drawable = line
        .points
        .iter()
        .filter(|(a, b)| is_drawable(*a) && is_drawable(*b));
    let points: Vec<_> = drawable.map(|(a, b)| (x.at(*a), y.at(*b))).collect();
    let places: Vec<_> = points
        .iter()
        .map(|(x, y)| format!("{x:.1} {y:.1}"))
        .collect();
    let path = format!("M{}", places.join(" L"));
    // The ends of a level line are no data.
    let dotted = if line.is_level() { 0 } else { dotted.max(1) };
    (!points.is_empty()).then(|| DrawnLine {
        class: line.class,
        path,
        dots: if points.len() <= dotted {
            points
        } else {
            Vec::new()
        },
    })
}

fn draw(point: &Point, x: &Scale, y: &Scale) -> Option<DrawnPoint> {
    let drawable = is_drawable(point.x) && is_drawable(point.y);
    let interval = point
        .interval
        .filter(|(low, high)| is_drawable(*low) && is_drawable(*high));
    drawable.then(|| DrawnPoint {
        x: x.at(point.x),
        y: y.at(point.y),
        interval: interval.map(|(low, high)| (y.at(low), y.at(high))),
        class: point.class,
        label: point.label.clone(),
        link: point.link.clone(),
    })
}

/// Numbers beyond this would only flatten everything else, and cost the axis its precision.
pub(super) fn is_drawable(n: f64) -> bool {
    n.abs() <= 1e12
}

/// The smallest ranges that hold all drawable data.
fn ranges(data: &ChartData) -> Option<((f64, f64), (f64, f64))> {
    let on_lines = data
        .lines
        .iter()
        .flat_map(|line| line.points.iter().copied());
    let points = || data.points.iter();
    let ends = points()
        .filter_map(|p| p.interval)
        .flat_map(|(low, high)| [low, high]);
    let wanted = data.y_range.into_iter().flat_map(|(low, high)| [low, high]);
    let xs = on_lines
        .clone()
        .map(|(x, _)| x)
        .chain(points().map(|p| p.x));
    let ys = on_lines
        .map(|(_, y)| y)
        .chain(points().map(|p| p.y))
        .chain(ends);
    let y = span(ys)?;
    let missing = (data.y_span - (y.1 - y.0)).max(0.0) / 2.0;
    let y = (y.0 - missing, y.1 + missing);
    Some((span(xs)?, span([y.0, y.1].into_iter().chain(wanted))?))
}

fn span(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers
        .filter(|n| is_drawable(*n))
        .fold(None, |range, n| match range {
            None => Some((n, n)),
            Some((low, high)) => Some((f64::min(low, n), f64::max(high, n))),
        })
}
