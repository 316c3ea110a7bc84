//! Searches of a game are right: no traces of batches, certain mates, reuse.

use proptest::prelude::*;
use rookery_common::chess::PackedMove;
use rookery_common::chess::moves::{canonical_moves, parse_uci, uci};
use rookery_common::params::{KldStop, Noise};
use shakmaty::{CastlingMode, Position as _};

use super::*;
use crate::dummy::{HandEvaluator, UniformEvaluator};
use crate::evaluator::{Evaluator, Wdl};
use crate::search::{Exploration, testing};
use crate::testing::{fen, random_game};
use crate::tree::{Edge, NodeId, NodeKind, Proof};

mod batches;
mod choices;
mod proofs;
mod tables;

fn searcher() -> Searcher {
    Searcher::new(SearcherConfig::default(), None, 1)
}

/// Searches until this many visits are done, or nothing is left to search.
fn run(searcher: &mut Searcher, evaluator: &mut dyn Evaluator, leaves: usize, visits: u32) {
    let mut gathered = Gathered::new(evaluator);
    let mut answer = Evaluations::default();
    while !searcher.is_over() && !searcher.is_full(1) && searcher.planned_visits() < visits {
        let visits = visits - searcher.planned_visits();
        searcher.gather(GatherBudget { leaves, visits }, &mut gathered);
        evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
        searcher.apply(&mut gathered, &answer).unwrap();
        assert_eq!(searcher.search.in_flight, 0);
    }
    assert_eq!(searcher.search.tree.all_in_flight(), 0, "no trace is left");
}

fn searched(game: &GameHistory, leaves: usize, visits: u32) -> Searcher {
    let mut searcher = searcher();
    searcher.begin(game, &[]);
    run(&mut searcher, &mut HandEvaluator::default(), leaves, visits);
    searcher
}

/// Visits are the children's and one, values their mean; proofs follow from the children's.
fn check_tree(searcher: &Searcher, id: NodeId) {
    let (tree, node) = (&searcher.search.tree, searcher.search.tree.node(id));
    if node.kind != NodeKind::Open {
        return;
    }
    let children: Vec<NodeId> = tree.edges(id).iter().filter_map(Edge::child).collect();
    if id != NodeId::ROOT {
        assert_eq!(node.proof, tree.prove(id, |_| true));
    }
    match node.proof.value() {
        Some(value) => assert_eq!((node.q, node.draw), (value.q(), value.draw)),
        None => {
            let visits: u32 = children.iter().map(|child| tree.node(*child).visits).sum();
            assert_eq!(node.visits, 1 + visits);
            let sum = |child: &NodeId| -tree.node(*child).q * tree.node(*child).visits as f32;
            let mean = (node.raw_q + children.iter().map(sum).sum::<f32>()) / node.visits as f32;
            assert!((node.q - mean).abs() < 2e-3, "{} is not {mean}", node.q);
        }
    }
    children
        .iter()
        .for_each(|child| check_tree(searcher, *child));
}

fn visits(searcher: &Searcher) -> Vec<(Move, u32, Option<f32>)> {
    let position = searcher.game.position();
    let edges = searcher.search.tree.edges_of_root();
    let of = |m: Move| {
        let packed = PackedMove::pack(m);
        let child = edges.iter().find(|edge| edge.packed == packed)?.child()?;
        let node = searcher.search.tree.node(child);
        Some((node.visits, -node.q))
    };
    canonical_moves(position)
        .into_iter()
        .map(|m| (m, of(m).map_or(0, |of| of.0), of(m).map(|of| of.1)))
        .collect()
}
