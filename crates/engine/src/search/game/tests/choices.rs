//! Which move is chosen, and where search ends.

use super::*;

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
    assert_eq!(searcher.stats().mate, Some(1), "all moves count again");
}

#[test]
fn play_goes_on_after_a_draw_that_was_not_claimed() {
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
    let config = SearcherConfig {
        tree_bytes: 0,
        ..SearcherConfig::default()
    };
    let mut searcher = Searcher::new(config, None, 1);
    searcher.begin(&GameHistory::default(), &[]);
    let mut evaluator = HandEvaluator::default();
    let mut gathered = Gathered::new(&evaluator);
    let mut answer = Evaluations::default();
    for _ in 0..1000 {
        searcher.gather(
            GatherBudget {
                leaves: 16,
                visits: 1000,
            },
            &mut gathered,
        );
        evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
        searcher.apply(&mut gathered, &answer).unwrap();
    }
    assert!(searcher.is_full(16) && searcher.stats().fullness > 0.7);
    assert!(searcher.search.tree.memory() < 2 << 20);
    check_tree(&searcher, NodeId::ROOT);
}

/// A mate in one is a node that is added beside the leaf.
#[test]
fn a_small_tree_keeps_its_memory_whatever_mates_it_finds() {
    let text = "rr4k1/5ppp/8/8/8/8/5PPP/RR4K1 w - - 0 1";
    for leaves in 1..=8 {
        let config = SearcherConfig {
            tree_bytes: 0,
            ..SearcherConfig::default()
        };
        let mut searcher = Searcher::new(config, None, 1);
        let memory = searcher.search.tree.memory();
        searcher.begin(&fen(text), &[]);
        let mut evaluator = UniformEvaluator::default();
        run(&mut searcher, &mut evaluator, leaves, 5000);
        assert!(searcher.is_full(1) && !searcher.is_over());
        assert_eq!(searcher.search.tree.memory(), memory, "{leaves} leaves");
    }
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
    let mut config = SearcherConfig::default();
    config.params.noise = Some(Noise::default());
    let priors = |seed| {
        let mut searcher = Searcher::new(config.clone(), None, seed);
        searcher.begin(&GameHistory::default(), &[]);
        run(&mut searcher, &mut UniformEvaluator::default(), 4, 20);
        let edges = searcher.search.tree.edges_of_root().iter();
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
        searcher.margin(),
        BestMoveMargin::Visits(lines[0].visits - lines[1].visits)
    );
    let game = GameHistory::default();
    let only = parse_uci(game.position(), "e2e4").unwrap();
    let mut searcher = self::searcher();
    searcher.begin(&game, &[only]);
    run(&mut searcher, &mut HandEvaluator::default(), 4, 20);
    assert_eq!(searcher.margin(), BestMoveMargin::Decided);
}

#[test]
fn a_search_is_calm_once_more_visits_hardly_change_their_distribution() {
    let calm = |minimum_gain, visits| {
        let mut config = SearcherConfig::default();
        config.params.kld_stop = Some(KldStop {
            minimum_gain,
            interval: 20,
        });
        let mut searcher = Searcher::new(config, None, 1);
        searcher.begin(&GameHistory::default(), &[]);
        run(&mut searcher, &mut HandEvaluator::default(), 4, visits);
        let calm = searcher.stats().kld_converged;
        searcher.begin(&GameHistory::default(), &[]);
        assert!(!searcher.stats().kld_converged, "another search has begun");
        calm
    };
    assert!(!calm(1.0, 20), "there is nothing to compare with");
    assert!(calm(1.0, 60));
    assert!(!calm(0.0, 400), "some change is left");
    assert!(
        !searched(&GameHistory::default(), 4, 60)
            .stats()
            .kld_converged
    );
}

#[test]
fn before_the_first_evaluation_there_is_no_line_and_nothing_to_choose() {
    let mut searcher = searcher();
    searcher.begin(&GameHistory::default(), &[]);
    assert!(searcher.lines(3).is_empty());
    assert!(searcher.choose(0.0).is_none());
    assert_eq!(searcher.margin(), BestMoveMargin::Decided);
    assert_eq!(searcher.stats().visits, 0);
}
