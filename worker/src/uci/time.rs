//! How long to think.

use std::time::Duration;

use shakmaty::Color;

use super::command::{Clock, Go};

/// Moves for which the time left must last where the GUI does not say.
const HORIZON: u32 = 30;
/// Moves that a game may still take.
const LONG_GAME: u32 = 100;
/// Of the increment, what is spent with each move.
const INCREMENT_SHARE: f64 = 0.5;
/// Most of the time left that one move may take.
const MOST_OF_CLOCK: f64 = 0.3;
/// How much longer than planned a move may take where the search is undecided.
const STRETCH: f64 = 2.5;

/// What is not there to think with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Margins {
    /// Stays on the clock whatever happens.
    pub(super) overhead: Duration,
    /// Is lost with every move.
    pub(super) lag: Duration,
}

/// The clock of `mover`; a GUI that sends one clock only means both.
pub(super) fn clock_of(go: &Go, mover: Color) -> Clock {
    let (own, other) = mover.fold_wb((go.white, go.black), (go.black, go.white));
    if own.left.is_some() { own } else { other }
}

/// Time for one move, counted from when the clock began to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeBudget {
    /// Planned: think so long unless there is a reason not to.
    pub(super) planned: Duration,
    /// Never longer than this.
    pub(super) most: Duration,
    /// Whether to move sooner where nothing can change any more: saved time is kept.
    pub(super) thrifty: bool,
}

impl TimeBudget {
    /// The time that the limits of `go` give to `mover`; none if they do not limit it.
    pub(super) fn of(go: &Go, mover: Color, margins: Margins) -> Option<Self> {
        if let Some(time) = go.move_time {
            let time = time.saturating_sub(margins.overhead.min(time / 2));
            return Some(Self {
                planned: time,
                most: time,
                thrifty: false,
            });
        }
        let clock = clock_of(go, mover);
        let left = clock.left?;
        Some(Self::of_clock(
            left,
            clock.increment,
            go.moves_to_go,
            margins,
        ))
    }

    fn of_clock(
        left: Duration,
        increment: Duration,
        moves_to_go: Option<u32>,
        margins: Margins,
    ) -> Self {
        let usable = left.saturating_sub(margins.overhead);
        let moves = moves_to_go.unwrap_or(HORIZON).clamp(1, HORIZON);
        // The last move before more time is added may take nearly all.
        let most_of_clock = if moves == 1 { 0.8 } else { MOST_OF_CLOCK };
        let gain = increment.saturating_sub(margins.lag);
        let loss = margins.lag.saturating_sub(increment);
        // What many more moves will lose is spent already, but for half of the clock.
        let lost = (loss * LONG_GAME).min(usable / 2);
        let planned = (usable - lost) / moves + gain.mul_f64(INCREMENT_SHARE);
        let most = usable.mul_f64(most_of_clock);
        Self {
            planned: planned.min(most),
            most: planned.mul_f64(STRETCH).min(most),
            thrifty: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lag::Lag;
    use super::*;

    const MARGINS: Margins = Margins {
        overhead: Duration::from_millis(100),
        lag: Duration::ZERO,
    };

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn clock(left: u64, increment: u64) -> Go {
        let clock = Clock {
            left: Some(ms(left)),
            increment: ms(increment),
        };
        Go {
            white: clock,
            black: Clock {
                left: Some(ms(1)),
                ..clock
            },
            ..Go::default()
        }
    }

    fn budget(go: &Go) -> TimeBudget {
        TimeBudget::of(go, Color::White, MARGINS).unwrap()
    }

    /// A game in which every move takes as long as allowed, and `lost` on the way.
    fn plays_without_losing(left: u64, increment: u64, lost: Duration, moves: usize) {
        let (mut left, mut lag) = (ms(left), Lag::default());
        for number in 0..moves {
            let go = clock(left.as_millis() as u64, increment);
            lag.asked(2 * number, go.white);
            let margins = lag.margins(MARGINS.overhead);
            let thought = TimeBudget::of(&go, Color::White, margins).unwrap().most;
            lag.answered(2 * number, go.white, thought, Some(thought));
            let used = thought + lost;
            assert!(used < left, "move {number}: {used:?} of {left:?}");
            left = left - used + ms(increment);
        }
    }

    #[test]
    fn no_game_is_lost_on_time() {
        plays_without_losing(1000, 10, ms(8), 300);
        plays_without_losing(1000, 10, ms(13), 80);
        plays_without_losing(60_000, 0, ms(1), 90);
        plays_without_losing(10_000, 100, ms(50), 300);
        plays_without_losing(3000, 2000, ms(99), 300);
    }

    #[test]
    fn a_clock_that_is_nearly_empty_leaves_nothing_to_plan() {
        for left in [0, 1, 50, 100] {
            assert_eq!(budget(&clock(left, 10)).most, Duration::ZERO);
        }
    }

    #[test]
    fn the_own_clock_counts() {
        let go = clock(60_000, 0);
        let black = TimeBudget::of(&go, Color::Black, MARGINS).unwrap();
        assert_eq!(black.most, Duration::ZERO);
        assert!(budget(&go).planned > ms(1500));
        let one = Go {
            white: go.white,
            ..Go::default()
        };
        assert_eq!(
            TimeBudget::of(&one, Color::Black, MARGINS),
            Some(budget(&go))
        );
        assert_eq!(TimeBudget::of(&Go::default(), Color::White, MARGINS), None);
    }

    #[test]
    fn more_moves_to_go_mean_less_time_for_each() {
        let with = |moves| {
            let go = Go {
                moves_to_go: Some(moves),
                ..clock(60_000, 0)
            };
            budget(&go)
        };
        assert!(with(20).planned < with(10).planned);
        assert!(with(10).planned < with(1).planned);
        assert!(with(1).most < ms(59_900));
        assert_eq!(with(40), budget(&clock(60_000, 0)));
    }

    #[test]
    fn a_time_for_the_move_is_used_but_for_the_overhead() {
        let time = |time| {
            budget(&Go {
                move_time: Some(time),
                ..clock(5, 0)
            })
        };
        assert_eq!(
            (time(ms(1000)).most, time(ms(1000)).thrifty),
            (ms(900), false)
        );
        assert_eq!(
            time(ms(10)).most,
            ms(5),
            "half of what is less than the overhead"
        );
    }
}
