//! Counting lines instead of searching.

use super::*;

/// The counts of `go perft`, each first move with its own, and the sum that was told.
fn perft(gui: &mut Gui, plies: u32) -> (Vec<(String, u64)>, u64) {
    gui.send(&format!("go perft {plies}"));
    let mut lines = gui.until("Nodes searched: ");
    assert_eq!(gui.next(), "");
    let sum = lines.pop().unwrap()["Nodes searched: ".len()..].parse::<u64>();
    assert_eq!(lines.pop().unwrap(), "");
    let count = |line: String| {
        let (text, lines) = line.split_once(": ").unwrap();
        (text.to_owned(), lines.parse::<u64>().unwrap())
    };
    (lines.into_iter().map(count).collect(), sum.unwrap())
}

#[test]
fn perft_counts_lines_for_each_move() {
    let mut gui = Gui::start();
    let (moves, sum) = perft(&mut gui, 1);
    assert_eq!((moves.len(), sum), (20, 20));
    assert!(moves.contains(&("e2e4".to_owned(), 1)), "{moves:?}");
    let (moves, sum) = perft(&mut gui, 2);
    assert!(moves.contains(&("e2e4".to_owned(), 20)), "{moves:?}");
    assert_eq!(sum, 400);
    assert_eq!(perft(&mut gui, 5).1, 4_865_609);
    gui.send("position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -");
    let (moves, sum) = perft(&mut gui, 3);
    assert_eq!(sum, 97_862);
    assert!(moves.iter().any(|(text, _)| text == "e1g1"), "{moves:?}");
    gui.send("setoption name UCI_Chess960 value true");
    let (moves, _) = perft(&mut gui, 1);
    assert!(moves.iter().any(|(text, _)| text == "e1h1"), "{moves:?}");
    gui.send("position fen 7k/5KQ1/8/8/8/8/8/8 b - - 0 1");
    assert_eq!(perft(&mut gui, 3), (Vec::new(), 0));
    assert_eq!(gui.end(), Vec::<String>::new());
}

#[test]
fn perft_that_would_never_end_is_stopped() {
    let mut gui = Gui::start();
    let stopped = "info string perft was stopped; the counts printed so far are complete";
    gui.send("go perft 32");
    gui.send("isready");
    assert_eq!(gui.next(), "readyok");
    gui.send("stop");
    assert_eq!(gui.next(), stopped);
}

#[test]
fn perft_ends_before_what_comes_after_it_as_in_scripts() {
    let mut gui = Gui::start();
    gui.send("go perft 4");
    gui.send("go nodes 20");
    assert!(gui.until("Nodes searched: 197281").len() > 20);
    assert_eq!(gui.next(), "");
    assert!(is_legal("startpos", &gui.best_move().0));
    gui.send("go perft 4");
    gui.send("quit");
    let told = gui.end();
    assert!(
        told.contains(&"Nodes searched: 197281".to_owned()),
        "{told:?}"
    );
}

#[test]
fn perft_of_nothing_is_refused() {
    let mut gui = Gui::start();
    for go in ["go perft", "go perft 0", "go perft 33", "go perft -1"] {
        gui.send(go);
        assert_eq!(
            gui.next(),
            "info string error: go perft takes 1 to 32 plies"
        );
    }
    gui.send("position fen 8/8/8/8/8/8/8/8 w - - 0 1");
    gui.next();
    gui.send("go perft 2");
    let nothing = "info string error: there is no position to count from";
    assert_eq!(gui.next(), nothing);
}
