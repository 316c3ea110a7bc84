//! Whatever a GUI sends, there is one legal answer.

use super::*;

#[test]
fn every_go_is_answered_once_and_legally() {
    let mut gui = Gui::start();
    let mut game = GameHistory::default();
    let mut moves = String::new();
    let limits = [
        "nodes 1",
        "nodes 0",
        "movetime 0",
        "movetime 5",
        "depth 1",
        "depth 3",
        "wtime 0 btime 0",
        "wtime -5 btime -5 winc 0",
        "wtime 50 btime 50 winc 10 binc 10",
        "movestogo 1 wtime 30 btime 30",
        "mate 1 nodes 40",
        "nodes 30 depth 9 movetime 20",
    ];
    for round in 0..60 {
        gui.send(&format!("position startpos moves{moves}"));
        gui.send(&format!("go {}", limits[round % limits.len()]));
        let (best, _) = gui.best_move();
        let m = parse_uci(game.position(), &best).unwrap_or_else(|| panic!("{best} in {moves}"));
        game.push(m);
        moves += &format!(" {best}");
        if game.end().is_some() {
            break;
        }
    }
    gui.assert_no_move();
}

#[test]
fn ready_after_a_move_means_that_everything_is_loaded() {
    let mut gui = Gui::start();
    for _ in 0..100 {
        gui.send("go nodes 1");
        gui.best_move();
        gui.send("setoption name Network value nowhere\nisready");
        let answers = gui.until("readyok");
        let named = |line: &String| line.contains("there is no network");
        assert!(answers.iter().any(named), "{answers:?}");
        gui.send("setoption name Network value hand");
    }
}

#[test]
fn nonsense_is_named_and_survived() {
    let mut gui = Gui::start();
    for (line, says) in [
        ("hello world", "unknown command"),
        ("position", "needs startpos or fen"),
        (
            "position fen 8/8/8/8/8/8/8/8 w - - 0 1",
            "not a legal position",
        ),
        ("position fen hello w", "not a FEN"),
        (
            "position startpos moves e2e4 e2e4 d7d5",
            "move 2, \"e2e4\", is not legal",
        ),
        ("position startpos moves e2e4 0000", "move 2"),
        ("setoption name Contempt value 3", "no option"),
        ("setoption name MultiPV value -1", "1 to 218"),
        ("setoption", "no option"),
        ("\u{1F600}\u{0}\u{7}", "unknown command"),
    ] {
        gui.send(line);
        let answer = gui.next();
        assert!(
            answer.starts_with("info string") && answer.contains(says),
            "{answer}"
        );
    }
    for quiet in ["", "   ", "debug on", "register later", "stop", "ponderhit"] {
        gui.send(quiet);
    }
    gui.send("  isready  \r");
    assert!(gui.until("readyok").len() <= 2);
    gui.send("go nodes 20 searchmoves e2e5 c7c5");
    assert!(gui.next().contains("searchmoves: e2e5 is not legal"));
    let (best, _) = gui.best_move();
    assert_eq!(best, "c7c5", "the legal part of the last position stands");
}

#[test]
fn a_position_that_was_refused_is_not_answered_by_the_one_before() {
    let mut gui = Gui::start();
    let long = format!("startpos moves{}", " g1f3 g8f6 f3g1 f6g8".repeat(4000));
    for (position, says) in [
        ("fen 8/8/8/8/8/8/8/8 w - - 0 1", "not a legal position"),
        (long.as_str(), "more than 65536 bytes"),
        ("", "needs startpos or fen"),
        ("fen", "needs startpos or fen"),
        ("moves e2e4", "needs startpos or fen"),
    ] {
        gui.send(&format!("position {position}"));
        let answer = gui.next();
        assert!(answer.contains(says), "{answer}");
        gui.send("go nodes 5");
        let nothing = "info string error: there is no position to search";
        assert_eq!(gui.until("bestmove"), [nothing, "bestmove (none)"]);
        gui.send("go infinite");
        assert_eq!(gui.next(), nothing);
        gui.assert_no_move();
        gui.send("stop");
        assert_eq!(gui.next(), "bestmove (none)");
        gui.send("position startpos");
        gui.send("go nodes 5");
        assert!(is_legal("startpos", &gui.best_move().0));
    }
}

