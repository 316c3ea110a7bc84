//! Charts as SVG: lines and points with intervals, on axes with round numbers.
//!
//! Data come in as numbers; a [`Chart`] renders itself as `<svg>` whose colours are classes of the style
//! sheet. One that is as wide as the page has a second, narrow drawing for phones while it has few points;
//! with more of them it scrolls there. Numbers that are not finite, or beyond all measure, are left out.

use askama::Template;

mod axis;

pub(super) use axis::Axis;

use axis::{Scale, Ticks};

/// Room for the axes' numbers, in the drawing's units; on the left at least so much.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// What each letter of a number takes where letters are largest, on phones.
const LETTER: f64 = 9.0;
/// Lines of at most so many points show each of them; a line of one point is nothing else.
const DOTTED: usize = 30;
/// From so many points on, a chart as wide as the page scrolls on phones.
const SCROLLED: usize = 40;

/// What is to be drawn.
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
    /// How large it is.
    pub size: Size,
    /// What part of it is shown.
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

    /// The part of an address that asks for it, to which more can be added.
    pub(super) fn query(self) -> String {
        match self {
            Self::Fixed | Self::Whole | Self::Part(f64::MIN, f64::MAX) => String::new(),
            Self::Part(from, f64::MAX) => format!("from={from}&"),
            Self::Part(f64::MIN, to) => format!("to={to}&"),
            Self::Part(from, to) => format!("from={from}&to={to}&"),
        }
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
}

impl Size {
    /// Width and height in the drawing's units.
    const fn extent(self) -> (f64, f64) {
        match self {
            Self::Full => (1040.0, 320.0),
            Self::Half => (500.0, 240.0),
        }
    }
}

/// A line through points.
#[derive(Debug)]
pub(super) struct Line {
    /// Its name in the legend; lines without a name are not in it.
    pub name: String,
    /// Its class in the style sheet.
    pub class: &'static str,
    /// Its points.
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
    /// Horizontal place.
    pub x: f64,
    /// Vertical place.
    pub y: f64,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Its class in the style sheet.
    pub class: &'static str,
    /// What a pointer over it tells.
    pub label: String,
    /// Where it leads.
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

/// A chart at one size.
#[derive(Debug)]
struct Drawing {
    screen: Screen,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    bottom: f64,
    /// For `zoom.js`: the ends of the horizontal axis, and where they are drawn.
    span: Option<String>,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    lines: Vec<DrawnLine>,
    points: Vec<DrawnPoint>,
}

/// On which screens a drawing is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screen {
    Any,
    /// Any; narrow ones scroll it, from its right end.
    AnyScrolled,
    Wide,
    Narrow,
}

impl Screen {
    /// Its class in the style sheet.
    const fn class(self) -> &'static str {
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
    fn has_links(&self) -> bool {
        self.points.iter().any(|point| point.link.is_some())
    }
}

#[derive(Debug)]
struct Tick {
    at: f64,
    label: String,
}

#[derive(Debug)]
struct DrawnLine {
    class: &'static str,
    path: String,
    dots: Vec<(f64, f64)>,
}

#[derive(Debug)]
struct DrawnPoint {
    x: f64,
    y: f64,
    interval: Option<(f64, f64)>,
    class: &'static str,
    label: String,
    link: Option<String>,
}

impl DrawnPoint {
    /// Whether the mark is a square, which tells what was turned down also without colours.
    fn is_square(&self) -> bool {
        matches!(self.class, "rejected" | "demoted")
    }
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
            Size::Half => &[(Size::Half, Screen::Any)],
            Size::Full if few => &[(Size::Full, Screen::Wide), (Size::Half, Screen::Narrow)],
            Size::Full => &[(Size::Full, Screen::AnyScrolled)],
        };
        let drawings = shown
            .iter()
            .map(|(size, screen)| Drawing::new(&data, *size, *screen));
        Some(Self {
            drawings: drawings.collect::<Option<_>>()?,
            title: data.title,
            x_name: data.x_name,
            legend: legend(&data.lines),
        })
    }
}

