//! Axes: scales, and round numbers along them.

use jiff::Timestamp;

use super::drawing::Tick;
use crate::pages::text;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Axis {
    #[default]
    Whole,
    Real,
    /// Days since 1970, written as dates, or as times where a day is long.
    Days,
    /// Whole days since 1970, written as dates.
    Dates,
}

/// A linear map from data to the drawing.
pub(super) struct Scale {
    from: f64,
    factor: f64,
    to: f64,
}

impl Scale {
    pub(super) fn new((low, high): (f64, f64), start: f64, end: f64) -> Self {
        if high > low {
            Self {
                from: low,
                factor: (end - start) / (high - low),
                to: start,
            }
        } else {
            Self {
                from: low,
                factor: 0.0,
                to: f64::midpoint(start, end),
            }
        }
    }

    pub(super) fn at(&self, n: f64) -> f64 {
        // A tenth of a unit is finer than a pixel.
        ((self.to + (n - self.from) * self.factor) * 10.0).round() / 10.0
    }
}

/// Round numbers along an axis.
pub(super) struct Ticks {
    values: Vec<f64>,
    step: f64,
    /// What they cover.
    pub(super) range: (f64, f64),
    axis: Axis,
}

impl Ticks {
    /// Round numbers whose ends hold the range.
    pub(super) fn covering((low, high): (f64, f64), count: usize, axis: Axis) -> Self {
        let margin = if high > low {
            0.0
        } else {
            high.abs().max(1.0) * 0.1
        };
        let step = round_step((high - low + 2.0 * margin) / count as f64, axis);
        let first = ((low - margin) / step).floor();
        let last = ((high + margin) / step).ceil();
        let values = (0..=(last - first) as u32)
            .map(|n| (first + f64::from(n)) * step)
            .collect();
        Self {
            values,
            step,
            range: (first * step, last * step),
            axis,
        }
    }

    /// The round numbers inside the range.
    pub(super) fn within(range: (f64, f64), count: usize, axis: Axis) -> Self {
        let mut ticks = Self::covering(range, count, axis);
        ticks.values.retain(|n| (range.0..=range.1).contains(n));
        ticks
    }

    pub(super) fn at(&self, scale: &Scale) -> Vec<Tick> {
        let tick = |n: &f64| Tick {
            at: scale.at(*n),
            label: match self.axis {
                Axis::Days | Axis::Dates => day_label(*n, self.step, self.range),
                Axis::Whole | Axis::Real => tick_label(*n, self.step),
            },
        };
        self.values.iter().map(tick).collect()
    }
}

/// Steps on an axis of days that are shorter than one, in minutes.
const MINUTES: [f64; 8] = [1.0, 5.0, 10.0, 30.0, 60.0, 180.0, 360.0, 720.0];
/// Minutes of a day.
const DAY: f64 = 1_440.0;
/// Least gap between two numbers of an axis. Powers of ten far below it are 0, and gaps of 0 are without number.
const FINEST: f64 = 1e-15;

/// The smallest of 1, 2, 5, 10, 20, … (or tenths of these) that is not below `raw`; of days also some whole
/// minutes.
fn round_step(raw: f64, axis: Axis) -> f64 {
    let raw = if raw.is_finite() && raw > 0.0 {
        raw.max(FINEST)
    } else {
        1.0
    };
    if axis == Axis::Days
        && let Some(minutes) = MINUTES.into_iter().find(|minutes| *minutes >= DAY * raw)
    {
        return minutes / DAY;
    }
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|n| n * power)
        .find(|step| *step >= raw);
    let step = step.unwrap_or(10.0 * power);
    match axis {
        Axis::Whole | Axis::Days | Axis::Dates => step.max(1.0),
        Axis::Real => step,
    }
}

/// An axis over more days names the year of each.
const SAME_YEAR: f64 = 300.0;

