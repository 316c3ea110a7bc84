//! Charts as SVG: lines and points with intervals, on axes with round numbers.
//!
//! Data come in as numbers; a [`Chart`] renders itself as `<svg>` whose colours are classes of the style
//! sheet. One that is as wide as the page has a second, narrow drawing for phones while it has few points;
//! with more of them it scrolls there. Numbers that are not finite, or beyond all measure, are left out.

use askama::Template;

mod axis;
mod drawing;
mod preview;
mod query;
mod summary;
#[cfg(test)]
mod tests;

pub(super) use axis::Axis;
pub(super) use preview::preview;
pub(super) use query::{AxisChoice, ChartLinks, ChartQuery, ends};

use drawing::{Drawing, Screen};

/// From so many points on, a chart as wide as the page scrolls on phones.
const SCROLLED: usize = 40;

#[derive(Debug, Default)]
pub(super) struct ChartData {
    /// What the chart shows, for people who do not see it.
    pub title: String,
    /// What the horizontal axis counts.
    pub x_name: &'static str,
    /// Lines, drawn first.
    pub lines: Vec<Line>,
    /// Points, drawn over the lines.
    pub points: Vec<Point>,
    /// The range that the vertical axis covers at least.
    pub y_range: Option<(f64, f64)>,
    /// What the vertical axis spans at least, around the data.
    pub y_span: f64,
    /// What the horizontal axis's numbers are.
    pub x_axis: Axis,
    pub size: Size,
    pub view: View,
}

/// What part of the horizontal axis a chart shows.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) enum View {
    /// All of it, always.
    #[default]
    Fixed,
    /// All of it; `zoom.js` may ask for a part.
    Whole,
    /// What lies between two places.
    Part(f64, f64),
}

impl View {
    /// What an address asks for; all if it asks for no part.
    pub(super) fn of(from: Option<f64>, to: Option<f64>) -> Self {
        match (from.unwrap_or(f64::MIN), to.unwrap_or(f64::MAX)) {
            (f64::MIN, f64::MAX) => Self::Whole,
            (from, to) if from < to => Self::Part(from, to),
            _ => Self::Whole,
        }
    }

    pub(super) const fn is_part(self) -> bool {
        matches!(self, Self::Part(_, _))
    }

    /// What is shown of a line between these places; nothing if all of it lies outside.
    pub(super) fn clip(self, (first, last): (f64, f64)) -> Option<(f64, f64)> {
        let (first, last) = match self {
            Self::Part(from, to) => (from.max(first), to.min(last)),
            Self::Fixed | Self::Whole => (first, last),
        };
        (first <= last).then_some((first, last))
    }

    pub(super) fn holds(self, x: f64) -> bool {
        match self {
            Self::Part(from, to) => (from..=to).contains(&x),
            Self::Fixed | Self::Whole => true,
        }
    }
}

/// How large a chart is; its letters are as large as the page's then.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// As wide as the page.
    #[default]
    Full,
    /// One of two beside each other.
    Half,
    /// In a picture for link previews.
    Preview,
}

#[derive(Debug)]
pub(super) struct Line {
    /// Its name in the legend; lines without a name are not in it.
    pub name: String,
    pub class: &'static str,
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// Whether it stands for one number, an anchor's rating.
    fn is_level(&self) -> bool {
        self.class.starts_with("anchor")
    }
}

/// A point, perhaps with an interval.
#[derive(Debug)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
    pub interval: Option<(f64, f64)>,
    pub class: &'static str,
    /// What a pointer over it tells.
    pub label: String,
    pub link: Option<String>,
}

/// A chart that renders itself.
#[derive(Debug, Template)]
#[template(path = "chart.html")]
pub(super) struct Chart {
    title: String,
    x_name: &'static str,
    drawings: Vec<Drawing>,
    legend: Vec<(String, &'static str)>,
}

impl Chart {
    /// A chart as SVG; none if there is nothing to draw.
    pub(super) fn render(data: ChartData) -> Result<Option<String>, askama::Error> {
        Self::new(data)
            .map(|chart| Template::render(&chart))
            .transpose()
    }

    fn new(mut data: ChartData) -> Option<Self> {
        let view = data.view;
        data.points.retain(|point| view.holds(point.x));
        for line in &mut data.lines {
            line.points.retain(|(x, _)| view.holds(*x));
        }
        let longest = data.lines.iter().map(|line| line.points.len()).max();
        let few = data.points.len().max(longest.unwrap_or(0)) < SCROLLED;
        let shown: &[_] = match data.size {
            Size::Half | Size::Preview => &[(data.size, Screen::Any)],
            Size::Full if few => &[(Size::Full, Screen::Wide), (Size::Half, Screen::Narrow)],
            Size::Full => &[(Size::Full, Screen::AnyScrolled)],
        };
        let drawings = shown
            .iter()
            .map(|(size, screen)| Drawing::new(&data, *size, *screen));
        Some(Self {
            drawings: drawings.collect::<Option<_>>()?,
            title: summary::in_words(&data.title, &data.lines, &data.points),
            x_name: data.x_name,
            legend: legend(&data.lines),
        })
    }
}

/// What tells lines apart, where there are several.
fn legend(lines: &[Line]) -> Vec<(String, &'static str)> {
    if lines.len() < 2 {
        return Vec::new();
    }
    let named = lines.iter().filter(|line| !line.name.is_empty());
    named.map(|line| (line.name.clone(), line.class)).collect()
}
