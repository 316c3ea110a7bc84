//! What is proven is certain, seen at once, and shown in the visits.

use proptest::prelude::*;
use rookery_common::chess::moves::{canonical_moves, parse_uci};
use rookery_common::params::{ForcedPlayouts, GumbelParams, Noise, RootSearch, SearchParams};

use super::*;
use crate::dummy::{HandEvaluator, UniformEvaluator};
use crate::evaluator::Evaluator;
use crate::search::testing::{budget, drive};
use crate::search::{Exploration, Purpose, Settings, Summary};
use crate::testing::{fen, random_game};
use crate::tree::Edge;

fn roots() -> [RootSearch; 2] {
    [
        RootSearch::Puct,
        RootSearch::Gumbel(GumbelParams::default()),
    ]
}

fn params(root: RootSearch, visits: u32) -> SearchParams {
    SearchParams {
        visits,
        root,
        solver: true,
        ..SearchParams::default()
    }
}

fn search(game: &GameHistory, params: &SearchParams, evaluator: &mut dyn Evaluator) -> Search {
    let settings = Settings::new(params);
    let budget = budget(&settings, Purpose::Target, Exploration::Noisy);
    let mut search = Search::default();
    drive(&mut search, &mut game.clone(), &budget, evaluator);
    search
}

fn visits(summary: &Summary) -> u32 {
    summary.moves.iter().map(|m| m.visits).sum()
}

const MATES_IN_ONE: [&str; 5] = [
    "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1",
    "4r1k1/8/8/8/8/8/5PPP/6K1 b - - 0 1",
    "6rk/6pp/8/6N1/8/8/8/4K3 w - - 0 1",
    "6br/5Ppk/6pp/8/8/8/8/6K1 w - - 0 1",
    "2rkr3/2p1p3/8/8/8/8/8/R3K3 w Q - 0 1",
];

#[test]
fn a_mate_in_one_is_played_whatever_the_network_thinks() {
    for text in MATES_IN_ONE {
        let game = fen(text);
        for root in roots() {
            let search = search(
                &game,
                &params(root.clone(), 2),
                &mut UniformEvaluator::default(),
            );
            let summary = search.summary(game.position());
            let best = &summary.moves[summary.most_visited()];
            let mut after = game.clone();
            after.push(best.m);
            assert!(after.position().is_checkmate(), "{text}");
            assert_eq!((best.visits, best.q, visits(&summary)), (1, Some(1.0), 1));
            assert_eq!(search.value(&root), Wdl::WIN);
            assert_eq!(search.principal_variation(game.position()), [best.m]);
            assert_eq!(search.visits(), 1, "only the root was evaluated");
            if let RootSearch::Gumbel(gumbel) = &root {
                let chosen = search.gumbel_choice(gumbel, Exploration::Noisy);
                assert_eq!(search.improved_policy(gumbel)[chosen], 1.0);
            }
        }
    }
}

#[test]
fn mates_in_two_are_proven_with_few_visits() {
    for (text, plies) in [
        ("k7/8/8/8/8/8/6R1/K6R w - - 0 1", 3),
        ("8/8/7p/8/8/8/p1K1N3/k7 w - - 0 1", 3),
        ("k7/8/1K6/8/8/8/8/7R b - - 0 1", 2),
    ] {
        let game = fen(text);
        let search = search(
            &game,
            &params(RootSearch::Puct, 400),
            &mut UniformEvaluator::default(),
        );
        let (proof, won) = (search.proof.unwrap(), plies % 2 == 1);
        let expected = if won {
            Proof::Won(plies)
        } else {
            Proof::Lost(plies)
        };
        assert_eq!(proof, expected, "{text}");
        let mut line = game.clone();
        let pv = search.principal_variation(game.position());
        pv.iter().for_each(|m| line.push(*m));
        assert!(line.position().is_checkmate(), "{text}: {pv:?}");
        let summary = search.summary(game.position());
        let q = if won { 1.0 } else { -1.0 };
        let best = &summary.moves[summary.most_visited()];
        assert_eq!((visits(&summary), best.q), (1, Some(q)));
        assert_eq!(search.value(&RootSearch::Puct).q(), q);
    }
}

/// White threatens mate on the back rank, so that most moves of Black lose at once.
const THREAT: &str = "6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 1";

#[test]
fn moves_into_mate_are_neither_played_nor_learned() {
    let game = fen(THREAT);
    let forced = SearchParams {
        forced_playouts: Some(ForcedPlayouts::default()),
        noise: Some(Noise::default()),
        ..params(RootSearch::Puct, 200)
    };
    for params in [params(RootSearch::Puct, 200), forced] {
        let search = search(&game, &params, &mut UniformEvaluator::default());
        let summary = search.summary(game.position());
        assert_eq!(visits(&summary), 200);
        let pruned = search.pruned_visits(&summary, &Settings::new(&params));
        let mut refuted = 0;
        for (m, pruned) in summary.moves.iter().zip(pruned) {
            let mut after = game.clone();
            after.push(m.m);
            let legal = after.position().legal_moves();
            if find_mate(after.position(), &legal).is_some() {
                assert_eq!((m.visits, pruned), (0, 0), "{:?}", m.m);
                refuted += 1;
            }
        }
        assert!(refuted > 3, "{refuted} moves lose at once");
    }
    let RootSearch::Gumbel(gumbel) = &roots()[1] else {
        unreachable!()
    };
    let search = search(
        &game,
        &params(roots()[1].clone(), 64),
        &mut UniformEvaluator::default(),
    );
    let edges = search.tree.edges_of_root();
    let chosen = search.gumbel_choice(gumbel, Exploration::Noisy);
    assert!(!search.tree.is_refuted(&edges[chosen]));
    for (edge, share) in edges.iter().zip(search.improved_policy(gumbel)) {
        assert!(!search.tree.is_refuted(edge) || share == 0.0);
    }
}

