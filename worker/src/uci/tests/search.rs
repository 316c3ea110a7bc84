//! Searches: how they begin, end, and what they say.

use super::*;

#[test]
fn mates_are_announced() {
    let mut gui = Gui::start();
    for (position, mate) in [
        ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", 1),
        ("k7/8/1K6/8/8/8/8/7R b - - 0 1", -1),
        ("k7/8/8/8/8/8/6R1/K6R w - - 0 1", 2),
    ] {
        gui.send(&format!("position fen {position}"));
        gui.send("go nodes 100000");
        let (best, lines) = gui.best_move();
        let last = &lines[lines.len() - 2];
        assert!(last.contains(&format!(" score mate {mate} ")), "{last}");
        assert!(last.contains(&format!(" pv {best}")), "{last}");
    }
}

#[test]
fn a_finished_game_has_no_move() {
    let mut gui = Gui::start();
    gui.send("position fen 7k/5KQ1/8/8/8/8/8/8 b - - 0 1");
    gui.send("go wtime 1000 btime 1000");
    assert_eq!(
        gui.until("bestmove"),
        ["info depth 0 score mate 0", "bestmove (none)"]
    );
    gui.send("setoption name UCI_ShowWDL value true");
    gui.send("position fen 7k/5K2/6Q1/8/8/8/8/8 b - - 0 1");
    gui.send("go infinite");
    assert_eq!(gui.next(), "info depth 0 score cp 0 wdl 0 1000 0");
    gui.assert_no_move();
    gui.send("stop");
    assert_eq!(gui.next(), "bestmove (none)");
}

#[test]
fn an_endless_search_ends_when_told_and_not_before() {
    let mut gui = Gui::start();
    for position in ["startpos", "fen 6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"] {
        for go in [
            "go infinite",
            "go ponder wtime 1 btime 1",
            "go",
            "go ponder nodes 5",
        ] {
            gui.send(&format!("position {position}"));
            gui.send(go);
            gui.until("info depth");
            gui.assert_no_move();
            gui.send("stop");
            gui.until("bestmove");
        }
    }
    assert_eq!(gui.end(), Vec::<String>::new());
}

#[test]
fn a_long_search_is_heard_of_every_second() {
    let mut gui = Gui::with_network("slow");
    for position in ["startpos", "fen 6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"] {
        gui.send(&format!("position {position}"));
        gui.send("go infinite");
        let mut last = Instant::now();
        for _ in 0..3 {
            gui.until("info depth");
            assert!(last.elapsed() < PATIENCE / 4);
            last = Instant::now();
        }
        gui.send("stop");
        gui.best_move();
    }
}

#[test]
fn a_ponder_hit_starts_the_clock() {
    let mut gui = Gui::start();
    gui.send("position startpos moves e2e4 e7e5");
    gui.send("go ponder wtime 3000 btime 3000");
    gui.until("info depth");
    gui.assert_no_move();
    gui.send("ponderhit");
    let (best, _) = gui.best_move();
    assert!(is_legal("startpos moves e2e4 e7e5", &best));
    gui.send("ponderhit");
    gui.send("stop");
    gui.assert_no_move();
}

#[test]
fn readiness_is_confirmed_during_a_search() {
    let mut gui = Gui::with_network("slow");
    gui.send("go infinite");
    gui.until("info depth");
    for _ in 0..3 {
        gui.send("isready");
        gui.until("readyok");
    }
    gui.send("stop");
    gui.best_move();
}

#[test]
fn a_search_in_the_way_of_another_answers_first() {
    let mut gui = Gui::start();
    gui.send("go infinite");
    gui.send("position fen 6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1");
    gui.send("go nodes 200");
    assert!(is_legal("startpos", &gui.best_move().0));
    assert_eq!(gui.best_move().0, "a1a8");
    assert_eq!(gui.end(), Vec::<String>::new());
}

