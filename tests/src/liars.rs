//! Contributors who lie, each in a way of its own, and honest ones who compute with other numbers.
//!
//! The engine's hand-made evaluator stands for the network. Everything that they send is
//! well-formed: what is refused at the door and what only an audit finds is for the coordinator.

use std::collections::BTreeMap;

use rookery_common::chess::{GameEnd, GameResult};
use rookery_common::chunk::{ChunkHeader, GameRecord, Side};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::Seed;
use rookery_common::protocol::jobs::{Backend, Job, Work, WorkKind};
use rookery_engine::dummy::{HandEvaluator, UniformEvaluator};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};

use crate::player::{Chunk, header, play_with};

/// A job that was played before, honestly.
pub type Past = (Job, Vec<GameRecord>);

/// Someone who plays jobs in a way of its own.
#[derive(Debug, Clone, Copy)]
pub struct Player {
    /// What it does.
    pub name: &'static str,
    /// Where it says that it computes.
    pub backend: Backend,
    /// The kind of jobs on which it does so.
    pub kind: WorkKind,
    /// Makes a job's games; of another job where it sends those again.
    play: fn(&Job, Option<&Past>) -> anyhow::Result<Past>,
}

impl Player {
    /// Who does the same in matches.
    #[must_use]
    pub const fn in_matches(self) -> Self {
        Self {
            kind: WorkKind::Match,
            ..self
        }
    }

    /// Plays a job; `past` is one that it has played honestly.
    ///
    /// # Errors
    ///
    /// If the job cannot be played.
    pub fn chunk(&self, job: &Job, past: Option<&Past>) -> anyhow::Result<Chunk> {
        let (of, games) = (self.play)(job, past)?;
        let header = ChunkHeader {
            backend: self.backend,
            // The same games under the same job are another file.
            worker_version: format!("{}-{}", header(job).worker_version, job.seed.0 % 1000),
            ..header(&of)
        };
        Chunk::of(&header, &games)
    }
}

const fn of_selfplay(
    name: &'static str,
    backend: Backend,
    play: fn(&Job, Option<&Past>) -> anyhow::Result<Past>,
) -> Player {
    Player {
        name,
        backend,
        kind: WorkKind::SelfPlay,
        play,
    }
}

/// Honest contributors on three backends.
pub const HONEST: [Player; 3] = [
    of_selfplay("honest, 32 bits", Backend::CpuF32, |job, _| {
        Ok((job.clone(), honest(job)?))
    }),
    of_selfplay("honest, bfloat16", Backend::CudaBf16, |job, _| {
        Ok((job.clone(), with(job, |number| kept(number, 8))?))
    }),
    of_selfplay("honest, half precision", Backend::CudaF16, |job, _| {
        Ok((job.clone(), with(job, |number| kept(number, 11))?))
    }),
];

/// Liars whom audits find.
pub const LIARS: [Player; 4] = [
    of_selfplay("random policy visits", Backend::CpuF32, |job, _| {
        let mut random = Changed {
            logits: scattered,
            ..Changed::by(|number| number)
        };
        let games = play_with(job, &mut [&mut random, &mut Changed::by(|number| number)])?;
        Ok((job.clone(), games))
    }),
    of_selfplay("legal but senseless games", Backend::CpuF32, |job, _| {
        let mut uniform = UniformEvaluator::default();
        let games = play_with(job, &mut [&mut uniform, &mut UniformEvaluator::default()])?;
        Ok((job.clone(), games))
    }),
    of_selfplay("a weaker network", Backend::CudaF16, |job, _| {
        Ok((job.clone(), with(job, |number| number * 0.3)?))
    }),
    of_selfplay("inflated visit counts", Backend::CpuF32, |job, _| {
        let mut lazy = job.clone();
        let Work::SelfPlay { params, .. } = &mut lazy.work else {
            anyhow::bail!("self-play was expected");
        };
        params.search.visits /= 4;
        let mut games = honest(&lazy)?;
        for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
            ply.visits.iter_mut().for_each(|visits| *visits *= 4);
        }
        Ok((job.clone(), games))
    }),
];

/// Liars whom the door turns away.
pub const COPIERS: [Player; 4] = [
    of_selfplay(
        "a copied game, its result changed",
        Backend::CpuF32,
        |job, past| {
            let mut games = copied(job, past)?;
            for game in &mut games {
                game.end = GameEnd {
                    result: turned(game.end.result),
                    ..game.end
                };
            }
            Ok((job.clone(), games))
        },
    ),
    of_selfplay("a copied game as it was", Backend::CpuF32, |job, past| {
        Ok((job.clone(), copied(job, past)?))
    }),
    of_selfplay(
        "an earlier lease's games for a later lease",
        Backend::CpuF32,
        |job, past| Ok((job.clone(), of_past(past)?.1.clone())),
    ),
    of_selfplay(
        "an earlier lease played once more",
        Backend::CpuF32,
        |_, past| Ok(of_past(past)?.clone()),
    ),
];

