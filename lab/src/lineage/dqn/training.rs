//! How a Q-learner learns, game by game against itself.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameHistory, GameResult};
use shakmaty::{Color, Move};

use super::replay::{ReplayBuffer, Transition};
use super::{Dqn, Form, highest};
use crate::lineage::neural::{Adam, Example, Workspace};

/// Plies after which a training game is a draw.
const MOST_PLIES: usize = 200;
/// Examples of a step.
const BATCH: usize = 32;
/// Moves that the replay buffer keeps.
const BUFFER: usize = 50_000;
/// Plies between two steps of the double form.
const PLIES_A_STEP: usize = 4;
/// The share of the way to the network that learns which the target network takes after each step.
const TARGET_RATE: f32 = 0.005;
/// What a move later counts, in the double form.
const DISCOUNT: f32 = 0.98;

/// How to learn.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which form.
    pub form: Form,
    /// Sizes of the network's hidden layers.
    pub hidden: Vec<u16>,
    /// Games over which exploration falls; without a number it falls with the time alone.
    pub games: Option<u32>,
    /// The share of random moves in the first game and in the last.
    pub epsilon: [f64; 2],
    /// The published form's factor for each ply; without it, 1 by the plies of the game.
    pub gamma: Option<f32>,
    /// What the winner's last move is worth, and what the loser's, before that factor.
    pub rewards: [f32; 2],
    /// Adam's learning rate.
    pub rate: f32,
    /// The seed of weights and games.
    pub seed: u64,
}

/// The share of random moves in a game, from 0: it falls linearly from the first game to the last, or until the time is
/// over if that is sooner.
fn exploration(settings: &Settings, game: u32, time: f64) -> f64 {
    let [first, last] = settings.epsilon;
    let played = |games: u32| f64::from(game) / f64::from(games.saturating_sub(1).max(1));
    let passed = settings.games.map_or(0.0, played);
    first + (last - first) * passed.max(time).min(1.0)
}

/// The published form's targets of a game's plies, of which White plays the first if `white_begins`.
fn published_targets(plies: usize, winner: Color, begins: Color, settings: &Settings) -> Vec<f32> {
    let gamma = settings.gamma.unwrap_or(1.0 / plies.max(1) as f32);
    let [reward, malus] = settings.rewards;
    let target = |ply: usize| {
        let mover = if ply.is_multiple_of(2) {
            begins
        } else {
            begins.other()
        };
        let outcome = if mover == winner { reward } else { malus };
        gamma * (ply + 1) as f32 * outcome
    };
    (0..plies).map(target).collect()
}

/// The double form's target of a move: its own reward, or, if the game goes on, what the opponent's best reply by the
/// online network is worth by the target network, against the mover.
fn double_target(reward: Option<f32>, reply: f32) -> f32 {
    reward.unwrap_or(-DISCOUNT * reply)
}

/// Learning, game by game.
#[derive(Debug)]
pub struct Trainer {
    settings: Settings,
    agent: Dqn,
    target: Dqn,
    adam: Adam,
    rng: ChaCha8Rng,
    games: u32,
    buffer: ReplayBuffer,
    /// Plies that were played, of all games.
    plies: usize,
    work: Workspace,
}

impl Trainer {
    /// An agent that knows nothing.
    pub fn new(settings: Settings) -> Self {
        let agent = Dqn::new(settings.form, &settings.hidden, settings.seed);
        Self {
            target: agent.clone(),
            adam: Adam::new(&agent.network, settings.rate),
            rng: rand::SeedableRng::seed_from_u64(settings.seed),
            settings,
            agent,
            games: 0,
            buffer: ReplayBuffer::new(BUFFER),
            plies: 0,
            work: Workspace::default(),
        }
    }

    /// What has been learnt.
    pub const fn agent(&self) -> &Dqn {
        &self.agent
    }

    /// Games that were played.
    pub const fn games(&self) -> u32 {
        self.games
    }

