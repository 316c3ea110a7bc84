//! The games of a fleet: one line of moves, made once, with other visits in each game.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, Termination};
use rookery_common::chunk::{Effort, GameKind, GameRecord, GameStart, PlyRecord};
use rookery_common::ids::Seed;

/// Plies of a game.
pub(super) const PLIES: u32 = 100;

/// Plies whose visits tell games apart.
const VARIED: usize = 8;

/// A game that its ply limit ends.
#[derive(Debug)]
pub(super) struct Line(Vec<PlyRecord>);

impl Line {
    /// Random moves, all visits on each.
    pub(super) fn new(visits: u32, rng: &mut ChaCha8Rng) -> Self {
        loop {
            if let Some(line) = Self::attempt(visits, rng) {
                return line;
            }
        }
    }

    fn attempt(visits: u32, rng: &mut ChaCha8Rng) -> Option<Self> {
        let mut history = GameStart::default().history().unwrap();
        let mut plies = Vec::new();
        for _ in 0..PLIES {
            let legal = canonical_moves(history.position());
            if history.end().is_some() || legal.len() < 2 {
                return None;
            }
            let place = rng.random_range(0..legal.len());
            let mut all = vec![0; legal.len()];
            all[place] = visits;
            history.push(legal[place]);
            plies.push(PlyRecord {
                played: legal[place],
                effort: Effort::Full,
                visits: all,
                target: None,
                root_q: 0.25,
                root_draw: 0.5,
                best_q: 0.25,
            });
        }
        history.end().is_none().then_some(Self(plies))
    }

    /// The game of a seed; each `salt` gives another.
    pub(super) fn game(&self, seed: Seed, index: u32, salt: u32) -> GameRecord {
        let (mut plies, mut rest) = (self.0.clone(), salt);
        for ply in &mut plies[..VARIED] {
            let most = ply.visits.iter().position(|visits| *visits > 0).unwrap();
            let other = (most + 1) % ply.visits.len();
            ply.visits[most] -= rest % 16;
            ply.visits[other] += rest % 16;
            rest /= 16;
        }
        GameRecord {
            index,
            kind: GameKind::SelfPlay { play_on: false },
            seed: seed.of_game(index),
            start: GameStart::default(),
            plies,
            end: GameEnd::draw(Termination::PlyLimit),
        }
    }
}