#[test]
fn several_lines_are_shown_when_asked_for() {
    let mut gui = Gui::start();
    gui.send("setoption name MultiPV value 3");
    gui.send("setoption name UCI_ShowWDL value true");
    gui.send("go nodes 300");
    let (best, lines) = gui.best_move();
    let shown: Vec<&String> = lines.iter().rev().skip(1).take(3).rev().collect();
    let mut first_moves = HashSet::new();
    for (index, line) in shown.iter().enumerate() {
        assert_eq!(number(line, "multipv"), index as i64 + 1, "{line}");
        let at = line.split(' ').skip_while(|word| *word != "wdl").skip(1);
        let wdl: i64 = at.take(3).map(|n| n.parse::<i64>().unwrap()).sum();
        assert_eq!(wdl, 1000, "{line}");
        first_moves.insert(
            line.split(" pv ")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap(),
        );
    }
    assert_eq!(first_moves.len(), 3);
    assert!(shown[0].contains(&format!(" pv {best}")));
}

#[test]
fn the_end_of_input_ends_a_search_and_the_session() {
    let mut gui = Gui::with_network("slow");
    gui.send("go infinite");
    gui.until("info depth");
    let rest = gui.end();
    let moves = rest
        .iter()
        .filter(|line| line.starts_with("bestmove"))
        .count();
    assert_eq!(moves, 1, "{rest:?}");
}

#[test]
fn a_new_game_during_a_search_costs_no_answer() {
    let mut gui = Gui::with_network("slow");
    gui.send("go infinite");
    gui.until("info depth");
    gui.send("ucinewgame");
    gui.assert_no_move();
    gui.send("position startpos moves e2e4");
    gui.send("stop");
    assert!(is_legal("startpos", &gui.best_move().0));
    gui.send("go nodes 3");
    gui.send("ucinewgame");
    gui.send("go nodes 3");
    for _ in 0..2 {
        assert!(is_legal("startpos moves e2e4", &gui.best_move().0));
    }
    assert_eq!(gui.end(), Vec::<String>::new());
}

#[test]
fn a_new_game_is_played_with_the_network_that_is_best_by_then() {
    let mut gui = Gui::with_network("best");
    for number in [1, 2, 3] {
        gui.send("go nodes 3");
        let said = gui.best_move().1.join("\n");
        let about = format!("network of a test, opened {number}");
        assert!(said.contains(&about), "{said}");
        gui.send("go nodes 3");
        let said = gui.best_move().1.join("\n");
        assert!(
            !said.contains("of a test"),
            "within a game it stays: {said}"
        );
        gui.send("ucinewgame");
    }
}

#[test]
fn a_coordinator_that_is_away_at_a_new_game_leaves_the_network_that_is_here() {
    let mut gui = Gui::with_network("lost");
    gui.send("go nodes 3");
    gui.best_move();
    gui.send("ucinewgame");
    gui.send("go nodes 3");
    let (best, lines) = gui.best_move();
    assert!(is_legal("startpos", &best));
    let said = lines.join("\n");
    assert!(said.contains("the coordinator is away"), "{said}");
    assert!(
        !said.contains("error:") && !said.contains("of a test"),
        "{said}"
    );
}

#[test]
fn nothing_is_kept_from_the_game_before() {
    let mut gui = Gui::start();
    let visits = |gui: &mut Gui| {
        gui.send("go nodes 1");
        let (_, lines) = gui.best_move();
        number(&lines[lines.len() - 2], "nodes")
    };
    gui.send("go nodes 300");
    gui.send("ucinewgame");
    gui.best_move();
    assert!(visits(&mut gui) < 10);
    gui.send("go nodes 300");
    gui.best_move();
    assert!(visits(&mut gui) >= 300);
}

#[test]
fn tables_that_cannot_be_used_are_told_of_and_games_are_played_all_the_same() {
    let mut gui = Gui::start();
    gui.send("setoption name SyzygyPath value /there/is/nothing");
    gui.send("isready");
    let said = gui.until("readyok").join("\n");
    assert!(
        said.contains("SyzygyPath") && said.contains("/there/is/nothing"),
        "{said}"
    );
    gui.send("position startpos");
    gui.send("go nodes 20");
    let (best, lines) = gui.best_move();
    assert!(is_legal("startpos", &best));
    assert!(
        lines.iter().any(|line| line.contains(" tbhits 0 ")),
        "{lines:?}"
    );
}
