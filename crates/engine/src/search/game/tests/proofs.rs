//! Mates and draws that are certain.

use super::*;

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
        assert_eq!(searcher.stats().mate, Some(moves), "{text}");
        let line = searcher.lines(1).remove(0);
        assert_eq!(line.mate, Some(moves));
        let mut end = game.clone();
        line.moves.iter().for_each(|m| end.push(*m));
        assert!(
            end.position().is_checkmate(),
            "{text}: the line ends in mate"
        );
        assert_eq!(searcher.margin(), BestMoveMargin::Decided);
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

/// Draws by repetition are not proven, as they are draws of the game and not of the position.
#[test]
fn a_small_ending_that_is_drawn_is_exhausted() {
    let game = fen("7k/7p/7P/8/8/8/8/K7 w - - 95 90");
    let mut searcher = searcher();
    searcher.begin(&game, &[]);
    run(&mut searcher, &mut HandEvaluator::default(), 1, 50_000);
    assert!(!searcher.is_over() && !searcher.is_exhausted());
    run(&mut searcher, &mut HandEvaluator::default(), 1, 250_000);
    assert!(!searcher.is_over() && searcher.is_exhausted());
    // Another root is another search.
    searcher.begin(&GameHistory::default(), &[]);
    assert!(!searcher.is_exhausted());
    run(&mut searcher, &mut HandEvaluator::default(), 1, 100);
    searcher.search.tree.node_mut(NodeId::ROOT).visits = MOST_VISITS;
    assert!(searcher.is_exhausted());
}

/// A move that was never visited is better than one that loses, but nothing is known of it to be shown.
#[test]
fn lines_show_moves_that_lose_and_none_that_was_never_visited() {
    let mut searcher = searcher();
    searcher.begin(&GameHistory::default(), &[]);
    run(&mut searcher, &mut UniformEvaluator::default(), 1, 16);
    let first_moves = |searcher: &Searcher| -> Vec<Move> {
        let lines = searcher.lines(50).into_iter();
        lines.map(|line| line.moves[0]).collect()
    };
    let mut shown = first_moves(&searcher);
    assert!((2..20).contains(&shown.len()), "{shown:?}");
    let edges = searcher.search.tree.edges_of_root();
    let visited: Vec<NodeId> = edges.iter().filter_map(Edge::child).collect();
    let best = edges[searcher.ranked(NodeId::ROOT)[0]].child().unwrap();
    searcher.search.tree.node_mut(best).proof = Proof::Won(1);
    // It is the last line now.
    shown.rotate_left(1);
    assert_eq!(first_moves(&searcher), shown);
    for node in visited {
        searcher.search.tree.node_mut(node).proof = Proof::Won(1);
    }
    let lines = searcher.lines(50);
    assert_eq!((lines[0].visits, lines[0].mate), (0, None));
    assert_eq!(lines.len(), shown.len() + 1);
    assert!(lines[1..].iter().all(|line| line.mate == Some(-1)));
}

#[test]
fn with_the_solver_mates_are_seen_a_move_earlier() {
    let config = |solver| SearcherConfig {
        params: SearchParams {
            noise: None,
            solver,
            ..SearchParams::default()
        },
        ..SearcherConfig::default()
    };
    for (text, moves) in MATES {
        let game = fen(text);
        let mut visits = [false, true].map(|solver| {
            let mut searcher = Searcher::new(config(solver), None, 1);
            searcher.begin(&game, &[]);
            run(&mut searcher, &mut UniformEvaluator::default(), 4, 50_000);
            assert_eq!(searcher.stats().mate, Some(moves), "{text}");
            let mut end = game.clone();
            let line = searcher.lines(1).remove(0);
            line.moves.iter().for_each(|m| end.push(*m));
            assert!(end.position().is_checkmate(), "{text}: {:?}", line.moves);
            check_tree(&searcher, NodeId::ROOT);
            searcher.stats().new_visits
        });
        if moves > 1 {
            visits.reverse();
            assert!(
                visits.is_sorted_by(|with, without| with < without),
                "{text}: {visits:?}"
            );
        }
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
