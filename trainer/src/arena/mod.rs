//! Matches between two networks on this machine, both colours from each opening.
//!
//! [`MatchPlan`] says what is played, [`play`] plays it with the engine's tables and keeps the
//! [`Standing`], [`report`] tells it to people and scripts.

pub mod report;

use std::collections::HashMap;
use std::ops::ControlFlow;

use anyhow::Context as _;
use rookery_common::chunk::{GameKind, GameRecord, Side};
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_common::params::MatchParams;
use rookery_common::rating::{GameScore, SprtParams, SprtStatus, Tally, Verdict};
use rookery_engine::{Batch, Evaluations, Evaluator, Job, MatchGame, Planned, Table, Work};

/// What is played.
#[derive(Debug, Clone)]
pub struct MatchPlan {
    /// Pairs of games, one from each opening.
    pub pairs: u32,
    /// How games are played.
    pub params: MatchParams,
    /// From where.
    pub book: OpeningBook,
    /// The order of the openings, and all chance in the games.
    pub seed: Seed,
    /// The test that may end the match early.
    pub sprt: Option<SprtParams>,
    /// Games in hand at a time.
    pub concurrency: usize,
}

/// Where a match stands.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Results as the first network sees them.
    pub tally: Tally,
    /// The sequential test, if there is one.
    pub sprt: Option<SprtStatus>,
    /// Games whose pair is not complete.
    halves: HashMap<u32, GameScore>,
}

impl Standing {
    fn add(&mut self, game: &GameRecord, plan: &MatchPlan) -> anyhow::Result<()> {
        let GameKind::Match { pair, candidate } = game.kind else {
            anyhow::bail!("the table has played a game of another kind");
        };
        let score = GameScore::of(game.end.result, candidate.into());
        self.tally.add_game(score);
        match self.halves.remove(&pair) {
            Some(first) => self.tally.pairs.add(first, score),
            None => drop(self.halves.insert(pair, score)),
        }
        let status = plan
            .sprt
            .as_ref()
            .map(|sprt| sprt.status(&self.tally.pairs));
        self.sprt = status.transpose()?;
        Ok(())
    }

    /// Whether the test has decided.
    pub fn is_decided(&self) -> bool {
        self.sprt
            .is_some_and(|status| status.verdict != Verdict::Continue)
    }
}

impl MatchPlan {
    /// The job: of pair `i`, the first network is White in game `2i`.
    fn job(&self) -> anyhow::Result<Job> {
        let mut games = Vec::new();
        for pair in 0..self.pairs {
            let start = self.book.of_pair(self.seed, pair).start()?;
            for (offset, candidate) in [Side::White, Side::Black].into_iter().enumerate() {
                let game = MatchGame {
                    pair,
                    candidate,
                    start: start.clone(),
                };
                games.push(Planned {
                    index: 2 * pair + offset as u32,
                    game,
                });
            }
        }
        Ok(Job {
            seed: self.seed,
            work: Work::Match {
                params: self.params.clone(),
                games,
            },
        })
    }
}

/// Plays a match until all games are over, the test has decided, or `each`, which sees every
/// finished game, breaks off.
///
/// # Errors
///
/// If a parameter or an opening is wrong, an evaluator fails, or `each` does.
pub fn play(
    plan: &MatchPlan,
    evaluators: [&mut dyn Evaluator; 2],
    mut each: impl FnMut(&GameRecord, &Standing) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Standing> {
    let mut table = Table::new(&plan.job()?, plan.concurrency, &[])?;
    let mut batches = [0, 1].map(|i: usize| {
        let evaluator = &evaluators[i];
        Batch::new(evaluator.input(), evaluator.policy())
    });
    let mut answers = [Evaluations::default(), Evaluations::default()];
    let mut standing = Standing::default();
    let mut evaluators = evaluators;
    while !table.done() {
        table.gather(&mut batches);
        for ((evaluator, batch), answer) in evaluators.iter_mut().zip(&batches).zip(&mut answers) {
            answer.clear();
            if !batch.is_empty() {
                evaluator.evaluate(batch, answer)?;
            }
        }
        table.apply(&answers)?;
        for game in table.finished() {
            standing.add(&game, plan).context("cannot count a game")?;
            if each(&game, &standing)?.is_break() || standing.is_decided() {
                return Ok(standing);
            }
        }
    }
    Ok(standing)
}

#[cfg(test)]
mod tests;
