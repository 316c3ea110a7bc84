//! An engine that says what positions are worth: it comments on games ([`annotator`](crate::annotator)) and judges
//! policies ([`policy_eval`](crate::policy_eval)).

use std::sync::atomic::{AtomicUsize, Ordering};

use rookery_common::pgn::Evaluation;
use rookery_uci::{Engine, Game, Launch, Limits, OptionKind, Score};
use shakmaty::{Chess, Move, Position};

/// Megabytes of its hash table: a few thousand nodes need no more. Engines that take only larger ones get
/// the smallest of those.
const HASH: i64 = 4;

/// A running engine with a fixed number of nodes for each position.
#[derive(Debug)]
pub struct Analyst {
    engine: Engine,
    limits: Limits,
    name: String,
    /// Positions that it was asked for.
    positions: u64,
    /// Whether it has ever said a score.
    scores: bool,
}

/// What it says of a position.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    /// What the position is worth, if the engine said so.
    pub evaluation: Option<Evaluation>,
    /// The best move.
    pub best: Option<Move>,
}

impl Analyst {
    /// Starts the engine, with this number of nodes for each position, on one processor core.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(launch: &Launch, nodes: u64) -> anyhow::Result<Self> {
        let mut engine = Engine::start(launch)?;
        for (name, wanted) in [("Threads", 1), ("Hash", HASH)] {
            let kind = engine.option(name).map(|option| &option.kind);
            if let Some(OptionKind::Spin { min, max }) = kind {
                let value = wanted.max(*min).min(*max);
                engine.set_option(name, &value.to_string())?;
            }
        }
        Ok(Self {
            name: format!("{}, {nodes} nodes a position", engine.name()),
            limits: Limits::nodes(nodes),
            scores: false,
            engine,
            positions: 0,
        })
    }

    /// The engine's name with its nodes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Positions that it has evaluated so far.
    pub const fn positions(&self) -> u64 {
        self.positions
    }

    /// Tells the engine that what follows has nothing to do with what it was asked before.
    ///
    /// # Errors
    ///
    /// If the engine fails.
    pub fn new_game(&mut self) -> anyhow::Result<()> {
        Ok(self.engine.new_game()?)
    }

    /// Asks for the position that `moves` lead to from `start`. It must not be the end of a game.
    ///
    /// # Errors
    ///
    /// If the engine fails, or plays without saying what positions are worth.
    pub fn ask(&mut self, start: &Chess, moves: &[Move]) -> anyhow::Result<Finding> {
        let answer = self.engine.search(Game { start, moves }, &self.limits)?;
        self.positions += 1;
        let white_to_move = start.turn().is_white() == moves.len().is_multiple_of(2);
        let for_white = |own: i32| {
            if white_to_move {
                own
            } else {
                own.saturating_neg()
            }
        };
        let evaluation = answer.info.score.map(|score| match score {
            Score::Centipawns(cp) => Evaluation::Centipawns(for_white(cp)),
            Score::Mate(moves) => Evaluation::Mate(for_white(moves)),
        });
        self.scores |= evaluation.is_some();
        anyhow::ensure!(
            self.scores,
            "RK-0810: the engine {} says no score, only a move: it cannot judge positions",
            self.engine.name()
        );
        Ok(Finding {
            evaluation,
            best: answer.best,
        })
    }
}

/// What engines, each on a thread of its own, make of the items, in the items' order. Whichever engine is
/// free takes the next one.
///
/// # Errors
///
/// What `work` gives.
pub fn side_by_side<E: Send, T: Sync, R: Send>(
    engines: &mut [E],
    items: &[T],
    work: impl Fn(&mut E, &T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work_off = |engine: &mut E| -> anyhow::Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            match items.get(place) {
                Some(item) => done.push((place, work(engine, item)?)),
                None => return Ok(done),
            }
        }
    };
    let work_off = &work_off;
    let done: anyhow::Result<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = engines
            .iter_mut()
            .map(|engine| scope.spawn(move || work_off(engine)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let panicked = |_| anyhow::bail!("a thread has panicked");
            thread.join().unwrap_or_else(panicked)
        });
        ended.collect()
    });
    let mut done: Vec<(usize, R)> = done?.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn an_engine_whose_smallest_hash_table_is_larger_gets_that_one() {
        let script = "while read -r line; do case $line in \
            uci) echo 'option name Threads type spin default 4 min 1 max 8'; \
                 echo 'option name Hash type spin default 64 min 16 max 1024'; echo uciok;; \
            isready) echo readyok;; \
            'setoption name Threads value 1'|'setoption name Hash value 16') ;; \
            setoption*) exit 1;; \
            quit) exit;; esac; done";
        let mut launch = Launch::new("sh");
        launch.arguments = vec!["-c".to_owned(), script.to_owned()];
        let mut analyst = Analyst::start(&launch, 10).unwrap();
        analyst.new_game().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn an_engine_that_only_moves_is_no_judge() {
        let script = "while read -r line; do case $line in \
            uci) echo id name Mute; echo uciok;; isready) echo readyok;; quit) exit;; \
            go*) echo info depth 1 nodes 5; echo bestmove e2e4;; esac; done";
        let mut launch = Launch::new("sh");
        launch.arguments = vec!["-c".to_owned(), script.to_owned()];
        let mut analyst = Analyst::start(&launch, 10).unwrap();
        let error = analyst.ask(&Chess::default(), &[]).unwrap_err().to_string();
        assert!(error.contains("Mute says no score"), "{error}");
        launch.arguments[1] = script.replace("nodes 5", "score cp 5");
        let mut analyst = Analyst::start(&launch, 10).unwrap();
        let found = analyst.ask(&Chess::default(), &[]).unwrap();
        assert_eq!(found.evaluation, Some(Evaluation::Centipawns(5)));
    }

    #[test]
    fn what_engines_do_side_by_side_is_in_order_and_an_error_is_the_answer() {
        let items: Vec<u32> = (0..100).collect();
        let mut engines = [0_u32; 3];
        let double = |done: &mut u32, item: &u32| -> anyhow::Result<u32> {
            *done += 1;
            Ok(2 * item)
        };
        let doubled = side_by_side(&mut engines, &items, double).unwrap();
        assert!(doubled.iter().zip(&items).all(|(two, one)| *two == 2 * one));
        assert_eq!((doubled.len(), engines.iter().sum::<u32>()), (100, 100));
        let fail = |_: &mut u32, item: &u32| -> anyhow::Result<u32> {
            anyhow::ensure!(*item != 50, "fifty");
            Ok(*item)
        };
        let error = side_by_side(&mut engines, &items, fail).unwrap_err();
        assert_eq!(error.to_string(), "fifty");
    }
}
