//! Simulated workers of the mix: each takes jobs, keeps them alive, and uploads, in its own way.
//!
//! ```text
//! Idle ──lease──> Playing ──heartbeats──> Sending ──acknowledged──> Idle
//! ```
//!
//! A worker is a state; [`Worker::step`] makes its next request and says when the one after is due.

use std::time::{Duration, Instant};

use rookery_common::ids::Seed;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{ChunkReceipt, Job, WorkKind};

use crate::book::Fate;
use crate::cli::Cli;
use crate::games::{Lie, Made};
use crate::http::Connection;
use crate::measure::{Record, Route};
use crate::phases::calls::{Ground, Refusal};

/// Heartbeats of a slow worker for each job.
const SLOW_BEATS: u32 = 5;
/// How long a slow worker waits between them.
const SLOW_PAUSE: Duration = Duration::from_millis(700);
/// Shortest and longest wait before a request is tried again.
const BACKOFF: (f64, f64) = (0.1, 3.0);

/// How a worker behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Takes a job, plays it, uploads it.
    Honest,
    /// The same, but it takes its time.
    Slow,
    /// Drops jobs without a word, and breaks off uploads.
    Crashing,
    /// Sends every chunk several times, at once too, and its games in another file.
    Duplicating,
    /// Puts a lie into every chunk.
    Lying,
}

impl Habit {
    /// The habit of worker `index` of `workers`, so that the shares come out.
    pub(crate) fn of(index: usize, cli: &Cli) -> Self {
        let place = (index as f64 + 0.5) / cli.workers as f64;
        let shares = [
            (Self::Slow, cli.slow),
            (Self::Crashing, cli.crashing),
            (Self::Duplicating, cli.duplicating),
            (Self::Lying, cli.lying),
        ];
        let mut upper = 0.0;
        for (habit, share) in shares {
            upper += share;
            if place < upper {
                return habit;
            }
        }
        Self::Honest
    }
}

enum State {
    Idle,
    Playing { job: Box<Job>, beats: u32 },
    Sending { job: Box<Job>, made: Box<Made> },
}

/// Whether a lease may end so although its worker was heard: audits are given up where too many
/// wait.
fn may_end(job: &Job, refusal: &Refusal) -> bool {
    job.work.kind() == WorkKind::Audit && refusal.code() == Some(ProblemCode::LeaseEnded)
}

/// What a worker makes its next request with.
pub(crate) struct Turn<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) connection: &'a mut Connection,
    /// Where it is noted how the request went.
    pub(crate) record: &'a mut Record,
    /// When the request was due.
    pub(crate) begun: Instant,
}

impl Turn<'_> {
    fn note<T>(&mut self, route: Route, answer: &Result<T, Refusal>) {
        let error = Refusal::error_of(answer);
        self.record.note(route, self.begun, error);
    }
}

/// A simulated worker.
pub(crate) struct Worker {
    contributor: usize,
    name: String,
    habit: Habit,
    state: State,
    /// Requests in a row that failed.
    failures: u32,
    /// The next random number.
    chance: u64,
}

impl Worker {
    /// The worker of this index.
    pub(crate) fn new(index: usize, contributors: usize, habit: Habit, seed: u64) -> Self {
        Self {
            contributor: index % contributors,
            name: format!("swarm-{index}"),
            habit,
            state: State::Idle,
            failures: 0,
            chance: Seed(seed).of_game(index as u32).0,
        }
    }

    /// Whether a chunk waits to be acknowledged.
    pub(crate) const fn is_sending(&self) -> bool {
        matches!(self.state, State::Sending { .. })
    }

