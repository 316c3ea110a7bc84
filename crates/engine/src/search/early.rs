//! Ending a search before its visits are spent.
//!
//! Only PUCT roots end early: sequential halving has a plan for all of its visits.

use rookery_common::params::{KldStop, RootSearch};

use super::divergence::Divergence;
use super::{Budget, Purpose};
use crate::tree::Tree;

/// What is remembered from one look at the root's visits to the next.
#[derive(Debug, Default)]
pub(super) struct EarlyStop {
    /// How many visits there must be before the next look is worth its time.
    next: u32,
    divergence: Divergence,
}

impl EarlyStop {
    /// Begins with another search.
    pub(super) fn begin(&mut self) {
        self.next = 0;
        self.divergence.begin();
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
        let edges = tree.edges_of_root().iter();
        let playable = edges.filter(|edge| !tree.is_refuted(edge));
        for visits in playable.map(|edge| tree.visits(edge)) {
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

    /// Whether the last visits have hardly changed the distribution of all.
    fn is_settled(&mut self, tree: &Tree, spent: u32, stop: &KldStop) -> bool {
        let settled = self.divergence.look(tree, spent, stop);
        self.look_at(self.divergence.due(stop));
        settled == Some(true)
    }

    fn look_at(&mut self, visits: u32) {
        self.next = self.next.min(visits);
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::params::{Noise, SearchParams};

    use super::*;
    use crate::search::Exploration;
    use crate::search::testing::{Outcome, position_set, search_with};

    fn decided(visits: u32) -> SearchParams {
        SearchParams {
            visits,
            noise: None,
            stop_when_decided: true,
            solver: false,
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
    fn a_search_whose_visits_do_not_move_any_more_ends() {
        let stop = |minimum_gain| SearchParams {
            visits: 800,
            noise: Some(Noise::default()),
            kld_stop: Some(KldStop {
                minimum_gain,
                interval: 50,
            }),
            solver: false,
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
