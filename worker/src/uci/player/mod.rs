//! The thread that searches: it owns the network, the tree and the cache, and does one thing after
//! the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::causes::explain;
use rookery_common::chess::moves::parse_uci;
use rookery_common::chess::{EndgameTables, GameHistory};
use rookery_common::text::quantity;
use rookery_engine::EvaluationCache;
use rookery_engine::search::{Gathered, Searcher};
use rookery_syzygy::Syzygy;
use shakmaty::{Move, Position as _};

use super::command::{Clock, Go};
use super::control::Control;
use super::lag::Lag;
use super::limits::Limits;
use super::networks::{Networks, Opened};
use super::options::{NetworkChoice, Options};
use super::output::Output;
use super::pace::Pace;
use super::perft;
use super::report::Reporter;
use super::search::Search;
use super::time::{Margins, clock_of};

/// What the thread is to do.
pub(super) enum Order {
    /// Get everything ready, then say so.
    Ready(Options),
    /// Forget the tree.
    NewGame,
    /// Search, and answer with one `bestmove`; or count lines.
    Go(Box<GoOrder>),
}

/// One `go`.
pub(super) struct GoOrder {
    pub(super) go: Go,
    pub(super) game: GameHistory,
    /// Whether the GUI has set up what is no position since: there is nothing to search.
    pub(super) refused: bool,
    pub(super) options: Options,
    pub(super) control: Arc<Control>,
    /// When it was received: the clock runs since then.
    pub(super) received: Instant,
}

impl GoOrder {
    /// When the search ends.
    fn limits(&self, margins: Margins) -> Limits {
        let limits = Limits::of(&self.go, self.game.turn(), margins);
        if self.options.smart_pruning {
            limits
        } else {
            limits.using_all_time()
        }
    }

    /// The moves that `searchmoves` names, as far as they are legal (none for all), and the others.
    fn search_moves(&self) -> (Vec<Move>, Vec<&str>) {
        let (mut legal, mut illegal) = (Vec::new(), Vec::new());
        for text in &self.go.search_moves {
            match parse_uci(self.game.position(), text) {
                Some(m) if !legal.contains(&m) => legal.push(m),
                Some(_) => {}
                None => illegal.push(text.as_str()),
            }
        }
        (legal, illegal)
    }

    /// The ply, and the mover's clock; none where the clock does not run.
    fn clock(&self) -> (usize, Clock) {
        let clock = if self.go.ponder {
            Clock::default()
        } else {
            clock_of(&self.go, self.game.turn())
        };
        (self.game.plies(), clock)
    }
}

/// The thread's possessions.
pub(super) struct Player<N> {
    networks: N,
    output: Output,
    ready: Option<Ready>,
    lag: Lag,
}

/// A network with what belongs to it.
struct Ready {
    choice: NetworkChoice,
    options: Options,
    opened: Opened,
    pace: Pace,
    searcher: Searcher,
    gathered: Gathered,
}

impl<N: Networks> Player<N> {
    pub(super) fn new(networks: N, output: Output) -> Self {
        Self {
            networks,
            output,
            ready: None,
            lag: Lag::default(),
        }
    }

    /// Does what comes until nothing more can come. `searches` counts those not answered yet.
    pub(super) fn work(mut self, orders: &Receiver<Order>, searches: &AtomicUsize) {
        for order in orders {
            match order {
                Order::Ready(options) => {
                    if let Err(error) = self.prepare(&options) {
                        let causes = explain(error.chain());
                        self.output.say(&format!("error: {causes}"));
                    }
                    self.output.line("readyok");
                }
                Order::NewGame => {
                    self.lag.forget_game();
                    self.renew();
                    if let Some(ready) = &mut self.ready {
                        ready.searcher.forget();
                    }
                }
                Order::Go(order) => match order.go.perft {
                    Some(plies) => self.count(&order, plies, searches),
                    None => self.answer(&order, searches),
                },
            }
        }
    }

