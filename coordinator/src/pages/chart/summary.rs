//! A chart in words, for people who do not see it: where each line begins and ends, and between what it runs.

use super::drawing::is_drawable;
use super::{Line, Point};
use crate::pages::text;

/// The title, and what its lines say. Points that are links say what they are themselves.
pub(super) fn in_words(title: &str, lines: &[Line], points: &[Point]) -> String {
    let mut said: Vec<String> = lines.iter().filter_map(line).collect();
    if said.is_empty() && points.iter().all(|point| point.link.is_none()) {
        let values = points.iter().map(|point| (point.x, point.y));
        said.extend(course("", values));
    }
    if said.is_empty() {
        return title.to_owned();
    }
    format!("{title}; {}", said.join("; "))
}

fn line(line: &Line) -> Option<String> {
    let values = line.points.iter().copied();
    if line.is_level() {
        let (_, level) = values.last()?;
        return Some(format!("{} at {}", line.name, number(level)));
    }
    course(&line.name, values)
}

/// `held out from 4.10 to 2.31, lowest 2.25, highest 4.10`.
fn course(name: &str, values: impl Iterator<Item = (f64, f64)>) -> Option<String> {
    let drawn = values.filter(|(x, y)| is_drawable(*x) && is_drawable(*y));
    let values: Vec<f64> = drawn.map(|(_, y)| y).collect();
    let (first, last) = (values.first()?, values.last()?);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [first, last, low, high] = [*first, *last, low, high].map(number);
    let course = match values.len() {
        1 => format!("{name} {first}"),
        _ => format!("{name} from {first} to {last}, lowest {low}, highest {high}"),
    };
    Some(course.trim().to_owned())
}

/// A number with three significant digits, or all those before its point.
fn number(n: f64) -> String {
    let magnitude = n.abs();
    if !(1e-6..99.5).contains(&magnitude) {
        return text::decimal(n, 0);
    }
    let digits = 2.0 - magnitude.log10().floor();
    text::decimal(n, digits.max(0.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [4.1, 0.01234, -20.0, 123.4, 1_234_567.0, 0.0, 99.7].map(number);
        assert_eq!(
            numbers,
            ["4.10", "0.0123", "−20.0", "123", "1234567", "0", "100"]
        );
    }

    #[test]
    fn each_line_says_where_it_begins_and_ends_and_between_what_it_runs() {
        let line = |name: &str, class, points: &[(f64, f64)]| Line {
            name: name.to_owned(),
            class,
            points: points.to_vec(),
        };
        let lines = [
            line(
                "held out",
                "a",
                &[(0.0, 4.1), (1.0, 2.0), (2.0, f64::NAN), (3.0, 3.0)],
            ),
            line("one", "a", &[(0.0, 5.0)]),
            line("empty", "a", &[]),
            line("random", "anchor", &[(0.0, -500.0), (3.0, -500.0)]),
        ];
        assert_eq!(
            in_words("Loss", &lines, &[]),
            "Loss; held out from 4.10 to 3.00, lowest 2.00, highest 4.10; one 5.00; random at −500"
        );
        assert_eq!(in_words("Loss", &[], &[]), "Loss");
    }
}
