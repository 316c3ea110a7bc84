//! Batched search is right: equal to plain search, no traces of batches, certain mates, reuse.

use proptest::prelude::*;
use rookery_common::chess::moves::{canonical_moves, parse_uci, uci};
use rookery_common::params::Noise;
use shakmaty::{CastlingMode, Position as _};

use super::*;
use crate::dummy::{HandEvaluator, UniformEvaluator};
use crate::evaluator::{Evaluator, Wdl};
use crate::search::{Budget, Exploration, Search, Settings, Step};
use crate::testing::{fen, random_game};
use crate::tree::Edge;

fn searcher() -> Searcher {
    Searcher::new(Config::default(), None, 1)
}

/// Searches until this many visits are done, or nothing is left to search.
fn run(searcher: &mut Searcher, evaluator: &mut dyn Evaluator, leaves: usize, visits: u32) {
    let mut gathered = Gathered::new(evaluator);
    let mut answer = Evaluations::default();
    while !searcher.is_over() && !searcher.is_full(1) && searcher.planned_visits() < visits {
        let visits = visits - searcher.planned_visits();
        searcher.gather(Room { leaves, visits }, &mut gathered);
        evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
        searcher.apply(&mut gathered, &answer).unwrap();
        assert_eq!(searcher.under_way, 0);
    }
    assert_eq!(searcher.marks.all_in_flight(), 0, "no trace is left");
}

fn searched(game: &GameHistory, leaves: usize, visits: u32) -> Searcher {
    let mut searcher = searcher();
    searcher.begin(game, &[]);
    run(&mut searcher, &mut HandEvaluator::default(), leaves, visits);
    searcher
}

