//! A chart as a picture for link previews: on a ground of its own, with a heading and colours that no style sheet gives.

use askama::Template;

use super::drawing::{Drawing, Screen};
use super::{ChartData, Size, summary};

/// What a line of the heading may take, in the drawing's units.
const WIDTH: f64 = 500.0;
/// What a letter takes of its size, with some to spare.
const LETTER: f64 = 0.66;
/// Largest letters of the heading.
const SIZE: f64 = 27.0;
/// Longest heading, in characters.
const CHARS: usize = 54;

#[derive(Template)]
#[template(path = "preview.svg", escape = "html")]
struct Preview<'a> {
    heading: String,
    size: f64,
    line: &'a str,
    drawing: Option<Drawing>,
    title: String,
    x_name: &'static str,
}

/// An SVG of 1200 by 630 pixels: a heading, a line below, and the chart if there is something to draw.
pub(in crate::pages) fn preview(
    heading: &str,
    line: &str,
    data: Option<&ChartData>,
) -> Result<String, askama::Error> {
    let mut shown: String = heading.chars().take(CHARS).collect();
    if shown.len() < heading.len() {
        shown.push('…');
    }
    let preview = Preview {
        size: (WIDTH / (LETTER * shown.chars().count() as f64)).min(SIZE),
        heading: shown,
        line,
        drawing: data.and_then(|data| Drawing::new(data, Size::Preview, Screen::Any)),
        title: data.map_or_else(String::new, |data| {
            summary::in_words(&data.title, &data.lines, &data.points)
        }),
        x_name: data.map_or("", |data| data.x_name),
    };
    preview.render()
}
