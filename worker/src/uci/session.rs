//! The conversation with a GUI.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::chess::moves::parse_uci;
use rookery_common::chess::{GameHistory, StartError};

use super::command::{Command, Go};
use super::control::Control;
use super::networks::Networks;
use super::options::Options;
use super::output::Output;
use super::player::{GoOrder, Order, Player};
use rookery_analysis::lines::next_line;
use rookery_analysis::position_line::MAX_LINE;

/// How long a search that was told to stop may take to answer, before the program ends anyway.
const GRACE: Duration = Duration::from_secs(3);

/// Talks until the GUI says `quit` or closes the input.
///
/// # Errors
///
/// If the input cannot be read, or no thread can be started.
pub fn talk<N: Networks + 'static>(
    mut input: impl BufRead,
    output: Output,
    options: Options,
    networks: N,
) -> anyhow::Result<()> {
    let (orders, received) = channel();
    let (done, ended) = channel::<()>();
    let searches = Arc::new(AtomicUsize::new(0));
    let (counted, player_output) = (Arc::clone(&searches), output.clone());
    thread::Builder::new()
        .name("search".to_owned())
        .spawn(move || {
            Player::new(networks, player_output).work(&received, &counted);
            drop(done);
        })
        .context("the search thread does not start")?;
    let mut session = Session {
        output,
        options,
        game: GameHistory::default(),
        refused: false,
        current: None,
        counted: false,
        orders,
        searches,
    };
    while let Some(line) = next_line(&mut input)? {
        if line.len() > MAX_LINE {
            // It can only have been a position.
            session.refuse(&format!("a line of more than {MAX_LINE} bytes is ignored"));
            continue;
        }
        match Command::parse(&String::from_utf8_lossy(&line)) {
            Command::Quit => break,
            command => session.obey(command),
        }
    }
    session.end_search();
    let grace = if session.counted {
        Duration::MAX
    } else {
        GRACE
    };
    // A network that is still being fetched needs no word.
    let searched = session.current.is_some();
    drop(session);
    if ended.recv_timeout(grace) == Err(RecvTimeoutError::Timeout) && searched {
        tracing::warn!("the search did not end in time");
    }
    Ok(())
}

struct Session {
    output: Output,
    options: Options,
    /// What was set up last.
    game: GameHistory,
    /// Whether what was to be set up after it is no position.
    refused: bool,
    /// The last `go`, which may be over.
    current: Option<Running>,
    /// Whether moves were counted in this conversation, which may take any time.
    counted: bool,
    orders: Sender<Order>,
    /// Searches that are not answered yet.
    searches: Arc<AtomicUsize>,
}

/// A `go` that was ordered.
struct Running {
    control: Arc<Control>,
    /// It counts moves instead of searching.
    counts: bool,
}

impl Session {
    fn obey(&mut self, command: Command) {
        match command {
            Command::Uci => self.introduce(),
            Command::IsReady => self.ready(),
            Command::SetOption { name, value } => {
                if let Err(error) = self.options.set(&name, &value) {
                    self.output.say(&format!("error: {error}"));
                }
            }
            Command::NewGame => self.order(Order::NewGame),
            Command::Position { start, moves } => self.set_up(&start, &moves),
            Command::NoPosition => self.refuse("position needs startpos or fen and a FEN"),
            Command::Go(go) => self.go(go),
            Command::Stop => self.stop(),
            Command::PonderHit => {
                if let Some(running) = &self.current {
                    running.control.ponder_hit(Instant::now());
                }
            }
            Command::Unknown(line) => self.output.say(&format!("unknown command: {line}")),
            Command::Nothing | Command::Quit => {}
        }
    }

    fn introduce(&self) {
        let version = env!("CARGO_PKG_VERSION");
        self.output.line(&format!("id name Rookery {version}"));
        self.output.line("id author the Rookery developers");
        for line in self.options.declarations() {
            self.output.line(&line);
        }
        self.output.line("uciok");
    }

    /// While a search runs everything is ready; else what was asked for may have to be loaded.
    fn ready(&self) {
        if self.searches.load(Ordering::Acquire) > 0 {
            self.output.line("readyok");
        } else {
            self.order(Order::Ready(self.options.clone()));
        }
    }

    /// Sets up a position: as far as its moves are legal, or not at all if its start is no
    /// position.
    fn set_up(&mut self, start: &str, moves: &[String]) {
        let start = self.start(start);
        self.refused = start.is_err();
        let mut game = match start {
            Ok(game) => game,
            Err(error) => return self.output.say(&format!("error: {error}")),
        };
        for (index, text) in moves.iter().enumerate() {
            let Some(m) = parse_uci(game.position(), text) else {
                let shown: String = text.chars().take(20).collect();
                let number = index + 1;
                self.output.say(&format!(
                    "error: move {number}, {shown:?}, is not legal; it and what follows is ignored"
                ));
                break;
            };
            game.push(m);
        }
        self.game = game;
    }

    /// Says why a line sets up no position. The one before is not searched in its place.
    fn refuse(&mut self, why: &str) {
        self.refused = true;
        self.output.say(&format!("error: {why}"));
    }

    /// The start of a game: `startpos` or a FEN, also one that is only nearly right.
    fn start(&self, start: &str) -> Result<GameHistory, StartError> {
        if start == "startpos" {
            return Ok(GameHistory::default());
        }
        GameHistory::from_fen(start).or_else(|error| {
            let game = GameHistory::from_set_up_fen(start)?;
            self.output
                .say(&format!("{error}; the position is searched anyway"));
            Ok(game)
        })
    }

    /// Begins a search; one that still runs is stopped and answers first, and moves are counted to the end.
    fn go(&mut self, go: Go) {
        self.end_search();
        let control = Arc::new(Control::default());
        let counts = go.perft.is_some();
        self.counted = counts || (self.counted && self.searches.load(Ordering::Acquire) > 0);
        self.current = Some(Running {
            control: Arc::clone(&control),
            counts,
        });
        self.searches.fetch_add(1, Ordering::AcqRel);
        self.order(Order::Go(Box::new(GoOrder {
            go,
            game: self.game.clone(),
            refused: self.refused,
            options: self.options.clone(),
            control,
            received: Instant::now(),
        })));
    }

    /// Stops a search that still runs. What counts moves goes on, as it does in Stockfish: scripts send the next
    /// command, or `quit`, at once.
    fn end_search(&self) {
        if self.current.as_ref().is_some_and(|running| !running.counts) {
            self.stop();
        }
    }

    fn stop(&self) {
        if let Some(running) = &self.current {
            running.control.stop();
        }
    }

    fn order(&self, order: Order) {
        if self.orders.send(order).is_err() {
            self.output
                .say("error: the search thread has ended; restart the engine");
        }
    }
}