/// Visits are the children's and one, values their mean; proofs follow from the children's.
fn check_tree(searcher: &Searcher, id: NodeId) {
    let (tree, node) = (&searcher.tree, searcher.tree.node(id));
    if node.kind != NodeKind::Open {
        return;
    }
    let children: Vec<NodeId> = tree.edges(id).iter().filter_map(Edge::child).collect();
    if id != NodeId::ROOT {
        let proof = Proof::of_moves(tree, &searcher.marks, id, |_| true);
        assert_eq!(searcher.marks.proof(id), proof);
    }
    match searcher.marks.proof(id).value() {
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

fn plain_search(game: &GameHistory, visits: u32) -> Vec<(Move, u32, Option<f32>)> {
    let params = Config::default().params;
    let settings = Settings::new(&params);
    let budget = Budget {
        settings: &settings,
        visits,
        exploration: Exploration::Plain,
    };
    let (mut search, mut game) = (Search::default(), game.clone());
    let mut evaluator = HandEvaluator::default();
    let mut batch = crate::Batch::new(evaluator.input(), evaluator.policy());
    let (mut answer, mut moves) = (Evaluations::default(), Vec::new());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    while search.step(&mut game, &budget, &mut rng, &mut moves) == Step::Ask {
        batch.clear();
        batch.push_packed(&game, moves.iter().copied());
        search.rewind(&mut game);
        evaluator.evaluate(&batch, &mut answer).unwrap();
        search.answer(&answer.logits, answer.values[0]);
    }
    let summary = search.summary(game.position());
    summary.moves.iter().map(|m| (m.m, m.visits, m.q)).collect()
}

fn visits(searcher: &Searcher) -> Vec<(Move, u32, Option<f32>)> {
    let position = searcher.game.position();
    let edges = searcher.tree.edges_of_root();
    let of = |m: Move| {
        let packed = PackedMove::pack(m);
        let child = edges.iter().find(|edge| edge.packed == packed)?.child()?;
        let node = searcher.tree.node(child);
        Some((node.visits, -node.q))
    };
    canonical_moves(position)
        .into_iter()
        .map(|m| (m, of(m).map_or(0, |of| of.0), of(m).map(|of| of.1)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn one_leaf_a_batch_is_plain_search(game in random_game()) {
        prop_assume!(game.end().is_none());
        let searcher = searched(&game, 1, 150);
        // Proofs, which plain search does not know, change what is visited.
        let proven = searcher.tree.ids().any(|id| searcher.marks.proof(id) != Proof::Open);
        prop_assume!(!proven);
        prop_assert_eq!(visits(&searcher), plain_search(&game, 150));
    }

    #[test]
    fn batches_leave_no_trace(game in random_game(), leaves in 1_usize..40) {
        prop_assume!(game.end().is_none());
        let searcher = searched(&game, leaves, 300);
        check_tree(&searcher, NodeId::ROOT);
        if !searcher.is_over() {
            let spent: u32 = visits(&searcher).iter().map(|(_, visits, _)| visits).sum();
            prop_assert_eq!((spent, searcher.counts.visits), (300, 300));
        }
    }

    #[test]
    fn the_tree_is_kept_while_the_game_goes_on(game in random_game(), leaves in 1_usize..20) {
        prop_assume!(game.end().is_none());
        let mut game = game;
        let mut searcher = searched(&game, leaves, 200);
        for _ in 0..4 {
            let line = searcher.lines(1).remove(0);
            let kept = line.visits;
            game.push(searcher.choose(0.0).unwrap());
            // A repetition of what is now before the root is looked at anew.
            if game.end().is_some() || game.repetitions() > 0 {
                break;
            }
            searcher.begin(&game, &[]);
            prop_assert_eq!(searcher.standing().visits, kept);
            prop_assert_eq!(searcher.is_over(), line.mate.is_some() || line.value.draw == 1.0);
            run(&mut searcher, &mut HandEvaluator::default(), leaves, 300);
        }
    }
}

#[test]
fn a_batch_goes_to_different_leaves() {
    let mut searcher = searcher();
    searcher.begin(&GameHistory::default(), &[]);
    let mut evaluator = HandEvaluator::default();
    run(&mut searcher, &mut evaluator, 1, 50);
    let mut gathered = Gathered::new(&evaluator);
    let room = Room {
        leaves: 16,
        visits: 100,
    };
    searcher.gather(room, &mut gathered);
    assert_eq!(gathered.batch().len(), 16);
    assert_eq!(searcher.planned_visits(), 66);
    // A second batch on its way at the same time meets none of the first one's leaves.
    let mut second = Gathered::new(&evaluator);
    searcher.gather(room, &mut second);
    let ends = |gathered: &Gathered| {
        let last = |path: &[NodeId]| path[path.len() - 1].index();
        gathered
            .leaves
            .iter()
            .map(last)
            .collect::<std::collections::HashSet<_>>()
    };
    assert_eq!(ends(&gathered).len(), 16);
    assert!(ends(&gathered).is_disjoint(&ends(&second)));
    let mut answer = Evaluations::default();
    for gathered in [&mut second, &mut gathered] {
        evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
        searcher.apply(gathered, &answer).unwrap();
    }
    assert_eq!(searcher.marks.all_in_flight(), 0);
    check_tree(&searcher, NodeId::ROOT);
}

#[test]
fn a_batch_that_failed_is_searched_again() {
    let game = GameHistory::default();
    let mut searcher = searcher();
    searcher.begin(&game, &[]);
    let mut evaluator = HandEvaluator::default();
    let mut gathered = Gathered::new(&evaluator);
    for _ in 0..3 {
        let room = Room {
            leaves: 8,
            visits: 100,
        };
        searcher.gather(room, &mut gathered);
        assert!(!gathered.batch().is_empty());
        let refused = searcher.apply(&mut gathered, &Evaluations::default());
        assert!(refused.is_err());
        assert_eq!(searcher.marks.all_in_flight(), 0);
        let visits = searcher.planned_visits() + 20;
        run(&mut searcher, &mut evaluator, 4, visits);
        check_tree(&searcher, NodeId::ROOT);
    }
}

#[test]
fn answers_for_another_tree_are_dropped() {
    let mut searcher = searcher();
    searcher.begin(&GameHistory::default(), &[]);
    let mut evaluator = HandEvaluator::default();
    let mut gathered = Gathered::new(&evaluator);
    searcher.gather(
        Room {
            leaves: 1,
            visits: 9,
        },
        &mut gathered,
    );
    let mut answer = Evaluations::default();
    evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
    searcher.begin(&fen("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"), &[]);
    searcher.apply(&mut gathered, &answer).unwrap();
    assert_eq!(searcher.standing().visits, 0);
}

#[test]
fn known_positions_take_no_room_in_a_batch() {
    let cache = Arc::new(EvaluationCache::new(10_000));
    let game = fen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
    let mut evaluator = HandEvaluator::default();
    let mut search = |leaves| {
        let mut searcher = Searcher::new(Config::default(), Some(Arc::clone(&cache)), 1);
        searcher.begin(&game, &[]);
        run(&mut searcher, &mut evaluator, leaves, 400);
        visits(&searcher)
    };
    let first = search(1);
    let misses = cache.counts().lookups - cache.counts().hits;
    assert_eq!(
        search(1),
        first,
        "the same with and without answers in the cache"
    );
    // A few answers may have made room for others.
    let again = cache.counts().lookups - cache.counts().hits - misses;
    assert!(again < misses / 20, "{again} of {misses}");
}

/// Mates, with the number of moves they take. In the longer ones a knight has to reach b3 while
/// the king keeps the other one in its corner.
const MATES: [(&str, i32); 9] = [
    ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", 1),
    ("4r1k1/8/8/8/8/8/5PPP/6K1 b - - 0 1", 1),
    ("8/8/8/8/8/3K4/R7/3k4 w - - 0 1", 1),
    ("k7/8/8/8/8/8/6R1/K6R w - - 0 1", 2),
    ("8/8/7p/8/8/8/p1K1N3/k7 w - - 0 1", 2),
    ("8/8/7p/8/8/6N1/p1K5/k7 w - - 0 1", 3),
    ("8/8/7p/8/8/8/p1K5/k6N w - - 0 1", 4),
    ("k7/8/1K6/8/8/8/8/7R b - - 0 1", -1),
    ("8/8/7p/8/8/8/p1K1N3/k7 b - - 0 1", -2),
];

#[test]
fn mates_are_proven_and_counted() {
    for (text, moves) in MATES {
        let game = fen(text);
        let mut searcher = searcher();
        searcher.begin(&game, &[]);
        run(&mut searcher, &mut UniformEvaluator::default(), 8, 50_000);
        assert_eq!(searcher.standing().mate, Some(moves), "{text}");
        let line = searcher.lines(1).remove(0);
        assert_eq!(line.mate, Some(moves));
        let mut end = game.clone();
        line.moves.iter().for_each(|m| end.push(*m));
        assert!(
            end.position().is_checkmate(),
            "{text}: the line ends in mate"
        );
        assert_eq!(searcher.lead(), Lead::Decided);
        check_tree(&searcher, NodeId::ROOT);
    }
}

#[test]
fn a_move_into_mate_is_not_chosen_and_counted_as_such() {
    // White threatens mate on the back rank.
    let game = fen("6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 1");
    let searcher = searched(&game, 8, 3000);
    let lines = searcher.lines(50);
    assert_eq!(lines[0].mate, None);
    let mated = lines.iter().position(|line| line.mate.is_some()).unwrap();
    for line in &lines[mated..] {
        assert!(line.mate.is_some_and(|mate| mate < 0));
        assert_eq!(line.value, Wdl::LOSS);
    }
}

#[test]
fn a_forced_draw_is_proven() {
    // The only move leaves bare kings.
    let searcher = searched(&fen("8/8/8/8/8/2k5/8/Kq6 w - - 0 1"), 8, 100);
    assert!(searcher.is_over());
    let line = searcher.lines(1).remove(0);
    assert_eq!((line.mate, line.value), (None, Wdl::DRAW));
}

#[test]
fn only_the_allowed_moves_are_played() {
    let game = fen("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1");
    let only: Vec<Move> = ["a1a7", "e1e2"]
        .iter()
        .map(|text| parse_uci(game.position(), text).unwrap())
        .collect();
    let mut searcher = searcher();
    searcher.begin(&game, &only);
    let mut evaluator = HandEvaluator::default();
    run(&mut searcher, &mut evaluator, 4, 200);
    assert!(!searcher.is_over(), "the mate is not allowed");
    assert!(
        searcher
            .lines(9)
            .iter()
            .all(|line| only.contains(&line.moves[0]))
    );
    assert_eq!(searcher.lines(9).len(), 2);
    searcher.begin(&game, &[]);
    run(&mut searcher, &mut evaluator, 4, 200);
    assert_eq!(searcher.standing().mate, Some(1), "all moves count again");
}

#[test]
fn play_goes_on_after_a_draw_that_nobody_claimed() {
    let mut game = fen("4k3/8/8/8/8/8/4P3/4K2R w - - 98 80");
    let mut evaluator = HandEvaluator::default();
    let mut searcher = searcher();
    for text in ["h1h2", "e8e7", "h2h1"] {
        searcher.begin(&game, &[]);
        run(&mut searcher, &mut evaluator, 4, 100);
        assert!(searcher.choose(0.0).is_some());
        let m = parse_uci(game.position(), text).unwrap();
        game.push(m);
    }
}

#[test]
fn a_small_tree_fills_and_search_ends_there() {
    let config = Config {
        tree_bytes: 0,
        ..Config::default()
    };
    let mut searcher = Searcher::new(config, None, 1);
    searcher.begin(&GameHistory::default(), &[]);
    let mut evaluator = HandEvaluator::default();
    let mut gathered = Gathered::new(&evaluator);
    let mut answer = Evaluations::default();
    for _ in 0..1000 {
        searcher.gather(
            Room {
                leaves: 16,
                visits: 1000,
            },
            &mut gathered,
        );
        evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
        searcher.apply(&mut gathered, &answer).unwrap();
    }
    assert!(searcher.is_full(16) && searcher.standing().fullness > 0.7);
    assert!(searcher.tree.memory() < 2 << 20);
    check_tree(&searcher, NodeId::ROOT);
}

#[test]
fn temperature_draws_moves_by_their_visits() {
    let mut searcher = searched(&GameHistory::default(), 8, 400);
    let best = searcher.choose(0.0).unwrap();
    let drawn: std::collections::HashSet<String> = (0..100)
        .filter_map(|_| searcher.choose(1.0))
        .map(|m| uci(m, CastlingMode::Standard))
        .collect();
    assert!(drawn.len() > 3, "{drawn:?}");
    assert!(drawn.contains(&uci(best, CastlingMode::Standard)));
}

#[test]
fn noise_is_mixed_in_when_asked_for() {
    let mut config = Config::default();
    config.params.noise = Some(Noise::default());
    let priors = |seed| {
        let mut searcher = Searcher::new(config.clone(), None, seed);
        searcher.begin(&GameHistory::default(), &[]);
        run(&mut searcher, &mut UniformEvaluator::default(), 4, 20);
        let edges = searcher.tree.edges_of_root().iter();
        edges.map(|edge| edge.prior).collect::<Vec<f32>>()
    };
    assert!(priors(1)[0] > 0.06, "{:?}", priors(1));
    assert_ne!(priors(1), priors(2));
}

#[test]
fn the_lead_is_the_visits_between_the_best_two() {
    let searcher = searched(&fen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"), 4, 300);
    let lines = searcher.lines(2);
    assert_eq!(
        searcher.lead(),
        Lead::Visits(lines[0].visits - lines[1].visits)
    );
    let game = GameHistory::default();
    let only = parse_uci(game.position(), "e2e4").unwrap();
    let mut searcher = self::searcher();
    searcher.begin(&game, &[only]);
    run(&mut searcher, &mut HandEvaluator::default(), 4, 20);
    assert_eq!(searcher.lead(), Lead::Decided);
}
