//! Forced playouts and policy-target pruning: Wu, "Accelerating Self-Play Learning in Go" (2019),
//! section 3.2.

use super::{Search, Settings, Summary};
use crate::tree::{Edge, NodeId, Tree};

/// Visits that a move of this prior must have, if it has any, when the root's moves have `spent`.
fn forced(k: f32, prior: f32, spent: u32) -> f32 {
    (k * prior * spent as f32).sqrt()
}

/// The first of the root's visited moves, in order of priors, that has too few visits.
pub(super) fn select(tree: &Tree, k: f32, spent: u32) -> Option<usize> {
    let lacks = |edge: &Edge| {
        edge.child().is_some()
            && (tree.planned_visits(edge) as f32) < forced(k, edge.prior, spent)
            && !tree.is_refuted(edge)
    };
    tree.edges_of_root().iter().position(lacks)
}

impl Search {
    /// Visits of the root's moves without those that only forcing has made: from every move but the
    /// most visited one as many are taken, up to the forced ones, as leave its PUCT score below
    /// the most visited one's; a move left with one visit loses it. A search that forced none keeps
    /// them all.
    pub(crate) fn pruned_visits(&self, summary: &Summary, settings: &Settings) -> Vec<u32> {
        let moves = summary.moves.iter();
        let Some(k) = self.forced else {
            return moves.map(|m| m.visits).collect();
        };
        let u = settings.puct.factor(self.tree.node(NodeId::ROOT).visits);
        let best = summary.most_visited();
        let top = &summary.moves[best];
        let score = top.q.unwrap_or(-1.0) + u * top.prior / (1 + top.visits) as f32;
        let visits = moves.enumerate().map(|(place, m)| match m.q {
            Some(q) if place != best => {
                let most = forced(k, m.prior, self.counts.spent);
                let visited = VisitedMove {
                    q,
                    u: u * m.prior,
                    visits: m.visits,
                };
                visited.pruned(score, most)
            }
            _ => m.visits,
        });
        visits.collect()
    }
}

/// A move other than the most visited one.
struct VisitedMove {
    q: f32,
    /// Its PUCT bonus times one more than its visits.
    u: f32,
    visits: u32,
}

impl VisitedMove {
    /// What is left of its visits when up to `most` are taken, as long as `q + u / (1 + n)` stays
    /// below `score`.
    fn pruned(&self, score: f32, most: f32) -> u32 {
        let wanted = if score > self.q {
            (self.u / (score - self.q)).floor()
        } else {
            f32::INFINITY
        };
        let least = (self.visits as f32 - most).ceil().max(0.0);
        let left = (wanted.max(least) as u32).min(self.visits);
        if left == 1 && left < self.visits {
            0
        } else {
            left
        }
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::params::{ForcedPlayouts, Noise, SearchParams};

    use super::*;
    use crate::search::testing::{self, position_set, search_with};
    use crate::search::{Counts, Exploration, Purpose};

    fn params(k: Option<f32>) -> SearchParams {
        SearchParams {
            visits: 200,
            noise: Some(Noise::default()),
            forced_playouts: k.map(|k| ForcedPlayouts { k }),
            solver: false,
            ..SearchParams::default()
        }
    }

    #[test]
    fn a_visited_move_with_too_few_visits_comes_first() {
        // Priors 0.5, 0.3, 0.2; with k = 2 and 18 visits in all: sqrt(18), sqrt(10.8), sqrt(7.2).
        let select =
            |visits: [u32; 3]| super::select(&testing::tree(visits.map(|n| (n, 0.0))), 2.0, 18);
        assert_eq!(select([12, 4, 2]), Some(2));
        assert_eq!(select([13, 3, 2]), Some(1));
        assert_eq!(select([12, 3, 3]), Some(1));
        assert_eq!(select([11, 4, 3]), None);
        assert_eq!(
            select([14, 4, 0]),
            None,
            "what was never visited is not forced"
        );
    }

    #[test]
    fn pruning_takes_what_puct_would_not_have_given() {
        // u = sqrt(19) (1.25 + ln(19672 / 19652)) = 5.4531. The first move's score is
        // 0.4 + 0.5 u / 13 = 0.60974. The second wants 0.3 u / (0.60974 - 0.2) = 3.99 -> 3 of its
        // 4. The third wants 0.2 u / (0.60974 + 0.6) = 0.90 -> 0, but only sqrt(7.2) = 2.68 were
        // forced: of 4 there stay 2.
        let pruned = |visits: [u32; 3]| {
            let values = [0.4, 0.2, -0.6];
            let children = [0, 1, 2].map(|place| (visits[place], values[place]));
            let search = Search {
                tree: testing::tree(children),
                forced: Some(2.0),
                counts: Counts {
                    spent: visits.iter().sum(),
                    ..Counts::default()
                },
                ..Search::default()
            };
            let summary = search.summary(&shakmaty::Chess::default());
            let settings = Settings::new(&params(Some(2.0)));
            let pruned = search.pruned_visits(&summary, &settings);
            testing::in_order_of_priors(&summary, &pruned)
        };
        assert_eq!(pruned([12, 4, 2]), [12, 3, 0]);
        assert_eq!(pruned([12, 2, 4]), [12, 2, 2]);
    }

    #[test]
    fn forcing_looks_longer_at_what_noise_proposes_and_leaves_no_trace_in_the_target() {
        let (mut looked_at, mut without, mut weak, mut weak_pruned) = (0, 0, 0_u32, 0_u32);
        for game in position_set() {
            let plain = search_with(&game, &params(None), Purpose::Target, Exploration::Noisy);
            let search = search_with(
                &game,
                &params(Some(2.0)),
                Purpose::Target,
                Exploration::Noisy,
            );
            assert_eq!(plain.pruned, plain.visits);
            let pruned = search.pruned;
            let best = search.best;
            assert_eq!(
                pruned[best], search.visits[best],
                "the best move keeps its visits"
            );
            for (place, (visits, prior)) in search.visits.iter().zip(&search.priors).enumerate() {
                assert!(pruned[place] <= *visits);
                // The last visits may have been too few to serve all.
                let least = forced(2.0, *prior, 190).floor() as u32;
                assert!(*visits == 0 || visits + 1 >= least, "{visits} of {least}");
            }
            let twice = |visits: &[u32]| visits.iter().filter(|n| **n > 1).count();
            looked_at += twice(&search.visits);
            without += twice(&plain.visits);
            let others = |visits: &[u32]| visits.iter().sum::<u32>() - visits[best];
            weak += others(&search.visits);
            weak_pruned += others(&pruned);
        }
        assert!(looked_at > without, "{looked_at}, else {without}");
        assert!(weak_pruned < weak * 9 / 10, "{weak_pruned} of {weak}");
    }

    #[test]
    fn searches_without_noise_force_nothing() {
        for game in position_set() {
            let on = search_with(&game, &params(Some(2.0)), Purpose::Move, Exploration::Plain);
            let off = search_with(&game, &params(None), Purpose::Move, Exploration::Plain);
            assert_eq!((&on.visits, &on.pruned), (&off.visits, &off.visits));
        }
    }
}
