//! The network's training: games against itself, and the targets that they give.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;

use super::{INPUTS, ValueSearch, last_target, mirrored, naive, planes, targets};
use crate::lineage::neural::{Adam, Example, Workspace};

/// Games of an iteration.
const GAMES: u32 = 10;
/// Passes over its examples, one in so many of which is held out; one in so many old examples is learnt again.
const EPOCHS: u32 = 5;
const TENTH: usize = 10;
/// Examples of a step.
const BATCH: usize = 32;
/// Plies after which a training game ends.
const MOST_PLIES: usize = 200;
/// Old examples that are kept.
const MOST_OLD: usize = 100_000;

/// How to learn.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Planes in each convolution.
    pub filters: usize,
    /// Positions that are looked into for a move in training games.
    pub looks: u32,
    /// Adam's learning rate.
    pub rate: f32,
    /// The seed of weights and games.
    pub seed: u64,
}

/// Learning, iteration by iteration.
#[derive(Debug)]
pub struct Trainer {
    settings: Settings,
    agent: ValueSearch,
    adam: Adam,
    rng: ChaCha8Rng,
    games: u32,
    /// Of this iteration's games, and of those before.
    new: Vec<Example>,
    old: Vec<Example>,
    work: Workspace,
}

/// What an iteration came to.
#[derive(Debug, Clone, Copy)]
pub struct Learnt {
    /// Examples that were learnt from.
    pub examples: usize,
    /// The mean squared error on those that were held out.
    pub held_out: f32,
}

/// The noise of each prediction in a game, from 1 on, as a share of it: 1 / ln of its number, from the third game on.
fn noise(game: u32) -> f32 {
    if game < 3 {
        1.0
    } else {
        1.0 / (game as f32).ln()
    }
}

impl Trainer {
    /// A network that knows nothing.
    pub fn new(settings: Settings) -> Self {
        let agent = ValueSearch::new(settings.filters, settings.seed);
        Self {
            adam: Adam::new(&agent.network, settings.rate),
            rng: ChaCha8Rng::seed_from_u64(settings.seed),
            settings,
            agent,
            games: 0,
            new: Vec::new(),
            old: Vec::new(),
            work: Workspace::default(),
        }
    }

    /// What has been learnt.
    pub const fn agent(&self) -> &ValueSearch {
        &self.agent
    }

    /// Games that were played.
    pub const fn games(&self) -> u32 {
        self.games
    }

    /// Plays a game. After every tenth it learns from the positions of those ten, and from a tenth of those before them. It
    /// ends sooner if it is time to.
    pub fn play_and_learn(&mut self, is_over: &dyn Fn() -> bool) -> Option<Learnt> {
        let examples = self.play_game(is_over)?;
        self.new.extend(examples);
        if !self.games.is_multiple_of(GAMES) {
            return None;
        }
        let new = std::mem::take(&mut self.new);
        let mut examples = new.clone();
        examples.extend(
            self.old
                .choose_multiple(&mut self.rng, self.old.len() / TENTH)
                .cloned(),
        );
        self.old.extend(new);
        self.old.drain(..self.old.len().saturating_sub(MOST_OLD));
        Some(Learnt {
            examples: examples.len(),
            held_out: self.learn(examples, is_over),
        })
    }

    /// A game's positions, of both colours, with their targets; none if it was time to end.
    fn play_game(&mut self, is_over: &dyn Fn() -> bool) -> Option<Vec<Example>> {
        let share = noise(self.games + 1);
        let (agent, rng, looks) = (&self.agent, &mut self.rng, self.settings.looks);
        let work = &mut self.work;
        let mut game = GameHistory::default();
        let mut worths = vec![naive(&game)];
        let mut seen = vec![planes(game.position())];
        while game.end().is_none() && seen.len() <= MOST_PLIES {
            if is_over() {
                return None;
            }
            let mut noisy = |value: f32| value * (1.0 + share * rng.random_range(-1.0..=1.0));
            let Some(m) = agent.best_in_training(&game, looks, &mut noisy, work) else {
                break;
            };
            game.push(m);
            worths.push(naive(&game));
            seen.push(planes(game.position()));
        }
        self.games += 1;
        let both = |(input, target): ([f32; INPUTS], f32)| {
            let other = mirrored(&input);
            let input = input.to_vec();
            [
                Example { input, target },
                Example {
                    input: other,
                    target: -target,
                },
            ]
        };
        let examples = seen.into_iter().zip(targets(&worths, last_target(&game)));
        Some(examples.flat_map(both).collect())
    }

    /// Learns nine tenths of the examples; the error on the rest.
    fn learn(&mut self, mut examples: Vec<Example>, is_over: &dyn Fn() -> bool) -> f32 {
        examples.shuffle(&mut self.rng);
        let held_out = examples.split_off(examples.len() - examples.len() / TENTH);
        for _ in 0..EPOCHS {
            examples.shuffle(&mut self.rng);
            for batch in examples.chunks(BATCH).take_while(|_| !is_over()) {
                self.adam.step(&mut self.agent.network, batch);
            }
        }
        self.agent.network.loss(&held_out, &mut self.work)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SETTINGS: Settings = Settings {
        filters: 1,
        looks: 1,
        rate: 0.001,
        seed: 1,
    };

    #[test]
    fn noise_falls_with_the_logarithm_of_the_game() {
        assert_eq!(noise(1), 1.0);
        assert!((noise(3) - 0.910_239).abs() < 1e-5);
        assert!((noise(1000) - 0.144_765).abs() < 1e-5);
    }

    #[test]
    fn an_iteration_learns_from_ten_games_of_both_colours_and_repeats() {
        let train = || {
            let mut trainer = Trainer::new(SETTINGS);
            let mut learnt = (0..9).filter_map(|_| trainer.play_and_learn(&|| false));
            assert_eq!(learnt.next().map(|one| one.examples), None);
            (trainer.play_and_learn(&|| false).unwrap(), trainer)
        };
        let (progress, trainer) = train();
        assert_eq!(trainer.games(), 10);
        assert_eq!(progress.examples, trainer.old.len());
        assert!(progress.examples > 100 && progress.examples.is_multiple_of(2));
        assert!(progress.held_out.is_finite());
        for pair in trainer.old.chunks(2) {
            assert_eq!(
                (pair[0].target, &pair[0].input),
                (-pair[1].target, &mirrored(&pair[1].input))
            );
        }
        assert_ne!(trainer.agent, ValueSearch::new(1, 1));
        assert_eq!(trainer.agent, train().1.agent);
    }

    #[test]
    fn training_ends_within_a_game_and_within_an_iteration() {
        let mut trainer = Trainer::new(SETTINGS);
        let left = Cell::new(3);
        let is_over = || left.replace(left.get() - 1) == 0;
        assert!(trainer.play_and_learn(&is_over).is_none());
        assert_eq!((trainer.games(), left.get()), (0, -1));
        // Of the tenth game's learning one step is made.
        while trainer.games() < 9 {
            assert!(trainer.play_and_learn(&|| false).is_none());
        }
        let tenth = trainer.play_game(&|| false).unwrap();
        trainer.new.extend(tenth);
        let before = trainer.adam.steps();
        left.set(1);
        let examples = std::mem::take(&mut trainer.new);
        trainer.learn(examples, &|| left.replace(left.get() - 1) <= 0);
        assert_eq!(trainer.adam.steps(), before + 1);
    }
}
