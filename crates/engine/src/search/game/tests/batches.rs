//! Batches leave no traces, and one leaf a batch is plain search.

use super::*;

fn plain_search(game: &GameHistory, visits: u32) -> Vec<(Move, u32, Option<f32>)> {
    let settings = Settings::new(&SearcherConfig::default().params);
    let budget = Budget {
        visits,
        ..testing::budget(&settings, Purpose::Target, Exploration::Plain)
    };
    let mut search = Search::default();
    let mut evaluator = HandEvaluator::default();
    testing::drive(&mut search, &mut game.clone(), &budget, &mut evaluator);
    let summary = search.summary(game.position());
    summary.moves.iter().map(|m| (m.m, m.visits, m.q)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn one_leaf_a_batch_is_plain_search(game in random_game()) {
        prop_assume!(game.end().is_none());
        let searcher = searched(&game, 1, 150);
        // Proofs, which plain search does not know, change what is visited.
        let proven = searcher.search.tree.ids().any(|id| searcher.search.tree.node(id).proof != Proof::Open);
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
            prop_assert_eq!((spent, searcher.search.counts.spent), (300, 300));
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
            prop_assert_eq!(searcher.stats().visits, kept);
            let decided = line.mate.is_some() || line.value.draw == 1.0;
            prop_assert!(decided || !searcher.is_over());
            // Where a mate was seen, the root itself is evaluated first.
            run(&mut searcher, &mut HandEvaluator::default(), leaves, 300);
            prop_assert!(searcher.is_over() || !decided);
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
    let room = GatherBudget {
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
        let leaves = gathered.pending.leaf_indices();
        leaves.collect::<std::collections::HashSet<_>>()
    };
    assert_eq!(ends(&gathered).len(), 16);
    assert!(ends(&gathered).is_disjoint(&ends(&second)));
    let mut answer = Evaluations::default();
    for gathered in [&mut second, &mut gathered] {
        evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
        searcher.apply(gathered, &answer).unwrap();
    }
    assert_eq!(searcher.search.tree.all_in_flight(), 0);
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
        let room = GatherBudget {
            leaves: 8,
            visits: 100,
        };
        searcher.gather(room, &mut gathered);
        assert!(!gathered.batch().is_empty());
        let refused = searcher.apply(&mut gathered, &Evaluations::default());
        assert!(refused.is_err());
        assert_eq!(searcher.search.tree.all_in_flight(), 0);
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
        GatherBudget {
            leaves: 1,
            visits: 9,
        },
        &mut gathered,
    );
    let mut answer = Evaluations::default();
    evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
    searcher.begin(&fen("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"), &[]);
    searcher.apply(&mut gathered, &answer).unwrap();
    assert_eq!(searcher.stats().visits, 0);
}

#[test]
fn known_positions_take_no_room_in_a_batch() {
    let cache = Arc::new(EvaluationCache::new(10_000));
    let game = fen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
    let mut evaluator = HandEvaluator::default();
    let mut search = |leaves| {
        let mut searcher = Searcher::new(SearcherConfig::default(), Some(Arc::clone(&cache)), 1);
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