    /// Takes the newer network, if there is one by now. Whatever goes wrong, the one that is here plays on.
    fn renew(&mut self) {
        let Some(ready) = &self.ready else { return };
        let (choice, options) = (ready.choice.clone(), ready.options.clone());
        let networks = &mut self.networks;
        let newer = networks.is_outdated(&choice).and_then(|outdated| {
            let mut opened = outdated.then(|| networks.open(&choice)).transpose()?;
            let pace = opened.as_mut().map(Opened::warm_up).transpose()?;
            Ok(opened.zip(pace))
        });
        match newer {
            Ok(None) => {}
            Ok(Some((opened, pace))) => {
                // The old tree and the new one need not fit side by side.
                self.ready = None;
                let tables = self.open_tables(&options);
                self.ready = Some(Ready::new(&options, opened, pace, tables));
            }
            Err(error) => {
                let causes = explain(error.chain());
                let kept = "playing on with the network that is here; a newer one was not found";
                self.output.say(&format!("{kept}: {causes}"));
            }
        }
    }

    /// Searches and answers. The search counts as answered before the GUI hears of it: an `isready` that
    /// follows waits for what it asks for.
    fn answer(&mut self, order: &GoOrder, searches: &AtomicUsize) {
        let (plies, clock) = order.clock();
        self.lag.asked(plies, clock);
        let limits = order.limits(self.lag.margins(order.options.overhead()));
        let (reporter, moves) = self.go(order, &limits);
        searches.fetch_sub(1, Ordering::Release);
        reporter.best_move(&order.game, &moves);
        let thought = order.received.elapsed();
        self.lag.answered(plies, clock, thought, limits.longest());
    }

    /// Counts lines and tells the sum as Stockfish does, without a `bestmove`.
    fn count(&self, order: &GoOrder, plies: u32, searches: &AtomicUsize) {
        let counted = perft::count(order, plies, &self.output);
        searches.fetch_sub(1, Ordering::Release);
        match counted {
            Ok(sum) => self.output.line(&format!("\nNodes searched: {sum}\n")),
            Err(why) => self.output.say(&why.to_string()),
        }
    }

    /// Loads the network and makes room, where options changed.
    fn prepare(&mut self, options: &Options) -> anyhow::Result<&mut Ready> {
        let kept = self.ready.take();
        let same_network = kept.filter(|ready| ready.choice == options.network);
        let ready = match same_network {
            Some(ready) if !ready.needs_another_tree(options) => ready,
            Some(ready) => {
                let (opened, pace) = ready.into_network();
                Ready::new(options, opened, pace, self.open_tables(options))
            }
            None => {
                let mut opened = self.networks.open(&options.network)?;
                let pace = opened.warm_up()?;
                Ready::new(options, opened, pace, self.open_tables(options))
            }
        };
        Ok(self.ready.insert(ready))
    }

    /// The endgame tables that are asked for; without them, where they cannot be used, games are
    /// played all the same.
    fn open_tables(&self, options: &Options) -> Option<Arc<dyn EndgameTables>> {
        let folders = options.syzygy_folders();
        if folders.is_empty() {
            return None;
        }
        match Syzygy::open(&folders) {
            Ok(tables) => {
                let (files, pieces) = (quantity(tables.files(), "file"), tables.pieces());
                let about = format!("endgame tables: {files}, up to {pieces} pieces");
                self.output.say(&about);
                for problem in tables.problems() {
                    self.output.say(&format!("error: SyzygyPath: {problem}"));
                }
                Some(Arc::new(tables))
            }
            Err(error) => {
                let causes = explain(error.chain());
                self.output.say(&format!("error: SyzygyPath: {causes}"));
                None
            }
        }
    }

    /// Searches; the moves to answer with, none where there is no legal one.
    fn go(&mut self, order: &GoOrder, limits: &Limits) -> (Reporter, Vec<Move>) {
        let mut reporter = Reporter::new(self.output.clone(), &order.options, order.received);
        let game = &order.game;
        if order.refused {
            self.output.say("error: there is no position to search");
            wait_if_endless(order, limits);
            return (reporter, Vec::new());
        }
        if game.position().legal_moves().is_empty() {
            reporter.report_end(game);
            wait_if_endless(order, limits);
            return (reporter, Vec::new());
        }
        let moves = self.search(order, limits, &mut reporter);
        let moves = moves.unwrap_or_else(|error| {
            let causes = explain(error.chain());
            self.output
                .say(&format!("error: {causes}; moving without thought"));
            wait_if_endless(order, limits);
            any_move(order)
        });
        (reporter, moves)
    }

