//! The network's training: games against itself, and the targets that they give.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;

use super::{INPUTS, ValueSearch, last_target, mirrored, naive, planes, targets};
use crate::lineage::neural::{Adam, Example, Workspace};

/// Games of an iteration.
const GAMES: u32 = 10;
/// Passes over its examples.
const EPOCHS: u32 = 5;
/// One new position in this number is held out, and one old position is learnt again.
const TENTH: usize = 10;
/// Examples of a step.
const BATCH: usize = 32;
/// Plies after which a training game ends.
const MOST_PLIES: usize = 200;
/// Old positions that are kept.
const MOST_OLD: usize = 50_000;

/// A position as it was, and with the colours exchanged.
type Pair = [Example; 2];

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
    /// Positions of this iteration's games, and of those before.
    new: Vec<Pair>,
    old: Vec<Pair>,
    work: Workspace,
}

/// What an iteration came to.
#[derive(Debug, Clone, Copy)]
pub struct Learnt {
    /// Examples that were learnt from, two of each position.
    pub examples: usize,
    /// The mean squared error on a tenth of the new positions, which had never been learnt from.
    pub loss: f32,
}

/// An iteration's examples.
#[derive(Debug)]
struct Split {
    /// Nine tenths of the new positions and a tenth of the old ones.
    learnt: Vec<Example>,
    /// The rest of the new ones.
    held_out: Vec<Example>,
}

impl Split {
    /// Both examples of a position come to the same side, and none of an old position is held out.
    fn draw(new: &[Pair], old: &[Pair], rng: &mut ChaCha8Rng) -> Self {
        let mut order: Vec<&Pair> = new.iter().collect();
        order.shuffle(rng);
        let held_out = order.split_off(order.len() - order.len() / TENTH);
        order.extend(old.choose_multiple(rng, old.len() / TENTH));
        let examples = |pairs: Vec<&Pair>| pairs.into_iter().flatten().cloned().collect();
        Self {
            learnt: examples(order),
            held_out: examples(held_out),
        }
    }
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
        let pairs = self.play_game(is_over)?;
        self.new.extend(pairs);
        if !self.games.is_multiple_of(GAMES) {
            return None;
        }
        let new = std::mem::take(&mut self.new);
        let split = Split::draw(&new, &self.old, &mut self.rng);
        self.old.extend(new);
        self.old.drain(..self.old.len().saturating_sub(MOST_OLD));
        Some(self.learn(split, is_over))
    }

    /// A game's positions, of both colours, with their targets; none if it was time to end.
    fn play_game(&mut self, is_over: &dyn Fn() -> bool) -> Option<Vec<Pair>> {
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
        Some(examples.map(both).collect())
    }

    /// Learns from an iteration's examples, epoch after epoch.
    fn learn(&mut self, split: Split, is_over: &dyn Fn() -> bool) -> Learnt {
        let mut examples = split.learnt;
        for _ in 0..EPOCHS {
            examples.shuffle(&mut self.rng);
            for batch in examples.chunks(BATCH).take_while(|_| !is_over()) {
                self.adam.step(&mut self.agent.network, batch);
            }
        }
        Learnt {
            examples: examples.len(),
            loss: self.agent.network.loss(&split.held_out, &mut self.work),
        }
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
        let (learnt, trainer) = train();
        assert_eq!(trainer.games(), 10);
        let positions = trainer.old.len();
        assert!(positions > 50, "{positions}");
        assert_eq!(learnt.examples, 2 * (positions - positions / 10));
        assert!(learnt.loss.is_finite());
        for [own, other] in &trainer.old {
            assert_eq!(
                (own.target, &own.input),
                (-other.target, &mirrored(&other.input))
            );
        }
        assert_ne!(trainer.agent, ValueSearch::new(1, 1));
        assert_eq!(trainer.agent, train().1.agent);
    }

    /// Positions whose targets are these, and with the colours exchanged the same below 0.
    fn pairs(targets: std::ops::Range<i32>) -> Vec<Pair> {
        let example = |target| Example {
            input: Vec::new(),
            target: target as f32,
        };
        targets.map(|one| [example(one), example(-one)]).collect()
    }

    #[test]
    fn a_tenth_of_the_new_positions_is_held_out_with_both_colours() {
        let (new, old) = (pairs(1..31), pairs(101..141));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let Split { learnt, held_out } = Split::draw(&new, &old, &mut rng);
        let worths = |examples: &[Example]| {
            let mut targets: Vec<i32> = examples.iter().map(|one| one.target as i32).collect();
            targets.sort_unstable();
            targets
        };
        let (learnt, held_out) = (worths(&learnt), worths(&held_out));
        for side in [&learnt, &held_out] {
            let turned: Vec<i32> = side.iter().rev().map(|target| -target).collect();
            assert_eq!(side, &turned, "a position is on both sides");
        }
        // Of 30 new positions 3, with both colours; none of the 40 old ones, of which 4 are learnt again.
        assert_eq!(held_out.len(), 6);
        assert!(
            held_out.iter().all(|target| target.abs() <= 30),
            "{held_out:?}"
        );
        let (again, first): (Vec<i32>, Vec<i32>) =
            learnt.into_iter().partition(|target| target.abs() > 100);
        assert_eq!((first.len(), again.len()), (54, 8));
        assert!(first.iter().all(|target| !held_out.contains(target)));
    }

    #[test]
    fn a_later_iteration_makes_five_epochs_of_its_games_and_a_tenth_of_the_old() {
        let mut trainer = Trainer::new(SETTINGS);
        let iteration = |trainer: &mut Trainer| {
            let (old, steps) = (trainer.old.len(), trainer.adam.steps());
            let mut games = (0..GAMES).filter_map(|_| trainer.play_and_learn(&|| false));
            let learnt = games.next().unwrap();
            (
                old,
                trainer.old.len() - old,
                trainer.adam.steps() - steps,
                learnt.examples,
            )
        };
        iteration(&mut trainer);
        let (old, new, steps, examples) = iteration(&mut trainer);
        assert!(old > 50 && new > 50, "{old} {new}");
        assert_eq!(examples, 2 * (new - new / 10 + old / 10));
        assert_eq!(steps as usize, 5 * examples.div_ceil(32));
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
        let split = Split::draw(&trainer.new, &trainer.old, &mut trainer.rng);
        trainer.learn(split, &|| left.replace(left.get() - 1) <= 0);
        assert_eq!(trainer.adam.steps(), before + 1);
    }
}
