//! When a search ends.

use std::time::Duration;

use rookery_engine::search::{BestMoveMargin, SearchStats};
use shakmaty::Color;

use super::command::Go;
use super::time::{Margins, TimeBudget};

/// Everything that may end one search, but for `stop`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limits {
    /// Visits of the root.
    pub(super) nodes: Option<u32>,
    depth: Option<u32>,
    mate: Option<i32>,
    /// Visits of this search, the tree's earlier ones not counted.
    new_visits: Option<u64>,
    time: Option<TimeBudget>,
    /// Only the GUI ends it.
    endless: bool,
}

/// What the decision to move rests on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Since the clock began to run; none while it does not (pondering).
    pub(super) clock: Option<Duration>,
    /// Visits of this search for each second.
    pub(super) speed: f64,
    /// How long the next batch will take.
    pub(super) next_batch: Duration,
    /// Where the search stands.
    pub(super) stats: SearchStats,
    /// How far the best move is ahead.
    pub(super) lead: BestMoveMargin,
    /// Whether visits and values name the same best move.
    pub(super) settled: bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Search on.
    Continue,
    /// Enough was searched: move as soon as the GUI allows.
    Enough,
}

/// Visits for each move of a mate that nothing else limits the search for: there may be none.
const VISITS_PER_MATE_MOVE: u64 = 100_000;
/// The share of the planned time in which nothing is decided from speed: it is not known yet.
const WARM_UP: u32 = 8;
/// How many times more visits than expected may come, before a lead counts as safe.
const SAFETY: f64 = 1.2;

impl Limits {
    pub(super) fn of(go: &Go, mover: Color, margins: Margins) -> Self {
        let time = if go.infinite {
            None
        } else {
            TimeBudget::of(go, mover, margins)
        };
        let bounded = time.is_some() || go.nodes.is_some() || go.depth.is_some();
        let mate = go.mate.filter(|_| !bounded && !go.infinite);
        Self {
            nodes: go.nodes,
            depth: go.depth,
            mate: go
                .mate
                .map(|moves| i32::try_from(moves).unwrap_or(i32::MAX)),
            new_visits: mate.map(|moves| u64::from(moves.max(1)) * VISITS_PER_MATE_MOVE),
            endless: go.infinite || (!bounded && go.mate.is_none()),
            time,
        }
    }

    /// The same without moving sooner where nothing can change any more.
    pub(super) fn using_all_time(mut self) -> Self {
        if let Some(time) = &mut self.time {
            time.thrifty = false;
        }
        self
    }

    /// Whether only the GUI ends the search.
    pub(super) const fn is_endless(&self) -> bool {
        self.endless
    }

    /// The longest time that may be used, if it is limited.
    pub(super) fn longest(&self) -> Option<Duration> {
        Some(self.time?.most)
    }

    /// The time that may still be used, if it is limited and the clock runs.
    pub(super) fn time_left(&self, clock: Option<Duration>) -> Option<Duration> {
        Some(self.time?.most.saturating_sub(clock?))
    }

    /// Whether to go on.
    pub(super) fn verdict(&self, progress: &Progress) -> Verdict {
        let stats = &progress.stats;
        let reached = self.nodes.is_some_and(|nodes| stats.visits >= nodes)
            || self.depth.is_some_and(|depth| stats.depth >= depth)
            || self
                .new_visits
                .is_some_and(|visits| stats.new_visits >= visits)
            || self.is_mate_found(stats)
            || self.has_converged(stats)
            || self.is_time_up(progress);
        if reached {
            Verdict::Enough
        } else {
            Verdict::Continue
        }
    }

    /// Searches for a mate and those that the GUI ends do not stop at convergence.
    const fn has_converged(&self, stats: &SearchStats) -> bool {
        stats.kld_converged && !self.endless && self.mate.is_none()
    }

    fn is_mate_found(&self, stats: &SearchStats) -> bool {
        let mate = self.mate.zip(stats.mate);
        mate.is_some_and(|(wanted, found)| found > 0 && found <= wanted)
    }

