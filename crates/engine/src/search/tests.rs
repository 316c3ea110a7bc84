//! Search is right: mates, signs, counts, noise, repetitions, reuse.

use proptest::prelude::*;
use rookery_common::chess::moves::{canonical_moves, parse_uci};
use rookery_common::params::{Fpu, GumbelParams, Noise, PuctParams};

use shakmaty::Position;

use super::*;
use crate::dummy::{HandEvaluator, UniformEvaluator};
use crate::evaluator::Evaluator;
use crate::testing::{fen, random_game};
use crate::tree::Edge;
use rookery_common::chess::GameHistory;

fn params(visits: u32) -> SearchParams {
    SearchParams {
        visits,
        noise: None,
        solver: false,
        ..SearchParams::default()
    }
}

/// Searches until the budget is spent.
fn run(
    search: &mut Search,
    game: &mut GameHistory,
    params: &SearchParams,
    exploration: Exploration,
    evaluator: &mut dyn Evaluator,
) {
    let settings = Settings::new(params);
    let budget = testing::budget(&settings, Purpose::Target, exploration);
    testing::drive(search, game, &budget, evaluator);
}

fn search(game: &GameHistory, params: &SearchParams, evaluator: &mut dyn Evaluator) -> Search {
    let mut search = Search::default();
    run(
        &mut search,
        &mut game.clone(),
        params,
        Exploration::Plain,
        evaluator,
    );
    search
}

/// Every open node's visits are its own and its children's, and its value is their mean with
/// signs flipped.
fn check_tree(tree: &Tree, id: NodeId) {
    let node = tree.node(id);
    if node.kind != NodeKind::Open {
        return;
    }
    let children: Vec<NodeId> = tree.edges(id).iter().filter_map(Edge::child).collect();
    let visits: u32 = children.iter().map(|child| tree.node(*child).visits).sum();
    assert_eq!(node.visits, 1 + visits);
    let weighted = |child: &NodeId| -tree.node(*child).q * tree.node(*child).visits as f32;
    let mean = (node.raw_q + children.iter().map(weighted).sum::<f32>()) / node.visits as f32;
    assert!((node.q - mean).abs() < 1e-3, "{} is not {mean}", node.q);
    let sum: f32 = tree.edges(id).iter().map(|edge| edge.prior).sum();
    assert!((sum - 1.0).abs() < 1e-3);
    children.iter().for_each(|child| check_tree(tree, *child));
}

fn best(game: &GameHistory, search: &Search) -> Move {
    let summary = search.summary(game.position());
    summary.moves[summary.most_visited()].m
}

#[test]
fn a_won_child_is_a_good_move_for_the_parent() {
    let game = fen("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1");
    let search = search(&game, &params(200), &mut UniformEvaluator::default());
    check_tree(&search.tree, NodeId::ROOT);
    let summary = search.summary(game.position());
    let mate = parse_uci(game.position(), "a1a8").unwrap();
    for m in &summary.moves {
        assert_eq!(m.q == Some(1.0), m.m == mate, "{:?}", m.m);
    }
    assert!(search.tree.root().q > 0.5, "mating is good for the mover");
    let game = fen("6k1/8/8/8/8/1r6/r7/6K1 w - - 0 1");
    let search = super::tests::search(&game, &params(400), &mut UniformEvaluator::default());
    assert!(search.tree.root().q < 0.0, "being mated is bad");
}

#[test]
fn bad_moves_that_were_tried_cost_a_gumbel_search_no_value() {
    let game = fen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
    let gumbel = SearchParams {
        root: RootSearch::Gumbel(GumbelParams::default()),
        ..params(48)
    };
    let search = search(&game, &gumbel, &mut HandEvaluator::default());
    let (mean, value) = (search.tree.root().q, search.value(&gumbel.root).q());
    let summary = search.summary(game.position());
    let best = summary.moves[summary.most_visited()].q.unwrap();
    assert!(mean < value - 0.1, "{mean}, {value}");
    assert!((value - best).abs() < 0.05, "{value}, {best}");
}