#[test]
fn moves_into_mate_are_not_learned_where_a_kept_tree_has_all_visits() {
    let mut game = fen("6k1/5ppp/8/8/8/8/r4PPP/1R5K w - - 0 1");
    let m = parse_uci(game.position(), "h1g1").unwrap();
    let (mut search, mut spare) = (Search::default(), Tree::default());
    search.allowed = vec![PackedMove::pack(m)];
    let run = |search: &mut Search, game: &mut GameHistory, visits| {
        let settings = Settings::new(&params(RootSearch::Puct, visits));
        let budget = budget(&settings, Purpose::Target, Exploration::Noisy);
        drive(search, game, &budget, &mut UniformEvaluator::default());
    };
    run(&mut search, &mut game, 200);
    game.push(m);
    search.play(m, &mut spare);
    search.allowed.clear();
    let (kept, before) = (search.spent(), search.visits());
    run(&mut search, &mut game, kept);
    assert_eq!(search.visits(), before, "nothing is left to visit");
    let summary = search.summary(game.position());
    assert_eq!(visits(&summary), kept);
    let edges = search.tree.edges_of_root();
    let mut refuted = 0;
    for (m, edge) in summary.moves.iter().zip(&summary.edges) {
        if search.tree.is_refuted(&edges[*edge]) {
            assert_eq!(m.visits, 0, "{:?}", m.m);
            refuted += 1;
        }
    }
    assert!(refuted > 3, "{refuted} moves lose at once");
}

/// Proofs follow from the children's; what is not proven is the mean of its visits. In a kept tree, a
/// child that once repeated what is now before the root has forgotten its visits, and its parent has not.
fn check_tree(tree: &Tree, id: NodeId) {
    let node = tree.node(id);
    if id != NodeId::ROOT {
        let by_rule = Proof::by_rule(node.kind);
        let proof = match by_rule {
            Proof::Open => tree.prove(id, |_| true),
            proof => proof,
        };
        assert_eq!(node.proof, proof);
    }
    let children: Vec<NodeId> = tree.edges(id).iter().filter_map(Edge::child).collect();
    match node.proof.value() {
        Some(value) => assert_eq!(node.q, value.q()),
        None if node.kind == NodeKind::Open => {
            let visits: u32 = children.iter().map(|child| tree.node(*child).visits).sum();
            assert!(node.visits > visits);
            let sum = |child: &NodeId| -tree.node(*child).q * tree.node(*child).visits as f32;
            let mean = (node.raw_q + children.iter().map(sum).sum::<f32>()) / node.visits as f32;
            let forgotten = node.visits > 1 + visits;
            assert!(
                forgotten || (node.q - mean).abs() < 2e-3,
                "{} is not {mean}",
                node.q
            );
        }
        None => {}
    }
    children.iter().for_each(|child| check_tree(tree, *child));
}

/// Whether the mover can mate in this many moves.
fn mates(game: &mut GameHistory, moves: u32) -> bool {
    if moves == 0 || game.end().is_some() {
        return false;
    }
    canonical_moves(game.position()).into_iter().any(|m| {
        game.push(m);
        let mated = game.position().is_checkmate()
            || game.end().is_none()
                && moves > 1
                && canonical_moves(game.position()).into_iter().all(|reply| {
                    game.push(reply);
                    let mates = mates(game, moves - 1);
                    game.pop();
                    mates
                });
        game.pop();
        mated
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn proofs_are_right_and_trees_consistent(game in random_game(), gumbel in any::<bool>()) {
        prop_assume!(game.end().is_none());
        let root = roots()[usize::from(gumbel)].clone();
        let search = search(&game, &params(root, 120), &mut HandEvaluator::default());
        check_tree(&search.tree, NodeId::ROOT);
        prop_assert_eq!(search.tree.root().visits, 1 + search.tree.child_visits().sum::<u32>());
        let won = matches!(search.proof, Some(Proof::Won(_)));
        if mates(&mut game.clone(), 1) {
            prop_assert_eq!(search.proof, Some(Proof::Won(1)));
        }
        if let Some(Proof::Won(plies @ ..=3)) = search.proof {
            prop_assert!(won && mates(&mut game.clone(), u32::from(plies.div_ceil(2))));
        }
        let summary = search.summary(game.position());
        let expected = if search.is_decided() { 1 } else { 120 };
        prop_assert_eq!(visits(&summary), expected);
    }

    #[test]
    fn a_kept_tree_keeps_its_proofs(game in random_game()) {
        prop_assume!(game.end().is_none());
        let (mut game, params) = (game, params(RootSearch::Puct, 80));
        let settings = Settings::new(&params);
        let (mut search, mut spare) = (Search::default(), Tree::default());
        for _ in 0..6 {
            if search.spent() > 80 {
                search.clear();
            }
            let budget = budget(&settings, Purpose::Target, Exploration::Plain);
            drive(&mut search, &mut game, &budget, &mut HandEvaluator::default());
            // A root that was proven before it was one has no mean of visits.
            if search.proof == Some(Proof::Open) {
                check_tree(&search.tree, NodeId::ROOT);
            } else {
                let edges = search.tree.edges_of_root().iter();
                let children = edges.filter_map(Edge::child);
                children.for_each(|child| check_tree(&search.tree, child));
            }
            let summary = search.summary(game.position());
            let best = &summary.moves[summary.most_visited()];
            let expected = if search.is_decided() { 1 } else { 80 };
            prop_assert_eq!(visits(&summary), expected);
            game.push(best.m);
            search.play(best.m, &mut spare);
            if game.end().is_some() {
                break;
            }
        }
    }
}