    fn is_time_up(&self, progress: &Progress) -> bool {
        let Some((budget, elapsed)) = self.time.zip(progress.clock) else {
            return false;
        };
        let after_next = elapsed + progress.next_batch;
        let planned = if progress.settled {
            budget.planned
        } else {
            budget.most
        };
        if after_next > planned {
            return true;
        }
        budget.thrifty
            && match progress.lead {
                BestMoveMargin::Decided => true,
                BestMoveMargin::Visits(lead) => {
                    let left = planned.saturating_sub(elapsed).as_secs_f64();
                    let known = elapsed > budget.planned / WARM_UP;
                    known && f64::from(lead) > left * progress.speed * SAFETY
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Command;
    use super::*;

    const MARGINS: Margins = Margins {
        overhead: Duration::from_millis(100),
        lag: Duration::ZERO,
    };

    fn limits(line: &str) -> Limits {
        match Command::parse(line) {
            Command::Go(go) => Limits::of(&go, Color::White, MARGINS),
            other => panic!("{other:?}"),
        }
    }

    /// A search that is undecided, `elapsed` milliseconds on the clock.
    fn progress(elapsed: u64) -> Progress {
        Progress {
            clock: Some(Duration::from_millis(elapsed)),
            speed: 1000.0,
            next_batch: Duration::from_millis(1),
            stats: SearchStats {
                depth: 5,
                deepest: 9,
                visits: 500,
                new_visits: 400,
                table_hits: 0,
                fullness: 0.1,
                mate: None,
                kld_converged: false,
            },
            lead: BestMoveMargin::Visits(0),
            settled: true,
        }
    }

    fn ends(line: &str, progress: &Progress) -> bool {
        limits(line).verdict(progress) == Verdict::Enough
    }

    #[test]
    fn nodes_and_depth_end_a_search() {
        assert!(ends("go nodes 500", &progress(0)) && !ends("go nodes 501", &progress(0)));
        assert!(ends("go depth 5", &progress(0)) && !ends("go depth 6", &progress(0)));
        for endless in ["go", "go infinite", "go infinite wtime 1 btime 1"] {
            assert!(limits(endless).is_endless() && !ends(endless, &progress(1_000_000)));
        }
    }

    #[test]
    fn a_mate_of_the_length_asked_for_ends_a_search() {
        let found = |mate| Progress {
            stats: SearchStats {
                mate: Some(mate),
                ..progress(0).stats
            },
            ..progress(0)
        };
        assert!(ends("go mate 3", &found(3)) && ends("go mate 3", &found(1)));
        assert!(!ends("go mate 3", &found(4)) && !ends("go mate 3", &found(-2)));
        assert!(!limits("go mate 3").is_endless());
    }

    #[test]
    fn a_search_for_a_mate_that_is_not_there_ends() {
        let after = |new_visits| Progress {
            stats: SearchStats {
                new_visits,
                ..progress(0).stats
            },
            ..progress(0)
        };
        assert!(!ends("go mate 3", &after(299_999)) && ends("go mate 3", &after(300_000)));
        assert!(!ends("go mate 0", &after(99_999)) && ends("go mate 0", &after(100_000)));
        for more in ["nodes 900000", "depth 40", "movetime 60000", "infinite"] {
            let line = format!("go mate 3 {more}");
            assert!(!ends(&line, &after(300_000)), "{line}");
        }
    }

    #[test]
    fn time_ends_a_search_before_the_batch_that_would_be_late() {
        assert!(!ends("go movetime 1000", &progress(898)));
        assert!(ends("go movetime 1000", &progress(900)));
        let slow = Progress {
            next_batch: Duration::from_millis(300),
            ..progress(601)
        };
        assert!(ends("go movetime 1000", &slow));
        let pondering = Progress {
            clock: None,
            ..progress(0)
        };
        assert!(!ends("go movetime 1", &pondering));
    }

    #[test]
    fn an_unsettled_search_gets_more_time() {
        // 59.9 s for 30 moves: 1997 ms planned, 4992 ms at most.
        let at = |elapsed, settled| Progress {
            settled,
            ..progress(elapsed)
        };
        let clock = "go wtime 60000 btime 60000";
        assert!(!ends(clock, &at(1900, true)) && ends(clock, &at(2000, true)));
        assert!(!ends(clock, &at(2000, false)) && ends(clock, &at(5000, false)));
    }

    #[test]
    fn a_lead_that_cannot_be_made_up_ends_a_search_on_the_clock() {
        let clock = "go wtime 60000 btime 60000";
        let leads = |lead| Progress {
            lead,
            ..progress(1000)
        };
        // 997 ms are left at 1000 visits a second.
        assert!(!ends(clock, &leads(BestMoveMargin::Visits(1000))));
        assert!(ends(clock, &leads(BestMoveMargin::Visits(1300))));
        assert!(ends(clock, &leads(BestMoveMargin::Decided)));
        assert!(!ends(
            "go movetime 60000",
            &leads(BestMoveMargin::Visits(100_000))
        ));
        let early = Progress {
            clock: Some(Duration::from_millis(10)),
            ..leads(BestMoveMargin::Visits(100_000))
        };
        assert!(!ends(clock, &early), "the speed is not known yet");
    }

    #[test]
    fn all_time_is_used_where_the_user_wants_no_pruning() {
        let decided = Progress {
            lead: BestMoveMargin::Decided,
            ..progress(1000)
        };
        let all = limits("go wtime 60000 btime 60000").using_all_time();
        assert_eq!(all.verdict(&decided), Verdict::Continue);
        assert_eq!(all.verdict(&progress(2000)), Verdict::Enough);
    }

    #[test]
    fn a_calm_search_ends_unless_it_is_for_a_mate_or_the_gui_ends_it() {
        let calm = Progress {
            stats: SearchStats {
                kld_converged: true,
                ..progress(0).stats
            },
            ..progress(0)
        };
        for line in [
            "go nodes 900",
            "go movetime 60000",
            "go wtime 60000",
            "go depth 40",
        ] {
            assert!(ends(line, &calm) && !ends(line, &progress(0)), "{line}");
        }
        for line in ["go infinite", "go", "go mate 3", "go mate 3 nodes 900"] {
            assert!(!ends(line, &calm), "{line}");
        }
    }
}
