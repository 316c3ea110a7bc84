//! Matches between two networks on this machine, both colours from each opening.
//!
//! [`MatchPlan`] says what is played, [`play`] plays it with the engine's pools, one on each
//! thread, and keeps the [`Standing`], [`report`] tells it to people and scripts.

pub mod report;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::Context as _;
use rookery_common::chunk::{GameKind, GameRecord, Side};
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_common::params::MatchParams;
use rookery_common::rating::{GameScore, Pentanomial, SprtParams, SprtStatus, Tally, Verdict};
use rookery_engine::{Evaluator, GamePool, Job, MatchGame, Planned, Work};
use shakmaty::ByColor;

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
    /// Games in hand at a time, on all threads together.
    pub concurrency: usize,
}

/// A thread's own pair of evaluators, the first network's before its opponent's.
pub type Players<'a> = [Box<dyn Evaluator + Send + 'a>; 2];

/// Where a thread hands in its finished games, or what ended it.
pub(crate) type Games = Sender<anyhow::Result<GameRecord>>;

/// Where a match stands.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Results as the first network sees them.
    pub tally: Tally,
    /// The same by the first network's colour, without pairs.
    pub by_color: ByColor<Tally>,
    /// The sequential test, if there is one.
    pub sprt: Option<SprtStatus>,
    /// Games whose pair is not complete.
    halves: HashMap<u32, GameScore>,
    /// Complete pairs after one that is not, by number.
    waiting: BTreeMap<u32, (GameScore, GameScore)>,
    /// The pairs before the first that is not complete. The test looks at these alone: of the others the short ones
    /// come first, and length goes with the result.
    in_order: Pentanomial,
}

impl Standing {
    fn add(&mut self, game: &GameRecord, plan: &MatchPlan) -> anyhow::Result<()> {
        let GameKind::Match { pair, candidate } = game.kind else {
            anyhow::bail!("the pool has played a game of another kind");
        };
        let score = GameScore::of(game.end.result, candidate.into());
        self.tally.add_game(score);
        self.by_color.get_mut(candidate.into()).add_game(score);
        if let Some(first) = self.halves.remove(&pair) {
            self.tally.pairs.add(first, score);
            self.waiting.insert(pair, (first, score));
        } else {
            self.halves.insert(pair, score);
        }
        while let Some((first, second)) = self.waiting.remove(&(self.in_order.pairs() as u32)) {
            self.in_order.add(first, second);
        }
        let status = plan.sprt.as_ref().map(|sprt| sprt.status(&self.in_order));
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
    /// The job of one thread of `threads`: of pair `i`, the first network is White in game `2i`.
    fn job(&self, thread: usize, threads: usize) -> anyhow::Result<Job> {
        let mut games = Vec::new();
        for pair in (0..self.pairs).skip(thread).step_by(threads) {
            let start = self.book.of_pair(self.seed, pair).start()?;
            for (offset, candidate) in [Side::White, Side::Black].into_iter().enumerate() {
                let start = start.clone();
                let game = MatchGame {
                    pair,
                    candidate,
                    start,
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

/// Plays a match on a thread for each of `players`, until all games are over, the test has decided,
/// or `each`, which sees every finished game, breaks off. Which thread plays a game does not change
/// it.
///
/// # Errors
///
/// If a parameter or an opening is wrong, an evaluator fails, or `each` does.
pub fn play(
    plan: &MatchPlan,
    players: Vec<Players<'_>>,
    each: impl FnMut(&GameRecord, &Standing) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Standing> {
    let threads = players.len().max(1);
    let concurrency = plan.concurrency.div_ceil(threads);
    let mut pools = Vec::new();
    for thread in 0..players.len() {
        pools.push(GamePool::new(
            &plan.job(thread, threads)?,
            concurrency,
            &[],
        )?);
    }
    let shares: Vec<_> = pools.into_iter().zip(players).collect();
    let play_share = |(mut pool, [mut first, mut second]): (GamePool, Players<'_>),
                      games: &Games,
                      stop: &AtomicBool| {
        let is_time = || stop.load(Ordering::Relaxed);
        // The receiver outlives the thread.
        let hand_in = |game| drop(games.send(Ok(game)));
        pool.run_each(&mut [&mut *first, &mut *second], is_time, hand_in)?;
        Ok(())
    };
    play_shares(plan, shares, play_share, each)
}

/// Plays each of these shares of a match on a thread of its own by `play`, until all are over, the
/// test has decided, or `each`, which sees every finished game, breaks off.
///
/// # Errors
///
/// If `play` or `each` fails.
pub(crate) fn play_shares<S: Send>(
    plan: &MatchPlan,
    shares: Vec<S>,
    play: impl Fn(S, &Games, &AtomicBool) -> anyhow::Result<()> + Sync,
    each: impl FnMut(&GameRecord, &Standing) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Standing> {
    let stop = AtomicBool::new(false);
    let (sender, games) = channel();
    std::thread::scope(|scope| {
        for share in shares {
            let (sender, stop, play) = (sender.clone(), &stop, &play);
            scope.spawn(move || {
                if let Err(error) = play(share, &sender, stop) {
                    // Without a receiver the match is over anyway.
                    drop(sender.send(Err(error)));
                }
            });
        }
        drop(sender);
        let result = count(plan, &games, each);
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn count(
    plan: &MatchPlan,
    games: &Receiver<anyhow::Result<GameRecord>>,
    mut each: impl FnMut(&GameRecord, &Standing) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Standing> {
    let mut standing = Standing::default();
    for game in games {
        let game = game?;
        standing.add(&game, plan).context("cannot count a game")?;
        if each(&game, &standing)?.is_break() || standing.is_decided() {
            break;
        }
    }
    Ok(standing)
}

#[cfg(test)]
mod tests;