/// Liars who play honestly and send only what they like: here the half of a job that is over first.
/// No check refuses them and no audit finds them.
pub const SELECTORS: [Player; 2] = [
    of_selfplay(
        "only the shorter half of its games",
        Backend::CpuF32,
        |job, _| Ok((job.clone(), shorter_half(honest(job)?, 1))),
    ),
    Player {
        name: "only the shorter half of its pairs",
        backend: Backend::CpuF32,
        kind: WorkKind::Match,
        play: |job, _| Ok((job.clone(), shorter_half(honest(job)?, 2))),
    },
];

/// Liars who want a match's candidate to lose.
pub const THROWERS: [Player; 2] = [
    Player {
        name: "a match thrower whose searches do not choose its moves",
        backend: Backend::CpuF32,
        kind: WorkKind::Match,
        play: |job, _| {
            let mut games = thrown(job)?;
            for game in &mut games {
                // The candidate moves every second ply, White first where it has White.
                let start = game.start.history()?.turn();
                let candidate = candidate(game)?;
                let first = usize::from(Side::from(start) != candidate);
                for ply in game.plies.iter_mut().skip(first).step_by(2) {
                    ply.visits.reverse();
                }
            }
            Ok((job.clone(), games))
        },
    },
    Player {
        name: "a match thrower who lies about its searches",
        backend: Backend::CpuF32,
        kind: WorkKind::Match,
        play: |job, _| Ok((job.clone(), thrown(job)?)),
    },
];

/// The hand-made evaluator, its outputs changed.
struct Changed {
    hand: HandEvaluator,
    logits: fn(f32) -> f32,
    values: fn(f32) -> f32,
}

impl Changed {
    fn by(change: fn(f32) -> f32) -> Self {
        Self {
            hand: HandEvaluator::default(),
            logits: change,
            values: change,
        }
    }
}

impl Evaluator for Changed {
    fn input(&self) -> InputEncoding {
        self.hand.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.hand.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        self.hand.evaluate(batch, answer)?;
        let (logits, values) = (self.logits, self.values);
        answer
            .logits
            .iter_mut()
            .for_each(|logit| *logit = logits(*logit));
        for value in &mut answer.values {
            *value = Wdl::from_q(values(value.q()));
        }
        Ok(())
    }
}

/// A number from -6 to 6 that has nothing to do with this one, but is always the same.
fn scattered(number: f32) -> f32 {
    let bits = Seed(u64::from(number.to_bits())).of_game(0).0;
    12.0 * ((bits >> 40) as f32 / (1_u64 << 24) as f32) - 6.0
}

/// Rounds a number to this number of bits of mantissa, the hidden one included.
fn kept(number: f32, bits: u32) -> f32 {
    let dropped = f32::MANTISSA_DIGITS - bits;
    let half = 1 << (dropped - 1);
    f32::from_bits((number.to_bits() + half) >> dropped << dropped)
}

fn with(job: &Job, change: fn(f32) -> f32) -> anyhow::Result<Vec<GameRecord>> {
    let (mut first, mut second) = (Changed::by(change), Changed::by(change));
    play_with(job, &mut [&mut first, &mut second])
}

/// Plays a job honestly, whatever it is, with 32 bits.
///
/// # Errors
///
/// If the job cannot be played.
pub fn honest(job: &Job) -> anyhow::Result<Vec<GameRecord>> {
    with(job, |number| number)
}

/// The match's games with a candidate that wants the opposite.
fn thrown(job: &Job) -> anyhow::Result<Vec<GameRecord>> {
    let (mut candidate, mut opponent) = (Changed::by(|n| -n), Changed::by(|n| n));
    play_with(job, &mut [&mut candidate, &mut opponent])
}

/// The shorter half of these games, in groups of this size that stay together.
fn shorter_half(mut games: Vec<GameRecord>, together: u32) -> Vec<GameRecord> {
    let mut plies: BTreeMap<u32, usize> = BTreeMap::new();
    for game in &games {
        *plies.entry(game.index / together).or_default() += game.plies.len();
    }
    let mut groups: Vec<(usize, u32)> = plies
        .iter()
        .map(|(group, plies)| (*plies, *group))
        .collect();
    groups.sort_unstable();
    groups.truncate(groups.len().div_ceil(2));
    games.retain(|game| {
        let mut kept = groups.iter().map(|(_, group)| *group);
        kept.any(|group| group == game.index / together)
    });
    games
}

fn candidate(game: &GameRecord) -> anyhow::Result<Side> {
    match game.kind {
        rookery_common::chunk::GameKind::Match { candidate, .. } => Ok(candidate),
        _ => anyhow::bail!("a match game was expected"),
    }
}

fn of_past(past: Option<&Past>) -> anyhow::Result<&Past> {
    past.ok_or_else(|| anyhow::anyhow!("a job that was played before was expected"))
}

/// The games of an earlier job under the indices and seeds of this one.
fn copied(job: &Job, past: Option<&Past>) -> anyhow::Result<Vec<GameRecord>> {
    let (_, games) = of_past(past)?;
    let copy = |(index, game): (u32, &GameRecord)| GameRecord {
        index,
        seed: job.seed.of_game(index),
        ..game.clone()
    };
    Ok((0..job.work.games()).zip(games).map(copy).collect())
}

const fn turned(result: GameResult) -> GameResult {
    match result {
        GameResult::WhiteWins => GameResult::BlackWins,
        GameResult::BlackWins | GameResult::Draw => GameResult::WhiteWins,
    }
}
