//! Positions to evaluate: one each of some of the games that there are, every game as likely as any other.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;
use rookery_common::pgn::PgnGame;

/// A sample of more games than memory holds (algorithm R of Vitter, "Random Sampling with a Reservoir",
/// 1985).
pub(crate) struct Choice {
    most: usize,
    chance: ChaCha8Rng,
    /// Games that were offered.
    games: u64,
    positions: Vec<GameHistory>,
}

impl Choice {
    /// From at most this number of games.
    pub(crate) fn new(most: usize, seed: u64) -> Self {
        Self {
            most,
            chance: ChaCha8Rng::seed_from_u64(seed),
            games: 0,
            positions: Vec::new(),
        }
    }

    /// Offers a game; if it is chosen, a position of it is taken at random, once there are enough in the
    /// place of another game's.
    pub(crate) fn offer(&mut self, game: PgnGame) {
        let place = if self.positions.len() < self.most {
            self.positions.len()
        } else {
            self.chance.random_range(0..=self.games) as usize
        };
        if place < self.most {
            let ply = self.chance.random_range(0..game.moves.len());
            let mut history = game.start;
            game.moves.iter().take(ply).for_each(|m| history.push(*m));
            // The rules may have ended a game that its players went on with.
            if history.end().is_some() {
                return;
            }
            match self.positions.get_mut(place) {
                Some(other) => *other = history,
                None => self.positions.push(history),
            }
        }
        self.games += 1;
    }

    /// The positions.
    pub(crate) fn positions(self) -> Vec<GameHistory> {
        self.positions
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;

    /// A game that its move number tells from others.
    fn game(number: u32) -> PgnGame {
        let fen = format!("4k3/8/8/8/8/8/8/4K2R w - - 0 {number}");
        let start = GameHistory::from_fen(&fen).unwrap();
        PgnGame {
            moves: vec![start.position().legal_moves()[0]],
            start,
            result: None,
            elo: [None; 2],
            evaluations: Vec::new(),
            tags: Vec::new(),
        }
    }

    fn chosen(seed: u64, games: u32) -> Vec<u32> {
        let mut choice = Choice::new(100, seed);
        (1..=games).for_each(|number| choice.offer(game(number)));
        let positions = choice.positions();
        let numbers = positions.iter().map(|game| game.position().fullmoves());
        numbers.map(u32::from).collect()
    }

    #[test]
    fn every_game_can_be_chosen_and_a_seed_always_chooses_the_same() {
        let first = chosen(1, 2000);
        assert_eq!(first.len(), 100);
        let late = first.iter().filter(|number| **number > 1000).count();
        assert!((25..=75).contains(&late), "{late} of the later half");
        assert_eq!(first, chosen(1, 2000));
        assert_ne!(first, chosen(2, 2000));
        let few: Vec<u32> = (1..=40).collect();
        assert_eq!(chosen(1, 40), few);
    }
}