#[test]
fn positions_that_people_set_up_are_searched() {
    let mut gui = Gui::start();
    let sound = "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1";
    for (fen, warns) in [
        ("4k3/8/8/8/8/8/8/R3K3 w Q -", false),
        ("4k3/8/8/8/8/8/8/R3K3 w Q - 3", false),
        ("4k3/8/8/8/8/8/8/R3K3 w Q - 0 0", false),
        ("4k3/8/8/8/8/8/8/R3K3 w KQkq e3 0 1", true),
    ] {
        gui.send(&format!("position fen {fen}"));
        gui.send("go nodes 20");
        let (best, lines) = gui.best_move();
        assert!(is_legal(sound, &best), "{fen}: {best}");
        let warned = |line: &String| line.contains("searched anyway");
        assert_eq!(lines.iter().any(warned), warns, "{lines:?}");
    }
}

#[test]
fn a_game_of_hundreds_of_plies_is_followed() {
    let mut gui = Gui::start();
    let position = format!("startpos moves{}", " g1f3 g8f6 f3g1 f6g8".repeat(200));
    gui.send(&format!("position {position}"));
    gui.send("go nodes 20");
    let (best, lines) = gui.best_move();
    assert!(is_legal(&position, &best), "{best}");
    assert!(
        !lines.iter().any(|line| line.contains("error")),
        "{lines:?}"
    );
}

#[test]
fn castling_is_written_as_the_gui_wants_it() {
    let castles = |gui: &mut Gui, start: &str, text: &str| {
        gui.send(&format!("position fen {start}"));
        gui.send(&format!("go nodes 10 searchmoves {text}"));
        gui.best_move().0
    };
    let standard = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    let other = "4k3/8/8/8/8/8/8/1R2K2R w HB - 0 1";
    let mut gui = Gui::start();
    assert_eq!(castles(&mut gui, standard, "e1g1"), "e1g1");
    assert_eq!(castles(&mut gui, standard, "e1h1"), "e1g1");
    gui.send("setoption name UCI_Chess960 value true");
    assert_eq!(castles(&mut gui, standard, "e1g1"), "e1h1");
    assert_eq!(castles(&mut gui, other, "e1b1"), "e1b1");
}

#[test]
fn a_network_that_is_not_there_is_named_and_moves_are_still_legal() {
    let mut gui = Gui::with_network("nowhere");
    gui.send("isready");
    assert_eq!(
        gui.until("readyok")[0],
        "info string error: there is no network \"nowhere\""
    );
    gui.send("go nodes 10");
    assert!(is_legal("startpos", &gui.best_move().0));
    gui.send("setoption name network value hand");
    gui.send("go nodes 10");
    let (_, lines) = gui.best_move();
    assert!(lines[0].contains("network of a test"));
}

#[test]
fn why_a_network_cannot_be_read_is_said_once() {
    let mut gui = Gui::with_network("damaged");
    gui.send("isready");
    let once = "info string error: cannot read damaged: it ends early";
    assert_eq!(gui.until("readyok")[0], once);
    gui.send("go nodes 1");
    let (_, lines) = gui.best_move();
    assert!(lines.contains(&format!("{once}; moving without thought")));
}

#[test]
fn a_device_that_fails_costs_no_game() {
    let mut gui = Gui::with_network("broken");
    for _ in 0..3 {
        gui.send("go nodes 1000");
        let (best, lines) = gui.best_move();
        assert!(is_legal("startpos", &best));
        assert!(
            lines.iter().any(|line| line.contains("the device is gone")),
            "{lines:?}"
        );
    }
}

#[test]
fn options_change_between_searches() {
    let mut gui = Gui::start();
    for option in [
        "CPuct value 3.5",
        "FpuStrategy value absolute",
        "Hash value 32",
        "MinibatchSize value 1",
        "Clear Hash",
        "NoiseEpsilon value 0.25",
        "Temperature value 1",
        "PolicyTemperature value 2",
    ] {
        gui.send(&format!("setoption name {option}"));
        gui.send("go nodes 50");
        let (best, lines) = gui.best_move();
        assert!(is_legal("startpos", &best) && !lines.iter().any(|line| line.contains("error")));
    }
}

#[test]
fn the_spaces_of_a_path_are_kept() {
    let mut gui = Gui::start();
    gui.send("setoption name Network value /my  networks/new   one");
    gui.send("isready");
    let refused = "info string error: there is no network \"/my  networks/new   one\"";
    assert_eq!(gui.until("readyok")[0], refused);
}
