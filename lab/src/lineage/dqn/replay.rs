//! The replay buffer of the double form: a ring of moves, and the places of those that led to a decision.
//!
//! Few moves earn anything: a uniform sample has a reward in one of some 1,700. A share of each batch is drawn from the
//! ends of decided games, so that their values reach the moves before them.

use std::collections::VecDeque;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use shakmaty::{Chess, Move};

/// The last plies of a decided game, from which some of each batch is drawn.
const DECISIVE_PLIES: usize = 40;
/// One move in this number of a batch is drawn from them.
const DECISIVE_SHARE: usize = 4;

/// A move in the replay buffer.
#[derive(Debug, Clone)]
pub(super) struct Transition {
    pub(super) input: Vec<f32>,
    /// What it earned, if it ended the game.
    pub(super) reward: Option<f32>,
    /// The position after it, with the replies if the game goes on.
    pub(super) after: Chess,
    pub(super) replies: Vec<Move>,
}

/// The latest moves of games.
#[derive(Debug)]
pub(super) struct ReplayBuffer {
    capacity: usize,
    transitions: Vec<Transition>,
    /// Moves that were ever added.
    added: usize,
    /// Places of the last moves of decided games, the oldest first.
    decisive: VecDeque<usize>,
}

impl ReplayBuffer {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            transitions: Vec::new(),
            added: 0,
            decisive: VecDeque::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.transitions.len()
    }

    /// Whether there are moves of a decided game.
    pub(super) fn has_decided(&self) -> bool {
        !self.decisive.is_empty()
    }

    pub(super) fn get(&self, place: usize) -> &Transition {
        &self.transitions[place]
    }

    /// Adds a move, in the oldest one's place if the buffer is full.
    pub(super) fn push(&mut self, transition: Transition) {
        let place = self.added % self.capacity;
        self.added += 1;
        if place == self.transitions.len() {
            self.transitions.push(transition);
            return;
        }
        self.transitions[place] = transition;
        if self.decisive.front() == Some(&place) {
            self.decisive.pop_front();
        }
    }

    /// The game of the latest `plies` moves was decided.
    pub(super) fn mark_decided(&mut self, plies: usize) {
        let marked = plies.min(DECISIVE_PLIES).min(self.transitions.len());
        let places = (self.added - marked..self.added).map(|number| number % self.capacity);
        self.decisive.extend(places);
    }

    /// Places of a batch: a quarter from the ends of decided games, if there are any, and the rest from all moves.
    pub(super) fn sample(&self, batch: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let decisive = if self.decisive.is_empty() {
            0
        } else {
            batch / DECISIVE_SHARE
        };
        (0..batch)
            .map(|number| {
                if number < decisive {
                    self.decisive[rng.random_range(0..self.decisive.len())]
                } else {
                    rng.random_range(0..self.transitions.len())
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn push(buffer: &mut ReplayBuffer, numbers: std::ops::Range<usize>) {
        for number in numbers {
            buffer.push(Transition {
                input: vec![number as f32],
                reward: None,
                after: Chess::default(),
                replies: Vec::new(),
            });
        }
    }

    /// The moves by their numbers that the decisive places have.
    fn decisive(buffer: &ReplayBuffer) -> Vec<usize> {
        let number = |place: &usize| buffer.get(*place).input[0] as usize;
        buffer.decisive.iter().map(number).collect()
    }

    #[test]
    fn ends_of_decided_games_are_known_until_they_are_overwritten() {
        let mut buffer = ReplayBuffer::new(100);
        push(&mut buffer, 0..60);
        buffer.mark_decided(60);
        assert_eq!(decisive(&buffer), (20..60).collect::<Vec<_>>());
        push(&mut buffer, 60..95);
        push(&mut buffer, 95..110);
        buffer.mark_decided(15);
        assert_eq!(buffer.len(), 100);
        assert_eq!(
            decisive(&buffer),
            (20..60).chain(95..110).collect::<Vec<_>>()
        );
        push(&mut buffer, 110..150);
        assert_eq!(
            decisive(&buffer),
            (50..60).chain(95..110).collect::<Vec<_>>()
        );
        push(&mut buffer, 150..250);
        assert!(decisive(&buffer).is_empty());
    }

    #[test]
    fn a_quarter_of_a_batch_is_from_the_ends_of_decided_games() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut buffer = ReplayBuffer::new(100_000);
        push(&mut buffer, 0..50_000);
        let is_end = |place: &usize| *place >= 49_990;
        assert!(!buffer.has_decided());
        assert_eq!(buffer.sample(32, &mut rng).len(), 32);
        buffer.mark_decided(10);
        let ends = buffer.sample(32, &mut rng);
        assert!(ends[..8].iter().all(is_end), "{ends:?}");
        assert!(!ends[8..].iter().all(is_end), "{ends:?}");
        assert_eq!(ends.len(), 32);
    }
}
