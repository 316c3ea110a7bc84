//! What the thread owns.

use std::sync::Weak;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use rookery_common::chess::GameResult;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_engine::dummy::HandEvaluator;
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError};
use shakmaty::Chess;

use super::*;
use crate::uci::options::tests::options;

/// Stands in a searcher for its tree: both are freed together.
#[derive(Debug)]
struct Witness;

impl EndgameTables for Witness {
    fn result(&self, _position: &Chess) -> Option<GameResult> {
        None
    }
}

/// What is known of the searcher that was there first.
#[derive(Default)]
struct First {
    searcher: Mutex<Weak<Witness>>,
    /// Whether it was there when an evaluator last said what positions it takes, as each does before a tree is made.
    was_there: AtomicBool,
}

struct WatchingEvaluator {
    hand: HandEvaluator,
    first: Arc<First>,
}

impl Evaluator for WatchingEvaluator {
    fn input(&self) -> InputEncoding {
        let is_there = self.first.searcher.lock().strong_count() > 0;
        self.first.was_there.store(is_there, Ordering::Relaxed);
        self.hand.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.hand.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        self.hand.evaluate(batch, answer)
    }
}

/// Networks that are outdated as soon as they are open.
#[derive(Clone, Default)]
struct WatchingNetworks(Arc<First>);

impl Networks for WatchingNetworks {
    fn open(&mut self, _choice: &NetworkChoice) -> anyhow::Result<Opened> {
        let evaluator = WatchingEvaluator {
            hand: HandEvaluator::default(),
            first: Arc::clone(&self.0),
        };
        Ok(Opened {
            evaluator: Box::new(evaluator),
            about: None,
            minibatch: 1,
        })
    }

    fn is_outdated(&mut self, _choice: &NetworkChoice) -> anyhow::Result<bool> {
        Ok(true)
    }
}

type WatchedPlayer = Player<WatchingNetworks>;

fn small() -> Options {
    Options {
        hash: 16,
        ..options()
    }
}

fn change_an_option(player: &mut WatchedPlayer) {
    let changed = Options {
        cpuct: 3.5,
        ..small()
    };
    player.prepare(&changed).unwrap();
}

/// The searcher with tree and cache is freed before the next one is made: both would need twice `Hash`.
#[test]
fn a_tree_is_freed_before_another_takes_its_place() {
    let replace: [fn(&mut WatchedPlayer); 2] = [change_an_option, Player::renew];
    let stood_side_by_side = replace.map(|replace| {
        let networks = WatchingNetworks::default();
        let first = Arc::clone(&networks.0);
        let mut player = Player::new(networks, Output::new(std::io::sink()));
        let witness = Arc::new(Witness);
        *first.searcher.lock() = Arc::downgrade(&witness);
        player.prepare(&small()).unwrap();
        let ready = player.ready.take().unwrap();
        player.ready = Some(Ready {
            searcher: ready.searcher.with_tables(Some(witness)),
            ..ready
        });
        replace(&mut player);
        assert!(player.ready.is_some());
        first.was_there.load(Ordering::Relaxed)
    });
    assert_eq!(stood_side_by_side, [false, false]);
}

#[test]
fn any_move_number_gives_a_ply() {
    let ply = |number: u32| {
        let fen = format!("4k3/8/8/8/8/8/8/R3K3 b - - 0 {number}");
        ply_of(&GameHistory::from_fen(&fen).unwrap())
    };
    assert_eq!(ply(1), 1);
    assert_eq!(ply(20), 39);
    assert_eq!(ply(u32::MAX), u32::MAX);
}
