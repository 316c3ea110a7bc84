//! Numbers, times and names as pages write them.
//!
//! Templates pass some values by reference and some not; `impl Borrow` takes both.

use std::borrow::Borrow;

use jiff::Timestamp;
use rookery_common::chess::GameResult;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::{MatchInfo, MatchPurpose};
use rookery_common::protocol::networks::{PuzzleScore, Rating};
use rookery_common::protocol::people::Span;
use rookery_common::protocol::runs::LastReport;
use rookery_common::rating::Performance;
use rookery_common::rating::gate::{AtLimit, GateRule};
use rookery_common::rating::sprt::{EloModel, SprtParams};
use rookery_common::text::plural;

/// A number of things.
pub(super) trait Count {
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

/// A number with all its digits and a true minus sign; floating point's noise is left out.
pub(super) fn exact(n: impl Borrow<f64>) -> String {
    let n = (*n.borrow() * 1e6).round() / 1e6;
    let sign = if n < 0.0 { "−" } else { "" };
    format!("{sign}{}", n.abs())
}

/// A number of things with their name: `1 pair`, `20 pairs`.
pub(super) fn counted(n: impl Count, noun: &str) -> String {
    let name = plural(n.number(), noun);
    format!("{} {name}", count(n))
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

/// The share of puzzles solved and half of its 95 % interval: `46.9 ± 16.2 %`.
pub(super) fn solved(score: &PuzzleScore) -> String {
    let (low, high) = share_interval(score.solved, score.tried);
    if score.tried == 0 {
        return percent(score.solved, score.tried);
    }
    let (share, half) = (share(score.solved, score.tried), (high - low) / 2.0);
    format!("{share:.1} ± {half:.1}\u{a0}%")
}

/// The 95 % interval of a share in percent, after Wilson (1927).
pub(super) fn share_interval(of: u64, whole: u64) -> (f64, f64) {
    points_interval(of as f64, whole)
}

/// The same for points, of which a trial may give half a one.
pub(super) fn points_interval(of: f64, trials: u64) -> (f64, f64) {
    const Z: f64 = 1.96;
    if trials == 0 {
        return (0.0, 100.0);
    }
    let n = trials as f64;
    let share = of / n;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let end = |end: f64| (100.0 * end / (1.0 + Z * Z / n)).clamp(0.0, 100.0);
    (end(middle - half), end(middle + half))
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

/// A time to the minute: `2030-01-31 18:05 UTC`.
pub(super) fn minute(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return time.to_owned();
    };
    time.strftime("%F %H:%M UTC").to_string()
}

/// A time in days since 1970, for charts.
pub(super) fn day(time: &str) -> Option<f64> {
    time.parse().ok().map(day_of)
}

/// The same for a time that is none of a text.
pub(super) fn day_of(time: Timestamp) -> f64 {
    time.as_second() as f64 / 86_400.0
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

/// What decides a match, in a sentence.
pub(super) fn rule(info: &MatchInfo) -> String {
    match &info.rule {
        _ if info.purpose == MatchPurpose::Rating => format!(
            "Rating match of {}: it adds to the ratings and changes no network's status.",
            counted(info.pair_limit, "pair")
        ),
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
                "Sequential probability ratio test on pairs of games: {}, error rates {} and {}; at most {}, {end}.",
                hypotheses(params),
                params.alpha,
                params.beta,
                counted(*max_pairs, "pair"),
            )
        }
        GateRule::Fixed { games, threshold } => format!(
            "{}; the candidate needs more than {} % of the points.",
            counted(*games, "game"),
            exact(100.0 * threshold)
        ),
        GateRule::None => "No gate: every candidate is promoted.".to_owned(),
    }
}

/// What a sequential test distinguishes: `−1.75 against 0.25 normalised Elo`.
fn hypotheses(params: &SprtParams) -> String {
    let model = match params.model {
        EloModel::Logistic => "logistic",
        EloModel::Normalised => "normalised",
    };
    let (low, high) = (exact(params.elo0), exact(params.elo1));
    format!("{low} against {high} {model} Elo")
}

/// A likelihood in percent, never one of certainty.
pub(super) fn likelihood(n: f64) -> String {
    match n {
        n if n > 0.999 => "> 99.9\u{a0}%".to_owned(),
        n if n < 0.001 => "< 0.1\u{a0}%".to_owned(),
        n => format!("{:.1}\u{a0}%", 100.0 * n),
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
        assert_eq!(
            [exact(-1.75), exact(0.25), exact(60.0)],
            ["−1.75", "0.25", "60"]
        );
        assert_eq!([exact(0.1 + 0.2), exact(-0.0)], ["0.3", "0"]);
        assert_eq!(
            [counted(1_u64, "pair"), counted(20_u64, "pair")],
            ["1 pair", "20 pairs"]
        );
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
    fn no_likelihood_is_certain() {
        let texts = [1.0, 0.9991, 0.999, 0.5, 0.0].map(likelihood);
        let expected = ["> 99.9", "> 99.9", "99.9", "50.0", "< 0.1"];
        assert_eq!(texts, expected.map(|text| format!("{text}\u{a0}%")));
    }

    #[test]
    fn shares_of_few_are_known_less_well() {
        let half = |of, whole| {
            let (low, high) = share_interval(of, whole);
            (high - low) / 2.0
        };
        assert!((16.0..17.0).contains(&half(15, 32)), "{}", half(15, 32));
        assert!((1.6..1.8).contains(&half(1_680, 3_360)));
        assert_eq!(share_interval(0, 0), (0.0, 100.0));
        let (low, high) = share_interval(0, 10);
        assert!(low == 0.0 && (25.0..30.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn tests_are_told_with_their_bounds_and_their_scale() {
        let params = |model| SprtParams {
            elo0: -1.75,
            elo1: 0.25,
            alpha: 0.05,
            beta: 0.05,
            model,
        };
        for (model, name) in [
            (EloModel::Logistic, "logistic"),
            (EloModel::Normalised, "normalised"),
        ] {
            let told = hypotheses(&params(model));
            assert_eq!(told, format!("−1.75 against 0.25 {name} Elo"));
        }
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

    #[test]
    fn minutes_are_written_in_utc() {
        assert_eq!(
            minute("2030-01-31T20:05:59.5+02:00"),
            "2030-01-31 18:05 UTC"
        );
        assert_eq!(minute("yesterday"), "yesterday");
    }
}
