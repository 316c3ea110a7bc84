//! What tests of searches share: a small tree with exact numbers, a set of positions, and a search
//! from beginning to end.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::params::SearchParams;
use shakmaty::Position;

use super::walk::expand;
use super::{Budget, Exploration, Limits, Pending, Purpose, Scratch, Search, Settings, Summary};
use crate::dummy::HandEvaluator;
use crate::evaluator::{Batch, Evaluations, Evaluator, Wdl};
use crate::testing::{fen, packed};
use crate::tree::{NodeId, Tree};

/// A root with three moves of priors 0.5, 0.3, 0.2; children with these visits and values for the
/// root's mover.
pub(super) fn tree(children: [(u32, f32); 3]) -> Tree {
    let game = GameHistory::default();
    let moves: Vec<_> = game.position().legal_moves().into_iter().take(3).collect();
    let mut tree = Tree::default();
    tree.plant(game.entry());
    tree.ask(NodeId::ROOT, &packed(&moves));
    expand(
        &mut tree,
        NodeId::ROOT,
        &[0.5, 0.3, 0.2].map(f32::ln),
        1.0,
        Wdl::DRAW,
    );
    let visits: u32 = children.iter().map(|child| child.0).sum();
    tree.node_mut(NodeId::ROOT).visits = 1 + visits;
    let visited = children
        .into_iter()
        .enumerate()
        .filter(|child| child.1.0 > 0);
    for (offset, (visits, q)) in visited {
        let edge = tree.edge_id(NodeId::ROOT, offset);
        let child = tree.add_child(edge, NodeId::ROOT, game.entry());
        (0..visits).for_each(|_| tree.node_mut(child).add_visit(Wdl::from_q(-q)));
    }
    tree
}

/// Numbers of the root's moves in canonical order, brought into the order of the root's edges.
pub(super) fn in_order_of_priors(summary: &Summary, numbers: &[u32]) -> Vec<u32> {
    let mut ordered = vec![0; numbers.len()];
    for (edge, number) in summary.edges.iter().zip(numbers) {
        ordered[*edge] = *number;
    }
    ordered
}

/// Positions of all phases of a game: quiet ones, captures to be seen, mates, few moves.
pub(super) fn position_set() -> Vec<GameHistory> {
    [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3",
        "r1bqk2r/pp2bppp/2n1pn2/3p4/2PP4/2N2N2/PP2BPPP/R1BQK2R w KQkq - 0 8",
        "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1",
        "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1",
        "8/5k2/3p4/1p1Pp2p/pP2Pp1P/P4P1K/8/8 b - - 99 50",
        "2r3k1/pp3ppp/8/3p4/8/1P2P3/P4PPP/2R3K1 w - - 0 1",
        "8/8/8/8/8/5k2/6p1/6K1 w - - 0 1",
    ]
    .map(fen)
    .into()
}

/// The parameters' visits for this purpose.
pub(super) const fn budget(
    settings: &Settings,
    purpose: Purpose,
    exploration: Exploration,
) -> Budget<'_> {
    Budget {
        settings,
        visits: settings.params.visits,
        exploration,
        purpose,
        limits: Limits::ONE_LEAF,
    }
}

/// What a search came to, the root's moves in canonical order.
pub(super) struct Outcome {
    pub(super) visits: Vec<u32>,
    pub(super) priors: Vec<f32>,
    pub(super) pruned: Vec<u32>,
    /// The place of the most visited move.
    pub(super) best: usize,
}

/// Searches a position to the end of its budget, with the same chance every time.
pub(super) fn search_with(
    game: &GameHistory,
    params: &SearchParams,
    purpose: Purpose,
    exploration: Exploration,
) -> Outcome {
    let settings = Settings::new(params);
    let mut search = Search::default();
    let mut evaluator = HandEvaluator::default();
    let budget = budget(&settings, purpose, exploration);
    drive(&mut search, &mut game.clone(), &budget, &mut evaluator);
    let summary = search.summary(game.position());
    Outcome {
        visits: summary.moves.iter().map(|m| m.visits).collect(),
        priors: summary.moves.iter().map(|m| m.prior).collect(),
        pruned: search.pruned_visits(&summary, &settings),
        best: summary.most_visited(),
    }
}

/// Searches to the end of the budget.
pub(super) fn drive(
    search: &mut Search,
    game: &mut GameHistory,
    budget: &Budget<'_>,
    evaluator: &mut dyn Evaluator,
) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut pending, mut scratch) = (Pending::default(), Scratch::default());
    let mut batch = Batch::new(evaluator.input(), evaluator.policy());
    let mut answer = Evaluations::default();
    let plies = game.plies();
    loop {
        batch.clear();
        let ask = |game: &GameHistory, moves: &[PackedMove], _: &mut Evaluations| {
            batch.push_packed(game, moves.iter().copied());
            false
        };
        search.gather(game, budget, &mut rng, &mut pending, &mut scratch, ask);
        assert_eq!(game.plies(), plies, "the game is back at the root");
        if batch.is_empty() {
            break;
        }
        evaluator.evaluate(&batch, &mut answer).unwrap();
        search.apply(
            &mut pending,
            budget.settings,
            answer.of_batch(&batch).unwrap(),
        );
    }
    assert_eq!(search.tree().all_in_flight(), 0, "no trace is left");
}