#[test]
fn visits_add_up_to_the_budget() {
    for text in [
        "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1",
        "8/8/8/8/8/5k2/6p1/6K1 w - - 0 1",
    ] {
        let game = fen(text);
        for visits in [2, 3, 57] {
            let search = search(&game, &params(visits), &mut HandEvaluator::default());
            let summary = search.summary(game.position());
            assert_eq!(summary.moves.iter().map(|m| m.visits).sum::<u32>(), visits);
            assert_eq!(search.tree.root().visits, visits + 1);
            let canonical = canonical_moves(game.position());
            assert!(summary.moves.iter().map(|m| m.m).eq(canonical));
        }
    }
}

/// Sequential halving plans how often moves are visited, whichever these turn out to be.
#[test]
fn every_search_can_gather_many_leaves() {
    let gumbel = RootSearch::Gumbel(GumbelParams::default());
    for root in [RootSearch::Puct, gumbel] {
        let params = SearchParams {
            root: root.clone(),
            ..params(64)
        };
        let settings = Settings::new(&params);
        let plan = [1, 2, 7].map(|leaves| {
            let budget = Budget {
                limits: Limits {
                    leaves,
                    ..Limits::ONE_LEAF
                },
                ..testing::budget(&settings, Purpose::Target, Exploration::Plain)
            };
            let (mut search, mut game) = (Search::default(), GameHistory::default());
            let mut evaluator = HandEvaluator::default();
            testing::drive(&mut search, &mut game, &budget, &mut evaluator);
            check_tree(&search.tree, NodeId::ROOT);
            assert_eq!(search.spent(), 64);
            let mut visits: Vec<u32> = search.tree.child_visits().collect();
            visits.sort_unstable();
            visits
        });
        if root != RootSearch::Puct {
            assert!(plan.iter().all(|visits| *visits == plan[0]), "{plan:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn trees_are_consistent_and_survive_a_move(game in random_game(), gumbel in any::<bool>()) {
        prop_assume!(game.end().is_none());
        let mut game = game;
        let mut params = params(60);
        if gumbel {
            params.root = RootSearch::Gumbel(GumbelParams::default());
        }
        let mut evaluator = HandEvaluator::default();
        let mut search = Search::default();
        run(&mut search, &mut game, &params, Exploration::Plain, &mut evaluator);
        check_tree(&search.tree, NodeId::ROOT);
        let chosen = best(&game, &search);
        let before = search.summary(game.position());
        let kept = before.moves[before.most_visited()].visits;
        game.push(chosen);
        search.play(chosen, &mut Tree::default());
        prop_assert_eq!(search.tree.root().visits, kept);
        if game.end().is_none() && search.tree.root().kind == NodeKind::Open {
            prop_assert!(search.spent() < kept, "less what is no repetition any more");
            let params = SearchParams { root: RootSearch::Puct, ..params };
            run(&mut search, &mut game, &params, Exploration::Plain, &mut evaluator);
            prop_assert_eq!(search.tree.child_visits().sum::<u32>(), 60);
        }
    }
}

/// The mover can give mate in `moves`, however the opponent plays.
fn mates(game: &mut GameHistory, moves: u32) -> bool {
    let legal = canonical_moves(game.position());
    legal.into_iter().any(|m| {
        game.push(m);
        let found = mated(game, moves - 1);
        game.pop();
        found
    })
}

/// The mover is mated, or will be in `moves`.
fn mated(game: &mut GameHistory, moves: u32) -> bool {
    let legal = canonical_moves(game.position());
    if legal.is_empty() || moves == 0 {
        return legal.is_empty() && game.position().is_check();
    }
    legal.into_iter().all(|m| {
        game.push(m);
        let found = mates(game, moves);
        game.pop();
        found
    })
}

fn finds_mate(text: &str, moves: u32, visits: u32, evaluator: &mut dyn Evaluator) -> bool {
    let mut game = fen(text);
    assert!(mates(&mut game, moves), "{text} is no mate in {moves}");
    let puct = PuctParams {
        fpu: Fpu::Absolute { value: 0.0 },
        ..PuctParams::default()
    };
    let params = SearchParams {
        puct,
        ..params(visits)
    };
    let search = search(&game, &params, evaluator);
    let chosen = best(&game, &search);
    game.push(chosen);
    mated(&mut game, moves - 1)
}

#[test]
fn mates_are_found_with_a_uniform_evaluator() {
    let fixtures = [
        ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", 1, 200),
        (
            "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4",
            1,
            400,
        ),
        ("4r1k1/8/8/8/8/8/5PPP/6K1 b - - 0 1", 1, 200),
        ("k7/8/8/8/8/8/6R1/K6R w - - 0 1", 2, 3000),
        ("7k/8/5K2/8/8/8/8/6R1 w - - 0 1", 2, 3000),
        ("k7/8/8/8/8/8/1R6/K6R w - - 0 1", 3, 20_000),
    ];
    for (text, moves, visits) in fixtures {
        assert!(
            finds_mate(text, moves, visits, &mut UniformEvaluator::default()),
            "{text}"
        );
    }
}

#[test]
fn noise_is_at_the_root_only() {
    let game = GameHistory::default();
    let noisy = SearchParams {
        noise: Some(Noise::default()),
        ..params(100)
    };
    let mut search = Search::default();
    run(
        &mut search,
        &mut game.clone(),
        &noisy,
        Exploration::Noisy,
        &mut UniformEvaluator::default(),
    );
    let priors = |id| {
        search
            .tree
            .edges(id)
            .iter()
            .map(|edge| edge.prior)
            .collect::<Vec<f32>>()
    };
    let root = priors(NodeId::ROOT);
    assert!(root[0] > 0.06, "0.05 without noise: {root:?}");
    assert!(root.iter().all(|p| *p >= 0.75 * 0.05 - 1e-6));
    assert!((root.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    for child in search.tree.edges_of_root().iter().filter_map(Edge::child) {
        let priors = priors(child);
        assert!(priors.iter().all(|p| *p == priors[0]));
    }
    let plain = super::tests::search(&game, &noisy, &mut UniformEvaluator::default());
    assert!(
        plain
            .tree
            .edges_of_root()
            .iter()
            .all(|edge| (edge.prior - 0.05).abs() < 1e-6)
    );
}

/// The priors of the root, and those of its best move, after a search.
fn priors_with(params: &SearchParams) -> [Vec<f32>; 2] {
    // White takes the queen, Black takes back.
    let game = fen("4k3/8/4p3/3q4/4P3/8/8/4K3 w - - 0 1");
    let search = search(&game, params, &mut HandEvaluator::default());
    let tree = &search.tree;
    let child = tree.edges_of_root()[0].child().unwrap();
    let priors = |id| tree.edges(id).iter().map(|edge| edge.prior).collect();
    [NodeId::ROOT, child].map(priors)
}

/// Checks that `hot` are the priors `raw` after their logits were divided by the temperature.
fn check_flattened(hot: &[f32], raw: &[f32], temperature: f32) {
    let expected = (raw[0] / raw[1]).powf(1.0 / temperature);
    assert!(raw[0] > 1.1 * raw[1], "there is something to flatten");
    assert!((hot[0] / hot[1] - expected).abs() < 1e-3);
    assert!((hot.iter().sum::<f32>() - 1.0).abs() < 1e-4);
}

#[test]
fn root_temperature_flattens_the_policy_of_the_root_only() {
    let [raw, below] = priors_with(&params(10));
    let [hot, still] = priors_with(&SearchParams {
        root_policy_temperature: 2.0,
        ..params(10)
    });
    check_flattened(&hot, &raw, 2.0);
    assert_eq!(still, below);
}

#[test]
fn policy_temperature_flattens_the_policy_of_every_position() {
    let [raw, below] = priors_with(&params(10));
    let [hot, hot_below] = priors_with(&SearchParams {
        policy_temperature: 1.5,
        root_policy_temperature: 2.0,
        ..params(10)
    });
    check_flattened(&hot, &raw, 3.0);
    check_flattened(&hot_below, &below, 1.5);
}

/// White, far behind, can check for ever: Qe8+ Kh7 Qh5+ Kg8.
const PERPETUAL: &str = "6k1/6p1/8/7Q/8/8/qr6/7K w - - 0 1";

/// Whether a node of this kind is in the tree.
fn reached(tree: &Tree, id: NodeId, kind: NodeKind) -> bool {
    let mut children = tree.edges(id).iter().filter_map(Edge::child);
    tree.node(id).kind == kind || children.any(|child| reached(tree, child, kind))
}

#[test]
fn a_repetition_in_the_tree_is_a_draw() {
    let game = fen(PERPETUAL);
    let search = search(&game, &params(3000), &mut HandEvaluator::default());
    assert!(reached(&search.tree, NodeId::ROOT, NodeKind::Repeated));
    let check = parse_uci(game.position(), "h5e8").unwrap();
    assert_eq!(best(&game, &search), check);
    let value = search.tree.root().value();
    assert!(value.q() > -0.35 && value.draw > 0.3, "{value:?}");
}

#[test]
fn a_third_occurrence_is_a_draw_at_once() {
    let mut game = fen(PERPETUAL);
    for text in ["h5e8", "g8h7", "e8h5", "h7g8", "h5e8", "g8h7", "e8h5"] {
        let m = parse_uci(game.position(), text).unwrap();
        game.push(m);
    }
    let search = search(&game, &params(30), &mut HandEvaluator::default());
    let summary = search.summary(game.position());
    let home = parse_uci(game.position(), "h7g8").unwrap();
    let back = summary.moves.iter().find(|m| m.m == home).unwrap();
    assert_eq!(back.q, Some(0.0));
    assert!(back.visits > 0);
}

#[test]
fn a_subtree_is_searched_on_as_if_it_were_its_own() {
    let mut game = fen(PERPETUAL);
    let mut evaluator = HandEvaluator::default();
    let mut search = search(&game, &params(500), &mut evaluator);
    let mut spare = Tree::default();
    for _ in 0..6 {
        let chosen = best(&game, &search);
        game.push(chosen);
        search.play(chosen, &mut spare);
        if game.end().is_some() {
            break;
        }
        run(
            &mut search,
            &mut game,
            &params(500),
            Exploration::Plain,
            &mut evaluator,
        );
        let priors = search.tree.edges_of_root().iter().map(|edge| -edge.prior);
        assert!(priors.is_sorted(), "the best move untried is tried next");
        assert_eq!(search.tree.child_visits().sum::<u32>(), 500);
    }
    assert!(game.plies() >= 6);
}

#[test]
fn a_budget_of_nothing_evaluates_the_position() {
    let game = GameHistory::default();
    let search = search(&game, &params(0), &mut HandEvaluator::default());
    assert_eq!((search.tree.len(), search.tree.root().visits), (1, 1));
    assert_eq!(search.root, RootState::Raw);
}

#[test]
fn the_suites_mates_are_found() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("ROOKERY_DATA").unwrap_or_else(|_| default.to_owned());
    let suites = [(1, 1500, 8, 100), (2, 8000, 40, 70), (3, 20_000, 14, 50)];
    for (moves, visits, count, percent) in suites {
        let file = format!("{folder}/suites/sunfish_mate{moves}.fen");
        let Ok(text) = std::fs::read_to_string(file) else {
            return;
        };
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(count)
            .collect();
        let mut evaluator = UniformEvaluator::default();
        let finds = |line: &&&str| finds_mate(line, moves, visits, &mut evaluator);
        let found = lines.iter().filter(finds).count();
        assert!(
            100 * found >= percent * lines.len(),
            "mate in {moves}: {found} of {count}"
        );
    }
}
