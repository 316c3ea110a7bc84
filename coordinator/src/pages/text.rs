//! Numbers, times and names as pages write them.
//!
//! Templates pass some values by reference and some not; `impl Borrow` takes both.

use std::borrow::Borrow;

use jiff::Timestamp;
use rookery_common::chess::GameResult;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::{PuzzleScore, Rating};
use rookery_common::protocol::people::Span;
use rookery_common::protocol::runs::LastReport;
use rookery_common::rating::Performance;
use rookery_common::rating::gate::{AtLimit, GateRule};

/// A number of things.
pub(super) trait Count {
    /// The number.
    fn number(&self) -> u64;
}

impl Count for u64 {
    fn number(&self) -> u64 {
        *self
    }
}

impl Count for u32 {
    fn number(&self) -> u64 {
        Self::into(*self)
    }
}

impl<T: Count> Count for &T {
    fn number(&self) -> u64 {
        (*self).number()
    }
}

/// A count with thin groups of three: `12 345`.
pub(super) fn count(n: impl Count) -> String {
    let digits = n.number().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A rate of any size with at most three digits after the point: `0.25`, `12.3`, `4 567`.
pub(super) fn rate(n: impl Borrow<f64>) -> String {
    match *n.borrow() {
        n if !n.is_finite() || n < 0.0 => "–".to_owned(),
        0.0 => "0".to_owned(),
        n if n >= 99.95 => count(n.round() as u64),
        n if n >= 9.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

/// A size in bytes, kB, MB or GB.
pub(super) fn bytes(n: impl Borrow<u64>) -> String {
    let n = *n.borrow() as f64;
    match n {
        n if n < 1e3 => format!("{n:.0} bytes"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}

/// A share of a whole in percent; a dash if the whole is empty.
pub(super) fn percent(part: impl Borrow<u64>, whole: impl Borrow<u64>) -> String {
    let (part, whole) = (*part.borrow(), *whole.borrow());
    if whole == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

/// A number from 0 to 100 for widths; 0 if the whole is empty.
pub(super) fn share(part: impl Borrow<u64>, whole: impl Borrow<u64>) -> f64 {
    let (part, whole) = (*part.borrow(), *whole.borrow());
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

/// A whole number with its sign, as ratings are written: `+12`, `−3`, `0`.
pub(super) fn signed(n: impl Borrow<f64>) -> String {
    let rounded = n.borrow().round();
    if rounded < 0.0 {
        format!("−{:.0}", -rounded)
    } else if rounded > 0.0 {
        format!("+{rounded:.0}")
    } else {
        "0".to_owned()
    }
}

/// A number with `digits` after the point and a true minus sign.
pub(super) fn decimal(n: impl Borrow<f64>, digits: usize) -> String {
    let n = *n.borrow();
    let text = format!("{:.digits$}", n.abs());
    let zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    if n < 0.0 && !zero {
        format!("−{text}")
    } else {
        text
    }
}

/// A rating and half of its interval: `+123 ± 14`; `0` for the network from which ratings are counted.
pub(super) fn rating(rating: &Rating) -> String {
    if is_reference(rating) {
        return signed(rating.elo);
    }
    let half = (rating.high - rating.low) / 2.0;
    format!("{} ± {half:.0}", signed(rating.elo))
}

/// Whether a rating is that of the network from which ratings are counted: it is known exactly.
pub(super) fn is_reference(rating: &Rating) -> bool {
    rating.high <= rating.low
}

/// A rating by puzzles and half of its interval: `1230 ± 40`.
pub(super) fn performance(performance: &Performance) -> String {
    let half = (performance.high - performance.low) / 2.0;
    format!("{:.0} ± {half:.0}", performance.elo)
}

/// The share of puzzles solved.
pub(super) fn solved(score: &PuzzleScore) -> String {
    percent(score.solved, score.tried)
}

/// How long ago something was: `12 s ago`, `3 min ago`. The future counts as now.
pub(super) fn ago(now: Timestamp, then: &str) -> String {
    let Ok(then) = then.parse::<Timestamp>() else {
        return then.to_owned();
    };
    let seconds = now.as_second().saturating_sub(then.as_second());
    match seconds {
        ..5 => "just now".to_owned(),
        5..90 => format!("{seconds} s ago"),
        90..5_400 => format!("{} min ago", (seconds + 30) / 60),
        5_400..129_600 => format!("{} h ago", (seconds + 1_800) / 3_600),
        _ => format!("{} days ago", (seconds + 43_200) / 86_400),
    }
}

/// A span of time that ends now.
pub(super) const fn span(span: Span) -> &'static str {
    match span {
        Span::Day => "24 hours",
        Span::Week => "7 days",
        Span::Month => "30 days",
        Span::All => "all time",
    }
}

/// When a trainer reported last, and what: `3 min ago, at step 12 000`.
pub(super) fn reported(now: Timestamp, report: &LastReport) -> String {
    format!("{}, at step {}", ago(now, &report.at), count(report.step))
}

/// What a game was played for, in words.
pub(super) const fn kind(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::SelfPlay => "self-play",
        WorkKind::Puzzles => "puzzle",
        WorkKind::Match => "match",
        WorkKind::Audit => "audit",
    }
}

/// A result as score sheets write it.
pub(super) const fn result(result: GameResult) -> &'static str {
    match result {
        GameResult::WhiteWins => "1–0",
        GameResult::BlackWins => "0–1",
        GameResult::Draw => "½–½",
    }
}

/// A gate's rule in a sentence.
pub(super) fn rule(rule: &GateRule) -> String {
    match rule {
        GateRule::Sprt {
            params,
            max_pairs,
            at_limit,
        } => {
            let end = match at_limit {
                AtLimit::PromoteIfScoreAboveHalf => "then the better score decides",
                AtLimit::Reject => "then the candidate is rejected",
            };
            format!(
                "Sequential test on pairs of games: {} against {} Elo, error rates {} and {}; at most {} pairs, {end}.",
                decimal(params.elo0, 0),
                decimal(params.elo1, 0),
                params.alpha,
                params.beta,
                count(*max_pairs),
            )
        }
        GateRule::Fixed { games, threshold } => format!(
            "{} games; the candidate needs more than {:.0} % of the points.",
            count(*games),
            100.0 * threshold
        ),
        GateRule::None => "No gate: every candidate is promoted.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_signed() {
        assert_eq!(count(999_u64), "999");
        assert_eq!(count(1_234_567_u64), "1\u{202f}234\u{202f}567");
        assert_eq!(rate(0.254), "0.25");
        assert_eq!(rate(1234.4), "1\u{202f}234");
        assert_eq!(
            [signed(-3.4), signed(0.2), signed(12.5)],
            ["−3", "0", "+13"]
        );
        assert_eq!([decimal(-0.004, 2), decimal(-1.5, 1)], ["0.00", "−1.5"]);
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(0, 0), "–");
    }

    #[test]
    fn the_reference_of_ratings_has_no_interval() {
        let of = |elo, half| Rating {
            elo,
            low: elo - half,
            high: elo + half,
            games: 8,
        };
        assert_eq!(rating(&of(123.4, 14.0)), "+123 ± 14");
        assert!(!is_reference(&of(0.0, 14.0)));
        assert_eq!(rating(&of(0.0, 0.0)), "0");
        assert!(is_reference(&of(0.0, 0.0)));
    }

    #[test]
    fn times_are_told_from_now() {
        let now: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let cases = [
            ("2030-01-01T12:00:09Z", "just now"),
            ("2030-01-01T11:59:30Z", "30 s ago"),
            ("2030-01-01T11:50:00Z", "10 min ago"),
            ("2030-01-01T08:00:00Z", "4 h ago"),
            ("2029-12-20T12:00:00Z", "12 days ago"),
            ("yesterday", "yesterday"),
        ];
        for (then, expected) in cases {
            assert_eq!(ago(now, then), expected);
        }
    }
}