    /// From 0 to 1.
    fn chance(&mut self) -> f64 {
        self.chance = Seed(self.chance).of_game(0).0;
        (self.chance >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Makes the next request and says when the one after is due.
    ///
    /// # Errors
    ///
    /// If a chunk cannot be made: a bug of the swarm.
    pub(crate) async fn step(&mut self, turn: &mut Turn<'_>) -> anyhow::Result<Instant> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(self.lease(turn).await),
            State::Playing { job, beats: 0 } => {
                let made = Box::new(turn.ground.chunk(&job)?);
                self.send(turn, job, made).await
            }
            State::Playing { job, beats } => Ok(self.beat(turn, job, beats).await),
            State::Sending { job, made } => self.send(turn, job, made).await,
        }
    }

    async fn lease(&mut self, turn: &mut Turn<'_>) -> Instant {
        let ground = turn.ground;
        let lease = ground.lease(turn.connection, self.contributor, &self.name);
        let answer = lease.await;
        turn.note(Route::Jobs, &answer);
        match answer {
            Ok(job) => {
                self.failures = 0;
                let beats = if self.habit == Habit::Slow {
                    SLOW_BEATS
                } else {
                    1
                };
                let job = Box::new(job);
                self.state = State::Playing { job, beats };
                self.pause()
            }
            Err(refusal) => self.later(&refusal),
        }
    }

    async fn beat(&mut self, turn: &mut Turn<'_>, job: Box<Job>, beats: u32) -> Instant {
        let ground = turn.ground;
        let beat = ground.heartbeat(turn.connection, self.contributor, job.id);
        let answer = beat.await;
        turn.note(Route::Heartbeats, &answer);
        match answer {
            Ok(_) => {
                self.failures = 0;
                self.state = State::Playing {
                    job,
                    beats: beats - 1,
                };
                self.pause()
            }
            Err(refusal) if refusal.passes() => {
                self.state = State::Playing { job, beats };
                self.later(&refusal)
            }
            Err(refusal) if may_end(&job, &refusal) => {
                ground.book.ended(job.id, Fate::Abandoned);
                Instant::now()
            }
            Err(_) => {
                ground
                    .book
                    .with(|accounts| accounts.leases_lost.insert(job.id));
                Instant::now()
            }
        }
    }

    async fn send(
        &mut self,
        turn: &mut Turn<'_>,
        job: Box<Job>,
        made: Box<Made>,
    ) -> anyhow::Result<Instant> {
        let ground = turn.ground;
        match self.habit {
            Habit::Lying => {
                self.lie(turn, &job, &made).await?;
                return Ok(Instant::now());
            }
            Habit::Crashing => {
                if self.chance() < 0.5 {
                    ground.book.ended(job.id, Fate::Abandoned);
                    return Ok(Instant::now());
                }
                // Whether the half arrives does not matter; the coordinator must not mind.
                let call = ground.upload_call(self.contributor, &made);
                let _ = turn.connection.break_off(&call).await;
                ground.book.with(|accounts| accounts.broken_off += 1);
            }
            Habit::Honest | Habit::Slow | Habit::Duplicating => {}
        }
        let answer = self.upload(turn, &made).await?;
        match answer {
            Ok(_) => {
                self.failures = 0;
                ground.book.ended(job.id, Fate::Finished);
                if self.habit == Habit::Duplicating {
                    self.repeat(turn, &made).await?;
                }
                Ok(Instant::now())
            }
            Err(refusal) if refusal.passes() => {
                self.state = State::Sending { job, made };
                Ok(self.later(&refusal))
            }
            Err(refusal) => {
                ground.book.ended(job.id, Fate::Abandoned);
                ground.book.with(|accounts| {
                    accounts.unanswered.remove(&made.hash);
                    if !may_end(&job, &refusal) {
                        *accounts.refused.entry(refusal.label()).or_default() += 1;
                    }
                });
                Ok(Instant::now())
            }
        }
    }

    /// Uploads an honest chunk; who sends everything several times does so on two connections at
    /// once.
    async fn upload(
        &self,
        turn: &mut Turn<'_>,
        made: &Made,
    ) -> anyhow::Result<Result<ChunkReceipt, Refusal>> {
        let ground = turn.ground;
        let answer = if self.habit == Habit::Duplicating {
            let mut beside = ground.connection()?;
            let (one, other) = tokio::join!(
                ground.upload(turn.connection, self.contributor, made),
                ground.upload(&mut beside, self.contributor, made)
            );
            turn.note(Route::Uploads, &other);
            one
        } else {
            ground.upload(turn.connection, self.contributor, made).await
        };
        turn.note(Route::Uploads, &answer);
        Ok(answer)
    }

    async fn lie(&mut self, turn: &mut Turn<'_>, job: &Job, made: &Made) -> anyhow::Result<()> {
        let ground = turn.ground;
        let which = (self.chance() * Lie::ALL.len() as f64) as usize;
        let lied = made.with(Lie::ALL[which % Lie::ALL.len()])?;
        let answer = ground.put(turn.connection, self.contributor, &lied).await;
        let error = match &answer {
            Err(refusal) if refusal.code() != Some(ProblemCode::ChunkRefused) => refusal.error(),
            _ => None,
        };
        turn.record.note(Route::Uploads, turn.begun, error);
        ground.book.ended(job.id, Fate::Abandoned);
        ground.book.with(|accounts| {
            accounts.lies += 1;
            accounts.believed += u64::from(answer.is_ok());
        });
        Ok(())
    }

    /// The acknowledged games again, in the same file and in another.
    async fn repeat(&self, turn: &mut Turn<'_>, made: &Made) -> anyhow::Result<()> {
        let (ground, repacked) = (turn.ground, made.repacked()?);
        // An answer is compared with the first one; without an answer there is nothing to compare.
        let _ = ground.upload(turn.connection, self.contributor, made).await;
        let again = ground
            .put(turn.connection, self.contributor, &repacked)
            .await;
        ground
            .book
            .with(|accounts| accounts.counted_twice += u64::from(again.is_ok()));
        Ok(())
    }

    /// When a worker that is content does its next step.
    fn pause(&mut self) -> Instant {
        match self.habit {
            Habit::Slow => Instant::now() + SLOW_PAUSE.mul_f64(0.5 + self.chance()),
            _ => Instant::now(),
        }
    }

    /// When a worker that was refused tries again.
    fn later(&mut self, refusal: &Refusal) -> Instant {
        let (shortest, longest) = BACKOFF;
        let backoff = (shortest * 2_f64.powi(self.failures.min(10) as i32)).min(longest);
        self.failures += 1;
        let wait = refusal
            .wait()
            .map_or(0.0, |wait| wait.as_secs_f64())
            .max(backoff);
        Instant::now() + Duration::from_secs_f64(wait * (0.8 + 0.4 * self.chance()))
    }
}