impl Drawing {
    fn new(data: &ChartData, size: Size, screen: Screen) -> Option<Self> {
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

/// What tells lines apart, where there are several.
fn legend(lines: &[Line]) -> Vec<(String, &'static str)> {
    if lines.len() < 2 {
        return Vec::new();
    }
    let named = lines.iter().filter(|line| !line.name.is_empty());
    named.map(|line| (line.name.clone(), line.class)).collect()
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
fn is_drawable(n: f64) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The only drawing of a small chart.
    fn drawing(data: ChartData) -> Drawing {
        let size = Size::Half;
        let mut chart = Chart::new(ChartData { size, ..data }).unwrap();
        assert_eq!(chart.drawings.len(), 1);
        chart.drawings.remove(0)
    }

    #[test]
    fn long_numbers_have_room_on_the_left() {
        let chart = |low, high| {
            let line = Line {
                name: String::new(),
                class: "a",
                points: vec![(0.0, low), (1.0, high)],
            };
            drawing(ChartData {
                lines: vec![line],
                ..ChartData::default()
            })
        };
        assert_eq!(chart(0.0, 100.0).left, LEFT);
        let small = chart(0.000_01, 0.000_02);
        assert_eq!(small.y_ticks[0].label.len(), "0.000010".len());
        assert_eq!(small.left, 80.0);
        assert!(small.lines[0].path.starts_with("M88.0 "), "behind them");
    }

    #[test]
    fn short_lines_show_their_points_and_one_alone_is_seen() {
        let dots = |count: u32, points| {
            let line = Line {
                name: String::new(),
                class: "a",
                points: (0..count).map(|n| (f64::from(n), 1.0)).collect(),
            };
            let chart = Chart::new(ChartData {
                lines: vec![line],
                points,
                size: Size::Half,
                ..ChartData::default()
            })
            .unwrap();
            let svg = Template::render(&chart).unwrap();
            let dots = chart.drawings[0].lines[0].dots.len();
            assert_eq!(svg.matches("<circle class=\"mark a\"").count(), dots);
            dots
        };
        assert_eq!(
            [1, 2, 30, 31].map(|count| dots(count, vec![])),
            [1, 2, 30, 0]
        );
        let own = || Point {
            x: 0.0,
            y: 1.0,
            interval: None,
            class: "b",
            label: String::new(),
            link: None,
        };
        assert_eq!(dots(2, vec![own()]), 0, "the chart has points of its own");
        assert_eq!(dots(1, vec![own()]), 1, "nothing else of it is seen");
    }

    #[test]
    fn a_wide_chart_is_drawn_for_phones_or_scrolls_there() {
        let screens = |count: usize, size| {
            let line = Line {
                name: String::new(),
                class: "a",
                points: (0..count).map(|n| (n as f64, 1.0)).collect(),
            };
            let lines = vec![line];
            let chart = Chart::new(ChartData {
                lines,
                size,
                ..ChartData::default()
            });
            let drawings = chart.unwrap().drawings.into_iter();
            drawings.map(|drawing| drawing.screen).collect::<Vec<_>>()
        };
        assert_eq!(screens(39, Size::Full), [Screen::Wide, Screen::Narrow]);
        assert_eq!(screens(40, Size::Full), [Screen::AnyScrolled]);
        assert_eq!(screens(40, Size::Half), [Screen::Any]);
    }

    #[test]
    fn points_that_lead_somewhere_have_names_and_what_was_rejected_is_a_square() {
        let point = |class, link: Option<&str>| Point {
            x: 0.0,
            y: 1.0,
            interval: None,
            class,
            label: format!("#1, {class}"),
            link: link.map(str::to_owned),
        };
        let svg = |points| {
            let size = Size::Half;
            let data = ChartData {
                points,
                size,
                ..ChartData::default()
            };
            Chart::render(data).unwrap().unwrap()
        };
        let linked = svg(vec![
            point("promoted", Some("/1")),
            point("rejected", Some("/2")),
        ]);
        for part in [
            "role=\"group\"",
            "<a href=\"/2\" aria-label=\"#1, rejected\">",
        ] {
            assert!(linked.contains(part), "{part}: {linked}");
        }
        let squares = linked.matches("<rect class=\"shape\"").count();
        let circles = linked.matches("<circle class=\"shape\"").count();
        assert_eq!((squares, circles), (1, 1), "{linked}");
        let plain = svg(vec![point("day", None)]);
        assert!(plain.contains("role=\"img\""), "{plain}");
    }

    #[test]
    fn an_axis_around_a_single_value_is_as_long_as_it_must_be() {
        let ends = |y_span| {
            let points = vec![(0.0, 0.0)];
            let line = Line {
                name: String::new(),
                class: "a",
                points,
            };
            let chart = drawing(ChartData {
                lines: vec![line],
                y_span,
                ..ChartData::default()
            });
            let labels = chart.y_ticks.iter().map(|tick| tick.label.clone());
            labels.collect::<Vec<_>>()
        };
        assert_eq!(ends(100.0), ["−60", "−40", "−20", "0", "20", "40", "60"]);
        assert_eq!(ends(0.0).len(), 5);
    }

    #[test]
    fn a_part_of_a_chart_is_drawn_over_all_of_the_width() {
        let drawn = |view| {
            let line = Line {
                name: String::new(),
                class: "a",
                points: (0..=10).map(|n| (f64::from(n), f64::from(n))).collect(),
            };
            let chart = drawing(ChartData {
                lines: vec![line],
                view,
                ..ChartData::default()
            });
            (chart.lines[0].dots.len(), chart.span)
        };
        assert_eq!(drawn(View::Fixed), (11, None));
        assert_eq!(drawn(View::Whole), (11, Some("0 10 60 478".to_owned())));
        let part = View::of(Some(4.0), Some(8.5));
        assert_eq!(drawn(part), (5, Some("4 8 60 478".to_owned())));
        assert_eq!(part.query(), "from=4&to=8.5&");
        assert_eq!(View::of(Some(4.0), None).query(), "from=4&");
        for odd in [(9.0, 3.0), (f64::NAN, 3.0)] {
            assert_eq!(View::of(Some(odd.0), Some(odd.1)), View::Whole);
        }
    }

    #[test]
    fn one_value_and_odd_values_are_drawn_without_trouble() {
        let points = vec![(3.0, f64::NAN), (4.0, 1.5), (f64::INFINITY, 2.0)];
        let line = Line {
            name: "loss".to_owned(),
            class: "a",
            points,
        };
        let chart = Chart::new(ChartData {
            lines: vec![line],
            ..ChartData::default()
        })
        .unwrap();
        assert_eq!(
            chart.drawings[0].lines[0].path.matches('L').count(),
            0,
            "one finite point"
        );
        assert!(!Template::render(&chart).unwrap().contains("NaN"));
        assert!(
            Chart::new(ChartData::default()).is_none(),
            "nothing to draw"
        );
    }
}