    /// Plays a game against itself and learns from it, unless it is time to end before. `time` is the share of the time that
    /// has passed, 0 without a limit. The mean squared error, if there was something to learn.
    pub fn play_game(&mut self, time: f64, is_over: &dyn Fn() -> bool) -> Option<f32> {
        let exploration = exploration(&self.settings, self.games, time);
        let mut game = GameHistory::default();
        let mut inputs = Vec::new();
        let mut loss = None;
        let result = loop {
            if let Some(end) = game.end() {
                break end.result;
            }
            if inputs.len() >= MOST_PLIES {
                break GameResult::Draw;
            }
            if is_over() {
                return loss;
            }
            let Some(m) = self.choose(&game, exploration) else {
                break GameResult::Draw;
            };
            let input = self.agent.form.encode(game.position(), m);
            let mover = game.turn();
            game.push(m);
            if self.settings.form == Form::Double {
                let reward = game.end().map(|end| self.reward(end.result, mover));
                let after = game.position().clone();
                let replies = match reward {
                    Some(_) => Vec::new(),
                    None => canonical_moves(&after),
                };
                self.buffer.push(Transition {
                    input: input.clone(),
                    reward,
                    after,
                    replies,
                });
                self.plies += 1;
                loss = self.replay().or(loss);
            }
            inputs.push(input);
        };
        self.games += 1;
        match (self.settings.form, winner(result)) {
            (Form::Published, Some(winner)) => return Some(self.learn_game(inputs, winner)),
            (Form::Double, Some(_)) => self.buffer.mark_decided(inputs.len()),
            (_, None) => {}
        }
        loss
    }

    fn choose(&mut self, game: &GameHistory, exploration: f64) -> Option<Move> {
        if !self.rng.random_bool(exploration) {
            return self.agent.best_with(game, &mut self.work);
        }
        let moves = canonical_moves(game.position());
        (!moves.is_empty()).then(|| moves[self.rng.random_range(0..moves.len())])
    }

    fn reward(&self, result: GameResult, mover: Color) -> f32 {
        let [reward, malus] = self.settings.rewards;
        winner(result).map_or(0.0, |winner| if winner == mover { reward } else { malus })
    }

    fn learn_game(&mut self, inputs: Vec<Vec<f32>>, winner: Color) -> f32 {
        let targets = published_targets(inputs.len(), winner, Color::White, &self.settings);
        let examples: Vec<Example> = inputs
            .into_iter()
            .zip(targets)
            .map(|(input, target)| Example { input, target })
            .collect();
        let (adam, network) = (&mut self.adam, &mut self.agent.network);
        let losses: Vec<f32> = examples
            .chunks(BATCH)
            .map(|batch| adam.step(network, batch))
            .collect();
        losses.iter().sum::<f32>() / losses.len().max(1) as f32
    }

    /// A step on moves of the buffer, once every few plies. Before a game was decided all values and gradients are 0; after
    /// many steps of that, Adam's first steps on a reward would be several times too large.
    fn replay(&mut self) -> Option<f32> {
        let is_enough = self.buffer.len() >= 10 * BATCH && self.buffer.has_decided();
        if !is_enough || !self.plies.is_multiple_of(PLIES_A_STEP) {
            return None;
        }
        let chosen = self.buffer.sample(BATCH, &mut self.rng);
        let examples = self.examples(&chosen);
        let loss = self.adam.step(&mut self.agent.network, &examples);
        let (target, online) = (&mut self.target.network, &self.agent.network);
        target.move_towards(online, TARGET_RATE);
        Some(loss)
    }