    /// The expected line, at least one move of it.
    fn search(
        &mut self,
        order: &GoOrder,
        limits: &Limits,
        reporter: &mut Reporter,
    ) -> anyhow::Result<Vec<Move>> {
        let (only, illegal) = order.search_moves();
        let output = self.output.clone();
        for text in illegal {
            output.say(&format!("searchmoves: {text} is not legal here"));
        }
        let ready = self.prepare(&order.options)?;
        if let Some(about) = ready.opened.about.take() {
            output.say(&about);
        }
        ready.searcher.begin(&order.game, &only);
        let mut search = Search {
            order,
            limits,
            searcher: &mut ready.searcher,
            evaluator: ready.opened.evaluator.as_mut(),
            gathered: &mut ready.gathered,
            pace: &mut ready.pace,
            most_leaves: match order.options.minibatch {
                0 => ready.opened.minibatch,
                leaves => leaves as usize,
            },
            reporter,
        };
        let ran = search.run();
        let temperature = order.options.temperature_at(ply_of(&order.game));
        let best = ready.searcher.choose(temperature);
        let line = best.map(|best| line_of(&ready.searcher, best));
        if ran.is_err() {
            // What the device holds may be spoilt.
            self.ready = None;
        }
        ran?;
        line.context("the root was not evaluated")
    }
}

impl Ready {
    fn new(
        options: &Options,
        opened: Opened,
        pace: Pace,
        tables: Option<Arc<dyn EndgameTables>>,
    ) -> Self {
        let cache = Arc::new(EvaluationCache::new(options.cached_positions()));
        let seed = getrandom::u64().unwrap_or_default();
        Self {
            choice: options.network.clone(),
            options: options.clone(),
            gathered: Gathered::new(opened.evaluator.as_ref()),
            searcher: Searcher::new(options.search(), Some(cache), seed).with_tables(tables),
            opened,
            pace,
        }
    }

    /// Keeps the network. Frees the memory of the tree and of the known evaluations, so that others of the same
    /// size can take their place.
    fn into_network(self) -> (Opened, Pace) {
        (self.opened, self.pace)
    }

    fn needs_another_tree(&self, options: &Options) -> bool {
        let relevant = |options: &Options| {
            let tables = options.syzygy_path.clone();
            (options.search(), options.hash, options.cleared, tables)
        };
        relevant(&self.options) != relevant(options)
    }
}

/// Where the GUI wants no answer before it asks for one, waits for that.
fn wait_if_endless(order: &GoOrder, limits: &Limits) {
    loop {
        let requests = order.control.requests();
        let pondering = order.go.ponder && requests.ponder_hit.is_none();
        if requests.stop || !(pondering || limits.is_endless()) {
            return;
        }
        order.control.wait(requests, Duration::from_secs(1));
    }
}

/// A legal move where nothing is known of any.
fn any_move(order: &GoOrder) -> Vec<Move> {
    let (only, _) = order.search_moves();
    let legal = order.game.position().legal_moves();
    only.iter().chain(&legal).take(1).copied().collect()
}

/// The expected line that begins with this move.
fn line_of(searcher: &Searcher, best: Move) -> Vec<Move> {
    let lines = searcher.lines(usize::MAX).into_iter();
    let mut found = lines
        .map(|line| line.moves)
        .filter(|moves| moves[0] == best);
    found.next().unwrap_or_else(|| vec![best])
}

/// Plies since the start of a game, as the position's move number says.
fn ply_of(game: &GameHistory) -> u32 {
    let position = game.position();
    let moves = position.fullmoves().get() - 1;
    let plies = moves.saturating_mul(2);
    plies.saturating_add(u32::from(position.turn().is_black()))
}

#[cfg(test)]
mod tests;
