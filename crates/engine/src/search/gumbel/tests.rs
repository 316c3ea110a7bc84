//! Against an independent computation in numpy after mctx's sources.

use rand::SeedableRng;
use rookery_common::chess::GameHistory;
use rookery_common::params::SearchParams;
use shakmaty::Position;

use super::*;
use crate::evaluator::Wdl;
use crate::search::walk::expand;
use crate::search::{Limits, Purpose, Settings};
use crate::testing::packed;
use crate::tree::NodeKind;

fn schedule(considered: usize, visits: usize) -> Vec<u32> {
    let mut schedule = Vec::new();
    fill_schedule(&mut schedule, considered, visits);
    schedule
}

#[test]
fn the_schedule_is_mctxs() {
    assert_eq!(schedule(1, 5), [0, 1, 2, 3, 4]);
    assert_eq!(schedule(2, 8), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(schedule(3, 7), [0, 0, 0, 1, 1, 2, 2]);
    assert_eq!(
        schedule(4, 16),
        [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    );
    assert_eq!(
        schedule(5, 20),
        [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8]
    );
    // 16 of 50: rounds of 16, 8, 4 moves with one visit each, then 4 once more, then pairs.
    let expected = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3,
        3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11,
    ];
    assert_eq!(schedule(16, 50), expected);
}

/// A node with four moves of priors 0.4, 0.3, 0.2, 0.1 and value 0.1; children with these visits
/// and values for the node's mover.
fn tree(children: [(u32, f32); 4]) -> Tree {
    let game = GameHistory::default();
    let moves: Vec<_> = game.position().legal_moves().into_iter().take(4).collect();
    let mut tree = Tree::default();
    tree.plant(game.entry());
    tree.ask(NodeId::ROOT, &packed(&moves));
    let logits = [0.4, 0.3, 0.2, 0.1].map(f32::ln);
    expand(&mut tree, NodeId::ROOT, &logits, 1.0, Wdl::from_q(0.1));
    for (offset, (visits, q)) in children
        .into_iter()
        .enumerate()
        .filter(|child| child.1.0 > 0)
    {
        let child = tree.add_child(
            tree.edge_id(NodeId::ROOT, offset),
            NodeId::ROOT,
            game.entry(),
        );
        (0..visits).for_each(|_| tree.node_mut(child).add_visit(Wdl::from_q(-q)));
    }
    assert_eq!(tree.root().kind, NodeKind::Open);
    tree
}

fn params(c_visit: f32, c_scale: f32) -> GumbelParams {
    GumbelParams {
        considered: 16,
        c_visit,
        c_scale,
    }
}

const VISITED: [(u32, f32); 4] = [(3, 0.2), (0, 0.0), (2, -0.4), (0, 0.0)];

#[test]
fn q_is_completed_by_the_mixed_value() {
    let q = CompletedQ::new(&tree(VISITED), NodeId::ROOT, &params(50.0, 0.5));
    assert!((q.mixed - 0.016_666_668).abs() < 1e-6, "{q:?}");
    assert_eq!(q.visits, 5);
    let q = CompletedQ::new(&tree([(0, 0.0); 4]), NodeId::ROOT, &params(50.0, 0.5));
    assert!(
        (q.mixed - 0.1).abs() < 1e-6,
        "nothing visited: the evaluator's value"
    );
}

#[test]
fn the_improved_policy_is_as_computed() {
    let cases = [
        (
            50.0,
            0.02,
            [0.478_907_4, 0.295_743_3, 0.126_768_2, 0.098_581_1],
        ),
        (2.0, 0.1, [0.438_055, 0.299_764, 0.162_259_6, 0.099_921_4]),
    ];
    for (c_visit, c_scale, expected) in cases {
        let search = Search {
            tree: tree(VISITED),
            ..Search::default()
        };
        let policy = search.improved_policy(&params(c_visit, c_scale));
        for (p, expected) in policy.iter().zip(expected) {
            assert!((p - expected).abs() < 1e-5, "{policy:?}");
        }
    }
}

#[test]
fn the_improved_value_is_what_the_improved_policy_expects() {
    let search = Search {
        tree: tree(VISITED),
        ..Search::default()
    };
    // 0.438055 * 0.2 - 0.1622596 * 0.4 + (0.299764 + 0.0999214) * 0.016666668
    let value = search.improved_value(&params(2.0, 0.1));
    assert!((value.q() - 0.029_368_6).abs() < 1e-5, "{value:?}");
    let unsearched = Search {
        tree: tree([(0, 0.0); 4]),
        ..Search::default()
    };
    let value = unsearched.improved_value(&params(50.0, 0.5));
    assert!((value.q() - 0.1).abs() < 1e-5, "the evaluator's: {value:?}");
}

#[test]
fn below_the_root_the_visits_follow_the_improved_policy() {
    // Improved policy less n / (1 + N): 0.4923, ... with q deciding; else the unvisited second.
    let visited_first = [(3, 0.2), (2, -0.4), (0, 0.0), (0, 0.0)];
    assert_eq!(
        select_inner(&tree(visited_first), NodeId::ROOT, &params(50.0, 0.5)),
        0
    );
    assert_eq!(
        select_inner(&tree(visited_first), NodeId::ROOT, &params(2.0, 0.1)),
        2
    );
    assert_eq!(
        select_inner(&tree([(0, 0.0); 4]), NodeId::ROOT, &params(50.0, 0.5)),
        0
    );
}

#[test]
fn extreme_values_stay_finite() {
    let extreme = tree([(1000, 1.0), (1000, -1.0), (0, 0.0), (0, 0.0)]);
    assert_eq!(select_inner(&extreme, NodeId::ROOT, &params(1e6, 1e6)), 0);
    let search = Search {
        tree: extreme,
        ..Search::default()
    };
    assert_eq!(
        search.improved_policy(&params(1e6, 1e6)),
        [1.0, 0.0, 0.0, 0.0]
    );
}

#[test]
fn halving_leaves_the_move_with_the_best_noise_prior_and_value() {
    let tree = tree([(2, 0.0), (2, 0.3), (1, 0.9), (0, 0.0)]);
    let search = Search {
        tree,
        ..Search::default()
    };
    let choice = |scale| search.gumbel_choice(&params(50.0, scale), Exploration::Plain);
    assert_eq!(
        choice(0.5),
        1,
        "of the two with most visits the one with the higher value"
    );
    assert_eq!(
        choice(0.0),
        0,
        "or, with no weight on values, the higher prior"
    );
}

#[test]
fn noise_samples_moves_by_their_priors() {
    let tree = tree([(0, 0.0); 4]);
    let settings = Settings::new(&SearchParams::default());
    let budget = Budget {
        settings: &settings,
        visits: 8,
        exploration: Exploration::Noisy,
        purpose: Purpose::Target,
        limits: Limits::ONE_LEAF,
    };
    let (params, mut counts) = (params(50.0, 0.5), [0_u32; 4]);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut root = GumbelRoot::default();
    for _ in 0..4000 {
        root.prepare(&tree, &budget, &params, &mut rng);
        counts[root.select(&tree, 0, &params)] += 1;
    }
    // The Gumbel-max trick: the first move is a sample of the policy.
    for (count, prior) in counts.into_iter().zip([0.4, 0.3, 0.2, 0.1]) {
        assert!(
            (f64::from(count) / 4000.0 - prior).abs() < 0.03,
            "{counts:?}"
        );
    }
}