    /// Moves of the buffer with their targets. The replies of all are valued in one batch, the best of them in another.
    fn examples(&mut self, chosen: &[usize]) -> Vec<Example> {
        let (form, width) = (self.settings.form, self.settings.form.inputs());
        let buffer = &self.buffer;
        let transitions: Vec<&Transition> = chosen.iter().map(|place| buffer.get(*place)).collect();
        let mut replies = Vec::new();
        for one in &transitions {
            form.encode_all(&one.after, &one.replies, &mut replies);
        }
        let online = self.agent.network.values(&replies, &mut self.work);
        let mut best = Vec::new();
        let mut begin = 0;
        for one in &transitions {
            let end = begin + one.replies.len();
            if let Some(place) = highest(&online[begin..end]) {
                best.extend_from_slice(&replies[(begin + place) * width..][..width]);
            }
            begin = end;
        }
        let mut values = self.target.network.values(&best, &mut self.work).iter();
        transitions
            .into_iter()
            .map(|one| {
                let has_reply = !one.replies.is_empty();
                let reply = has_reply.then(|| values.next()).flatten();
                Example {
                    input: one.input.clone(),
                    target: double_target(one.reward, reply.copied().unwrap_or(0.0)),
                }
            })
            .collect()
    }
}

fn winner(result: GameResult) -> Option<Color> {
    match result {
        GameResult::WhiteWins => Some(Color::White),
        GameResult::BlackWins => Some(Color::Black),
        GameResult::Draw => None,
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::moves::parse_uci;

    use super::super::DOUBLE_HIDDEN;
    use super::*;

    fn settings() -> Settings {
        Settings {
            form: Form::Double,
            hidden: DOUBLE_HIDDEN.to_vec(),
            games: Some(11),
            epsilon: [1.0, 0.0],
            gamma: None,
            rewards: [10.0, -5.0],
            rate: 0.001,
            seed: 1,
        }
    }

    /// Gives first moves values of about `value`.
    fn teach(agent: &mut Dqn, value: f32) {
        let game = GameHistory::default();
        let moves = canonical_moves(game.position());
        let example = |(place, m): (usize, &Move)| Example {
            input: agent.form.encode(game.position(), *m),
            target: value + 0.01 * place as f32,
        };
        let examples: Vec<Example> = moves.iter().enumerate().map(example).collect();
        let mut adam = Adam::new(&agent.network, 0.001);
        for _ in 0..200 {
            adam.step(&mut agent.network, &examples);
        }
    }

    #[test]
    fn targets_of_a_game_grow_to_its_end_as_published() {
        // Black mates on the fourth ply: gamma is 1/4, so 1/4 of -5, 2/4 of 10, 3/4 of -5, 4/4 of 10.
        let targets = published_targets(4, Color::Black, Color::White, &settings());
        assert_eq!(targets, [-1.25, 5.0, -3.75, 10.0]);
        let fixed = Settings {
            gamma: Some(0.5),
            ..settings()
        };
        assert_eq!(
            published_targets(2, Color::White, Color::White, &fixed),
            [5.0, -5.0]
        );
    }

    #[test]
    fn a_double_target_takes_the_online_choice_at_the_other_networks_value() {
        assert_eq!(double_target(Some(10.0), 0.0), 10.0);
        let mut trainer = Trainer::new(settings());
        // Networks that have learnt something, as all outputs are 0 at first.
        trainer.target = Dqn::new(Form::Double, &DOUBLE_HIDDEN, 2);
        for (agent, value) in [(&mut trainer.agent, 1.0), (&mut trainer.target, -1.0)] {
            teach(agent, value);
        }
        let mut game = GameHistory::default();
        for m in ["e2e4", "e7e5"] {
            let m = parse_uci(game.position(), m).unwrap();
            let input = Form::Double.encode(game.position(), m);
            game.push(m);
            let after = game.position().clone();
            let replies = canonical_moves(&after);
            trainer.buffer.push(Transition {
                input,
                reward: None,
                after,
                replies,
            });
        }
        let won = Transition {
            reward: Some(10.0),
            replies: Vec::new(),
            ..trainer.buffer.get(0).clone()
        };
        trainer.buffer.push(won);
        let found = trainer.examples(&[1, 2, 0]);
        for (place, example) in [(1, &found[0]), (0, &found[2])] {
            let one = trainer.buffer.get(place);
            let of = |agent: &Dqn, m: Move| {
                let input = Form::Double.encode(&one.after, m);
                agent.network.values(&input, &mut Workspace::default())[0]
            };
            // The first of equals, as for moves.
            let better = |a: Move, b: Move| {
                if of(&trainer.agent, b) > of(&trainer.agent, a) {
                    b
                } else {
                    a
                }
            };
            let best = one.replies.iter().copied().reduce(better).unwrap();
            let expected = -DISCOUNT * of(&trainer.target, best);
            assert!((example.target - expected).abs() < 1e-5, "{place}");
            assert_eq!(example.input, one.input);
        }
        assert_eq!(found[1].target, 10.0);
    }

    #[test]
    fn exploration_falls_linearly_with_games_or_time() {
        let shares = [0, 5, 10, 99].map(|game| exploration(&settings(), game, 0.25));
        assert_eq!(shares, [0.75, 0.5, 0.0, 0.0]);
        assert_eq!(exploration(&settings(), 2, 1.1), 0.0);
        let timed = Settings {
            games: None,
            ..settings()
        };
        assert_eq!(exploration(&timed, 5000, 0.25), 0.75);
    }

    /// Moves that earn nothing.
    fn unrewarded(count: usize) -> Vec<Transition> {
        let mut game = GameHistory::default();
        let mut transitions = Vec::new();
        while transitions.len() < count {
            let moves = canonical_moves(game.position());
            let m = moves[7 * transitions.len() % moves.len()];
            let input = Form::Double.encode(game.position(), m);
            game.push(m);
            if game.end().is_some() {
                game = GameHistory::default();
                continue;
            }
            let after = game.position().clone();
            let replies = canonical_moves(&after);
            transitions.push(Transition {
                input,
                reward: None,
                after,
                replies,
            });
        }
        transitions
    }

    #[test]
    fn an_offset_of_all_values_fades_and_does_not_alternate() {
        let mut trainer = Trainer::new(Settings {
            hidden: vec![32],
            ..settings()
        });
        for transition in unrewarded(10 * BATCH) {
            trainer.buffer.push(transition);
        }
        assert_eq!(trainer.replay(), None, "no game was decided");
        trainer.buffer.mark_decided(1);
        teach(&mut trainer.agent, 0.5);
        trainer.target = trainer.agent.clone();
        let inputs: Vec<f32> = (0..BATCH)
            .flat_map(|place| trainer.buffer.get(place).input.clone())
            .collect();
        let mean = |trainer: &mut Trainer| {
            let values = trainer.agent.network.values(&inputs, &mut trainer.work);
            values.iter().sum::<f32>() / BATCH as f32
        };
        let first = mean(&mut trainer);
        assert!(first > 0.2, "{first}");
        let mut means = [0.0; 4];
        for after in &mut means {
            for _ in 0..250 {
                trainer.replay().unwrap();
            }
            *after = mean(&mut trainer);
        }
        let [_, later @ ..] = means;
        let faded = later.iter().all(|mean| mean.abs() < 0.1 * first);
        assert!(faded, "{first} {means:?}");
    }

    #[test]
    fn games_are_learnt_from_and_a_seed_always_gives_the_same_agent() {
        for form in [Form::Published, Form::Double] {
            let settings = Settings {
                form,
                hidden: vec![8],
                epsilon: [1.0; 2],
                ..settings()
            };
            let train = || {
                let mut trainer = Trainer::new(settings.clone());
                let mut losses = Vec::new();
                while trainer.games < 60 && losses.last().is_none_or(|loss| *loss == 0.0) {
                    losses.extend(trainer.play_game(0.0, &|| false));
                }
                (losses, trainer.agent)
            };
            let ((losses, first), (_, second)) = (train(), train());
            assert!(losses.last().is_some_and(|loss| *loss > 0.0), "{losses:?}");
            assert!(losses.iter().all(|loss| loss.is_finite()), "{losses:?}");
            assert_eq!(first.network, second.network);
            assert_ne!(first.network, Dqn::new(form, &settings.hidden, 1).network);
        }
    }
}
