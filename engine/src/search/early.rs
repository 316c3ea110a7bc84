//! Ending a search before its visits are spent.
//!
//! Only PUCT roots end early: sequential halving has a plan for all of its visits.

use rookery_common::params::{KldStop, RootSearch};

use super::{Budget, Purpose};
use crate::tree::Tree;

/// What is remembered from one look at the root's visits to the next.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// How many visits there must be before the next look is worth its time.
    next: u32,
    /// Visits of each of the root's moves when their distribution was last measured; none yet if
    /// it is empty.
    measured: Vec<u32>,
    /// Their sum, or 0.
    measured_at: u32,
}

impl Watch {
    /// Begins with another search.
    pub(super) fn begin(&mut self) {
        self.next = 0;
        self.measured.clear();
        self.measured_at = 0;
    }

    /// Whether a search with `spent` visits of its root's moves has done enough.
    pub(super) fn is_enough(&mut self, tree: &Tree, spent: u32, budget: &Budget<'_>) -> bool {
        if spent < self.next {
            return false;
        }
        let params = &budget.settings.params;
        self.next = u32::MAX;
        if params.root != RootSearch::Puct {
            return false;
        }
        let decided = params.stop_when_decided && budget.purpose == Purpose::Move;
        (decided && self.is_decided(tree, spent, budget.visits))
            || (params.kld_stop.as_ref()).is_some_and(|stop| self.is_settled(tree, spent, stop))
    }

    /// Whether the move with most visits will have most visits whatever the remaining ones do.
    fn is_decided(&mut self, tree: &Tree, spent: u32, visits: u32) -> bool {
        let (mut most, mut second) = (0, 0);
        for visits in tree.child_visits() {
            if visits > most {
                (most, second) = (visits, most);
            } else {
                second = second.max(visits);
            }
        }
        let (lead, left) = (most - second, visits - spent);
        // Each visit makes the lead larger by one at most, and what is left smaller by one.
        self.look_at(spent + left.saturating_sub(lead) / 2 + 1);
        lead > left
    }

    /// Lc0's `KldGainStopper`: whether the divergence of the distribution of visits from the one an
    /// interval before, for each visit in between, is below the least gain.
    fn is_settled(&mut self, tree: &Tree, spent: u32, stop: &KldStop) -> bool {
        let due = self.measured_at.saturating_add(stop.interval);
        if spent < due {
            self.look_at(due);
            return false;
        }
        let settled = !self.measured.is_empty()
            && self.gain(tree, spent) / f64::from(spent - self.measured_at)
                < f64::from(stop.minimum_gain);
        self.measured.clear();
        self.measured.extend(tree.child_visits());
        self.measured_at = spent;
        self.look_at(spent.saturating_add(stop.interval));
        settled
    }

    /// The divergence from the measured distribution to the present one, in nats.
    fn gain(&self, tree: &Tree, spent: u32) -> f64 {
        let pairs = self.measured.iter().zip(tree.child_visits());
        let visited = pairs.filter(|(before, _)| **before > 0);
        visited
            .map(|(before, now)| {
                let before = f64::from(*before) / f64::from(self.measured_at);
                before * (before * f64::from(spent) / f64::from(now)).ln()
            })
            .sum()
    }

    fn look_at(&mut self, visits: u32) {
        self.next = self.next.min(visits);
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::params::{Noise, SearchParams};

    use super::*;
    use crate::evaluator::Wdl;
    use crate::search::testing::{Outcome, position_set, search_with};
    use crate::search::{Exploration, Settings, testing};

    fn decided(visits: u32) -> SearchParams {
        SearchParams {
            visits,
            noise: None,
            stop_when_decided: true,
            ..SearchParams::default()
        }
    }

    #[test]
    fn a_decided_search_plays_the_same_move_with_fewer_visits() {
        let (mut full, mut early) = (0, 0);
        for game in position_set() {
            let all = search_with(&game, &decided(200), Purpose::Target, Exploration::Plain);
            let some = search_with(&game, &decided(200), Purpose::Move, Exploration::Plain);
            assert_eq!(
                all.visits.iter().sum::<u32>(),
                200,
                "a target is searched in full"
            );
            assert_eq!(some.best, all.best);
            let second = |outcome: &Outcome| {
                let mut visits = outcome.visits.clone();
                visits.sort_unstable();
                visits.iter().rev().nth(1).copied().unwrap_or_default()
            };
            let spent: u32 = some.visits.iter().sum();
            let most = some.visits.iter().max().unwrap();
            if spent < 200 {
                let ahead = most - second(&some) - (200 - spent);
                assert!(
                    (1..=2).contains(&ahead),
                    "it stops as soon as it may: {ahead}"
                );
            }
            full += 200;
            early += spent;
        }
        assert!(early < full * 95 / 100, "{early} of {full}");
    }

    #[test]
    fn the_divergence_is_as_computed_by_hand() {
        let settings = Settings::new(&SearchParams {
            visits: 1000,
            kld_stop: Some(KldStop {
                minimum_gain: 0.001,
                interval: 10,
            }),
            ..SearchParams::default()
        });
        let budget = testing::budget(&settings, Purpose::Target, Exploration::Plain);
        let tree = |visits: [u32; 3]| testing::tree(visits.map(|visits| (visits, Wdl::DRAW.q())));
        let mut watch = Watch::default();
        assert!(!watch.is_enough(&tree([5, 4, 0]), 9, &budget), "too early");
        assert!(
            !watch.is_enough(&tree([6, 4, 0]), 10, &budget),
            "nothing to compare with"
        );
        assert!(
            !watch.is_enough(&tree([12, 7, 0]), 19, &budget),
            "between two looks"
        );
        // 0.6 ln(0.6 / 0.65) + 0.4 ln(0.4 / 0.35) = 0.005387; over ten visits less than 0.001.
        let mut settled = Watch {
            measured: watch.measured.clone(),
            ..watch
        };
        assert!(settled.is_enough(&tree([13, 7, 0]), 20, &budget));
        // 0.6 ln(0.6 / 0.5) + 0.4 ln(0.4 / 0.3) = 0.224466; over ten visits more than that.
        assert!(!watch.is_enough(&tree([10, 6, 4]), 20, &budget));
        assert_eq!(
            (watch.measured.as_slice(), watch.measured_at),
            (&[10, 6, 4][..], 20)
        );
    }

    #[test]
    fn a_search_whose_visits_do_not_move_any_more_ends() {
        let stop = |minimum_gain| SearchParams {
            visits: 800,
            noise: Some(Noise::default()),
            kld_stop: Some(KldStop {
                minimum_gain,
                interval: 50,
            }),
            ..SearchParams::default()
        };
        let spent = |gain| -> Vec<u32> {
            position_set()
                .iter()
                .map(|game| search_with(game, &stop(gain), Purpose::Target, Exploration::Noisy))
                .map(|outcome| outcome.visits.iter().sum())
                .collect()
        };
        assert!(spent(0.0).iter().all(|visits| *visits == 800));
        let (loose, tight) = (spent(1e-3), spent(1e-5));
        assert!(
            loose
                .iter()
                .all(|visits| *visits >= 100 && visits % 50 == 0)
        );
        assert!(loose.iter().sum::<u32>() < tight.iter().sum());
        assert!(tight.iter().sum::<u32>() < 800 * tight.len() as u32);
    }
}
