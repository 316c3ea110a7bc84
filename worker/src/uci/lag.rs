//! What a move costs on the clock beyond the time for which this program thinks.
//!
//! Pipes, networks, interfaces and busy machines take their share of every move. Where that is more
//! than the increment, a game can only be held by thinking less, and the sooner that is known the
//! better. A machine that is busy with something else also stops this program in mid-thought: the
//! worst of that is remembered for a while and kept on the clock.

use std::time::Duration;

use super::command::Clock;
use super::time::Margins;

/// What is assumed before anything was measured.
const GUESS: Duration = Duration::from_millis(10);
/// Weight of a new measurement.
const LEARNING: f64 = 0.25;
/// How much of the worst overrun is still expected a move later.
const MEMORY: f64 = 0.97;
/// Longer than this is no lag: the clock was set, or another game began.
const LONGEST: Duration = Duration::from_secs(2);

/// More than this is no reason to keep back more.
const LONGEST_OVERRUN: Duration = Duration::from_millis(500);

/// The lag so far.
#[derive(Debug, Clone)]
pub(super) struct Lag {
    mean: Duration,
    /// By how much a move took longer than allowed, here or on the way.
    overrun: Duration,
    last: Option<Answered>,
}

/// A move that was made.
#[derive(Debug, Clone, Copy)]
struct Answered {
    plies: usize,
    left: Duration,
    thought: Duration,
}

impl Default for Lag {
    fn default() -> Self {
        Self {
            mean: GUESS,
            overrun: Duration::ZERO,
            last: None,
        }
    }
}

impl Lag {
    /// What to keep back, `overhead` being what the user wants.
    pub(super) fn margins(&self, overhead: Duration) -> Margins {
        Margins {
            overhead: overhead + self.overrun,
            lag: self.mean,
        }
    }

    /// The next move is of another game.
    pub(super) fn forget_game(&mut self) {
        self.last = None;
    }

    /// Looks at the clock when a move is asked for, `plies` after the game's start.
    pub(super) fn asked(&mut self, plies: usize, clock: Clock) {
        let (Some(last), Some(left)) = (self.last.take(), clock.left) else {
            return;
        };
        let gone = (last.left + clock.increment).checked_sub(left);
        let lag = gone.and_then(|gone| gone.checked_sub(last.thought));
        if let Some(lag) = lag.filter(|lag| plies == last.plies + 2 && *lag < LONGEST) {
            self.mean = self.mean.mul_f64(1.0 - LEARNING) + lag.mul_f64(LEARNING);
            self.overrun = self.overrun.max(lag.min(LONGEST_OVERRUN));
        }
    }

    /// Remembers the time that the move took, `longest` being allowed.
    pub(super) fn answered(
        &mut self,
        plies: usize,
        clock: Clock,
        thought: Duration,
        longest: Option<Duration>,
    ) {
        let over = longest.map_or(Duration::ZERO, |longest| thought.saturating_sub(longest));
        let over = over.min(LONGEST_OVERRUN);
        self.overrun = self.overrun.mul_f64(MEMORY).max(over);
        self.last = clock.left.map(|left| Answered {
            plies,
            left,
            thought,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn clock(left: u32) -> Clock {
        Clock {
            left: Some(left * MS),
            increment: 10 * MS,
        }
    }

    #[test]
    fn what_the_clock_lost_beyond_thought_is_learnt() {
        let mut lag = Lag::default();
        let mut left = 5000;
        for number in 0..40 {
            lag.asked(2 * number, clock(left));
            lag.answered(2 * number, clock(left), 20 * MS, None);
            // 20 ms of thought, 30 ms lost, 10 ms added.
            left -= 40;
        }
        assert!((29 * MS..31 * MS).contains(&lag.margins(MS).lag), "{lag:?}");
    }

    #[test]
    fn another_game_and_a_clock_that_was_set_teach_nothing() {
        let mut lag = Lag::default();
        for (plies, left) in [(10, 900), (12, 60_000), (14, 100), (15, 50), (0, 40)] {
            lag.asked(plies, clock(left));
            lag.answered(plies, clock(left), MS, None);
            assert_eq!(lag.margins(MS).lag, GUESS, "{plies} {left}");
        }
        lag.asked(2, Clock::default());
        assert_eq!(lag.margins(MS).lag, GUESS);
    }

    #[test]
    fn an_overrun_is_kept_on_the_clock_for_a_while() {
        let mut lag = Lag::default();
        lag.answered(0, clock(900), 250 * MS, Some(50 * MS));
        assert_eq!(lag.margins(100 * MS).overhead, 300 * MS);
        for plies in 1..100 {
            lag.answered(plies, clock(900), 10 * MS, Some(50 * MS));
        }
        assert!(lag.margins(100 * MS).overhead < 120 * MS);
    }
}
