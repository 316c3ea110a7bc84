//! Conversations: what GUIs send, and what they get.

use std::collections::HashSet;
use std::io::{BufReader, BufWriter, PipeReader, PipeWriter, Write as _, pipe};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::parse_uci;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_engine::dummy::HandEvaluator;
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError};

use super::options::tests::options;
use super::*;

/// Far longer than anything should take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Networks without a network: `hand` plays, `slow` takes its time, `broken` fails after a few
/// batches, and others do not exist.
struct TestNetworks;

impl Networks for TestNetworks {
    fn open(&mut self, choice: &NetworkChoice) -> anyhow::Result<Opened> {
        let (pause, batches) = match choice.network.as_str() {
            "hand" => (Duration::ZERO, u32::MAX),
            "slow" => (Duration::from_millis(5), u32::MAX),
            "broken" => (Duration::ZERO, 20),
            other => anyhow::bail!("there is no network\n{other:?}"),
        };
        Ok(Opened {
            evaluator: Box::new(TestEvaluator {
                hand: HandEvaluator::default(),
                pause,
                batches,
            }),
            about: Some("network of a test".to_owned()),
            minibatch: 8,
        })
    }
}

struct TestEvaluator {
    hand: HandEvaluator,
    pause: Duration,
    batches: u32,
}

impl Evaluator for TestEvaluator {
    fn input(&self) -> InputEncoding {
        self.hand.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.hand.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        thread::sleep(self.pause);
        self.batches = self
            .batches
            .checked_sub(1)
            .ok_or_else(|| EvaluatorError("the device is gone".to_owned()))?;
        self.hand.evaluate(batch, answer)
    }
}

/// A GUI that talks to a session.
struct Gui {
    to: Option<BufWriter<PipeWriter>>,
    from: Receiver<String>,
    session: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Gui {
    fn start() -> Self {
        Self::with_network("hand")
    }

    fn with_network(network: &str) -> Self {
        let (input, to) = pipe().unwrap();
        let (from, output) = pipe().unwrap();
        let mut options = options();
        options.network.network = network.to_owned();
        options.hash = 16;
        let talk = || {
            session::talk(
                BufReader::new(input),
                Output::new(output),
                options,
                TestNetworks,
            )
        };
        let session = thread::spawn(talk);
        Self {
            to: Some(BufWriter::new(to)),
            from: lines_of(from),
            session: Some(session),
        }
    }

    fn send(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        writeln!(to, "{line}").and_then(|()| to.flush()).unwrap();
    }

    fn next(&self) -> String {
        self.from.recv_timeout(PATIENCE).expect("an answer")
    }

    /// Everything up to the first line that begins so.
    fn until(&self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while !lines
            .last()
            .is_some_and(|line: &String| line.starts_with(start))
        {
            lines.push(self.next());
        }
        lines
    }

    /// The move of the next `bestmove`, and all lines up to there.
    fn best_move(&self) -> (String, Vec<String>) {
        let lines = self.until("bestmove");
        let words = lines[lines.len() - 1].split(' ').nth(1).unwrap();
        (words.to_owned(), lines)
    }

    /// Everything that has not been read yet says nothing of a move.
    fn assert_no_move(&mut self) {
        self.send("isready");
        let lines = self.until("readyok");
        assert!(
            !lines.iter().any(|line| line.starts_with("bestmove")),
            "{lines:?}"
        );
    }

    /// Closes the input and gives what was still said.
    fn end(mut self) -> Vec<String> {
        self.to = None;
        self.session.take().unwrap().join().unwrap().unwrap();
        self.from.iter().collect()
    }
}

fn lines_of(from: PipeReader) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in std::io::BufRead::lines(BufReader::new(from)) {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn is_legal(position: &str, text: &str) -> bool {
    let game = crate::position_line::parse(position).unwrap();
    parse_uci(game.position(), text).is_some()
}

/// The number after a word of an `info` line.
fn number(line: &str, word: &str) -> i64 {
    let mut words = line.split(' ').skip_while(|w| *w != word);
    words
        .nth(1)
        .unwrap_or_else(|| panic!("{word} in {line}"))
        .parse()
        .unwrap()
}

#[test]
fn a_whole_conversation() {
    let mut gui = Gui::start();
    gui.send("uci");
    let lines = gui.until("uciok");
    assert!(lines[0].starts_with("id name Rookery"));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("option name UCI_Chess960"))
    );
    gui.send("isready");
    gui.until("readyok");
    gui.send("ucinewgame");
    gui.send("position startpos moves e2e4 e7e5");
    gui.send("go nodes 400");
    let (best, lines) = gui.best_move();
    assert!(is_legal("startpos moves e2e4 e7e5", &best));
    let last = &lines[lines.len() - 2];
    assert_eq!(number(last, "nodes"), 400, "{last}");
    for word in ["depth", "seldepth", "multipv", "nps", "hashfull", "time"] {
        assert!(number(last, word) >= 0, "{last}");
    }
    assert!(
        last.contains(" score cp ") && last.contains(&format!(" pv {best}")),
        "{last}"
    );
    assert!(lines[lines.len() - 1].contains(" ponder "));
    gui.send("quit");
    assert_eq!(gui.end(), Vec::<String>::new());
}

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
fn nonsense_is_named_and_survived() {
    let mut gui = Gui::start();
    for (line, says) in [
        ("hello world", "unknown command"),
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
        ("position", "unknown command"),
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
