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

mod perft;
mod robustness;
mod search;

/// Far longer than anything should take.
const PATIENCE: Duration = Duration::from_secs(240);

/// Networks without a network: `hand` plays, `slow` takes its time, `broken` fails after a few
/// batches, `damaged` cannot be read, `best` is another one when it is asked for again, `lost` cannot be asked for, and others do
/// not exist.
#[derive(Default)]
struct TestNetworks {
    /// Networks that were opened.
    opened: u32,
}

impl Networks for TestNetworks {
    fn open(&mut self, choice: &NetworkChoice) -> anyhow::Result<Opened> {
        let (pause, batches) = match choice.network.as_str() {
            "hand" | "best" | "lost" => (Duration::ZERO, u32::MAX),
            "slow" => (Duration::from_millis(5), u32::MAX),
            "broken" => (Duration::ZERO, 20),
            "damaged" => {
                let cause = anyhow::anyhow!("it ends early");
                return Err(cause.context("cannot read damaged: it ends early"));
            }
            other => anyhow::bail!("there is no network\n{other:?}"),
        };
        self.opened += 1;
        Ok(Opened {
            evaluator: Box::new(TestEvaluator {
                hand: HandEvaluator::default(),
                pause,
                batches,
            }),
            about: Some(format!("network of a test, opened {}", self.opened)),
            minibatch: 8,
        })
    }

    fn is_outdated(&mut self, choice: &NetworkChoice) -> anyhow::Result<bool> {
        anyhow::ensure!(choice.network != "lost", "the coordinator is away");
        Ok(choice.network == "best")
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
                TestNetworks::default(),
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
    let game = rookery_analysis::position_line::parse(position).unwrap();
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