/// The date of a day since 1970, or the time in it between two dates; nothing where there is none.
fn day_label(day: f64, step: f64, range: (f64, f64)) -> String {
    let minute = (day * DAY).round() as i64;
    let date = Timestamp::from_second(minute.saturating_mul(60));
    let form = if step < 1.0 && minute.rem_euclid(DAY as i64) != 0 {
        "%H:%M"
    } else if range.1 - range.0 > SAME_YEAR {
        "%-d %b %Y"
    } else {
        "%-d %b"
    };
    date.map_or_else(|_| String::new(), |date| date.strftime(form).to_string())
}

fn tick_label(n: f64, step: f64) -> String {
    let magnitude = n.abs();
    if step >= 1e9 || (step < 1e-6 && n != 0.0) {
        return format!("{n:.1e}");
    }
    if step >= 1e5 && magnitude >= 1e6 {
        let digits = usize::from(step < 1e6);
        return format!("{}M", text::decimal(n / 1e6, digits));
    }
    if step >= 1_000.0 && magnitude >= 10_000.0 {
        return format!("{}k", text::decimal(n / 1_000.0, 0));
    }
    let digits = (-step.log10().floor()).max(0.0) as usize;
    text::decimal(n, digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, axis: Axis) -> Vec<String> {
        let ticks = Ticks::covering((low, high), 5, axis);
        ticks
            .at(&Scale::new(ticks.range, 0.0, 100.0))
            .into_iter()
            .map(|t| t.label)
            .collect()
    }

    /// A trainer reports what it likes, and a page with a million numbers on its axis ends the program.
    #[test]
    fn no_axis_has_many_numbers() {
        let tiny = f64::from_bits(1);
        let ends = [
            0.0,
            tiny,
            3.0 * tiny,
            1e-308,
            1e-15,
            1e-9,
            0.1,
            1.0,
            1e6,
            1e12,
        ];
        let ends = || ends.into_iter().flat_map(|end| [-end, end]);
        for (low, high) in ends().flat_map(|low| ends().map(move |high| (low, high))) {
            for axis in [Axis::Real, Axis::Whole, Axis::Days, Axis::Dates] {
                if low <= high {
                    let labels = labels(low, high, axis);
                    assert!((1..=12).contains(&labels.len()), "{low} {high}: {labels:?}");
                }
            }
        }
    }

    #[test]
    fn axes_carry_round_numbers() {
        assert_eq!(
            labels(-13.0, 187.0, Axis::Real),
            ["−50", "0", "50", "100", "150", "200"]
        );
        assert_eq!(labels(0.0, 3.0, Axis::Whole), ["0", "1", "2", "3"]);
        assert_eq!(
            labels(0.61, 0.97, Axis::Real),
            ["0.6", "0.7", "0.8", "0.9", "1.0"]
        );
        // 20,000 days after 1970 began 4 October 2024.
        assert_eq!(
            labels(20_000.0, 20_004.0, Axis::Days),
            ["4 Oct", "5 Oct", "6 Oct", "7 Oct", "8 Oct"]
        );
        assert_eq!(
            labels(20_000.0, 20_001.0, Axis::Days),
            ["4 Oct", "06:00", "12:00", "18:00", "5 Oct"]
        );
        assert_eq!(labels(20_000.0, 20_001.0, Axis::Dates), ["4 Oct", "5 Oct"]);
        assert_eq!(
            labels(20_000.0, 20_800.0, Axis::Days),
            [
                "4 Oct 2024",
                "22 Apr 2025",
                "8 Nov 2025",
                "27 May 2026",
                "13 Dec 2026"
            ]
        );
        assert_eq!(labels(1e12, 1e12, Axis::Days)[0], "", "no such day");
        assert_eq!(
            labels(0.0, 2e6, Axis::Whole),
            ["0", "500k", "1.0M", "1.5M", "2.0M"]
        );
        assert_eq!(
            labels(0.0, 2e7, Axis::Whole),
            ["0", "5M", "10M", "15M", "20M"]
        );
        assert_eq!(
            labels(0.0, 60_000.0, Axis::Whole),
            ["0", "20k", "40k", "60k"]
        );
    }
}
