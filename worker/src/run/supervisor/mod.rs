//! The loop in the middle: which jobs are in hand, when the next is fetched, how everything ends.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::text::quantity;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::acquire::{AcquireError, Acquired, acquire};
use super::activity::{Activity, Pause, PauseReason};
use super::job_state::{CloseFailure, Effect, JobEvent, JobState};
use super::lease::{self, Lease};
use super::login::fatal_error;
use super::resume::{leave, resume};
use super::{Event, Shared, introduction, ticks};
use crate::play::{Control, PlayEvent, Player, games_at_once};
use crate::shutdown::Phase;
use crate::spool::{OpenJob, SpoolError, SpoolEvent};

/// Jobs in hand at once: one being played, one whose last games are being played, one that waits.
const JOBS: usize = 3;
/// Finished games of a match wait no longer than this: the whole run waits for its gates, and people watch them.
const MATCH_CHUNK_EVERY: Duration = Duration::from_secs(5);
/// Jobs that may fail one after the other before the program gives up.
const FAILURES: u32 = 5;

/// A job that is not done.
#[derive(Debug)]
struct TrackedJob {
    state: JobState,
    /// Held while the job is played and until it is closed. None for one that an earlier start left.
    lease: Option<Lease>,
    is_match: bool,
}

/// The state of the loop.
pub(super) struct Supervisor {
    shared: Shared,
    player: Player,
    inbox: mpsc::UnboundedReceiver<Event>,
    jobs: HashMap<JobId, TrackedJob>,
    acquiring: Option<JoinHandle<Result<Acquired, AcquireError>>>,
    /// Jobs begun.
    begun: u32,
    /// Failures since the last finished game.
    failures: u32,
    /// Set while finished games cannot be written.
    disk_pause: Option<Pause>,
    /// What ends the program.
    error: Option<anyhow::Error>,
}

/// What is left to do when nothing is played any more.
pub(super) struct EndOfPlay {
    /// What the user has to put right.
    pub(super) error: Option<anyhow::Error>,
    /// Jobs whose lease is to be given back once their games are uploaded.
    pub(super) returning: HashSet<JobId>,
}

impl Supervisor {
    pub(super) fn new(
        shared: Shared,
        player: Player,
        inbox: mpsc::UnboundedReceiver<Event>,
    ) -> Self {
        Self {
            shared,
            player,
            inbox,
            jobs: HashMap::new(),
            acquiring: None,
            begun: 0,
            failures: 0,
            disk_pause: None,
            error: None,
        }
    }

    /// Plays until the end.
    pub(super) async fn run(mut self, found: Vec<OpenJob>) -> EndOfPlay {
        for job in found {
            match resume(&self.shared, job).await {
                Ok(Some(acquired)) => self.begin(acquired),
                Ok(None) => {}
                Err(error) => self.end(error),
            }
        }
        let mut cuts = ticks(self.shared.settings.chunk_every);
        cuts.reset();
        let mut match_cuts = ticks(cuts.period().min(MATCH_CHUNK_EVERY));
        match_cuts.reset();
        self.shared.status.set_next_upload(cuts.period());
        let mut phase = Phase::Running;
        loop {
            self.fetch_ahead();
            if self.leases().next().is_none() {
                self.shared.status.clear_job();
            }
            if phase > Phase::Running {
                self.shared.status.set_left(self.games_left());
            }
            if self.is_over() {
                break;
            }
            let next_phase = if phase == Phase::Running {
                Phase::Finishing
            } else {
                Phase::Stopping
            };
            tokio::select! {
                Some(event) = self.inbox.recv() => self.handle(event).await,
                acquired = finished(&mut self.acquiring) => self.take(acquired),
                _ = cuts.tick() => {
                    self.shared.status.set_next_upload(cuts.period());
                    self.cut(|_| true).await;
                }
                _ = match_cuts.tick() => self.cut(|job| job.is_match).await,
                () = self.shared.shutdown.reached(next_phase), if phase < Phase::Stopping => {
                    phase = self.shared.shutdown.phase();
                    self.wind_down(phase).await;
                }
                // Jobs that are being played begin games all the time: look again soon whether
                // the next job is needed.
                () = tokio::time::sleep(LOOK), if self.acquiring.is_none() => {}
            }
        }
        let returning = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state == JobState::Returning);
        EndOfPlay {
            returning: returning.map(|(id, _)| *id).collect(),
            error: self.error,
        }
    }

    /// The leases of the jobs in hand.
    fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.jobs.values().filter_map(|job| job.lease.as_ref())
    }

    fn lease(&self, job: JobId) -> Option<&Lease> {
        self.jobs.get(&job)?.lease.as_ref()
    }

    /// Asks for another job if the games in hand will soon not fill the machine. During a pause they would wait.
    fn fetch_ahead(&mut self) {
        let unstarted: usize = self.leases().map(|lease| lease.counters.unstarted()).sum();
        let enough = unstarted >= self.shared.machine.all_games().div_ceil(4);
        let idle = self.acquiring.is_none() && self.leases().count() < JOBS;
        let plays = self.shared.activity.now() == Activity::Playing;
        if plays && self.wants_more() && !enough && idle {
            self.acquiring = Some(tokio::spawn(acquire(self.shared.clone())));
        }
    }

    /// Whether the program may begin another job.
    fn wants_more(&self) -> bool {
        let most = self.shared.settings.max_jobs.unwrap_or(u32::MAX);
        self.shared.shutdown.phase() <= Phase::Running && self.begun < most
    }

    fn is_over(&self) -> bool {
        // Jobs that were left before they were played are still to be closed.
        let idle = self.acquiring.is_none() && self.inbox.is_empty();
        !self.wants_more() && idle && self.leases().next().is_none()
    }

    /// Games that are played to their end before the program ends.
    fn games_left(&self) -> usize {
        let counters = self.leases().map(|lease| &lease.counters);
        let finishing = counters.filter(|counters| counters.control() != Control::Drop);
        finishing.map(|counters| counters.in_hand()).sum()
    }

    fn take(&mut self, acquired: Result<Acquired, AcquireError>) {
        self.acquiring = None;
        match acquired {
            Ok(acquired) => self.begin(acquired),
            Err(AcquireError::Interrupted) => {}
            Err(error) => self.end(error.into()),
        }
    }

    fn begin(&mut self, acquired: Acquired) {
        let Acquired { work, lease } = acquired;
        let games = work.games.len();
        self.shared.job_log.taken(&work.job, games);
        self.log_memory_limit(&work.job);
        if self.begun == 0 {
            let (shared, run) = (self.shared.clone(), work.job.run.clone());
            tokio::spawn(async move { introduction::log(&shared, &run).await });
        }
        self.begun += 1;
        self.shared.status.set_job(&work.job);
        let mut state = JobState::Playing;
        if let Some(control) = control_in(self.shared.shutdown.phase()) {
            lease.counters.order(control);
            state = JobState::Draining;
        }
        let tracked = TrackedJob {
            state,
            lease: Some(lease),
            is_match: work.job.work.kind() == WorkKind::Match,
        };
        self.jobs.insert(work.job.id, tracked);
        self.player.play(work);
    }

    /// Says so if a job's searches are too large for all games to be played at once.
    fn log_memory_limit(&self, job: &Job) {
        let (games, all) = (
            games_at_once(&self.shared.machine, &job.work),
            self.shared.machine.all_games(),
        );
        if games < all {
            let games = quantity(games, "game");
            tracing::info!(
                "the searches of this job need much memory: {games} at once instead of {all}"
            );
        }
    }

    async fn handle(&mut self, event: Event) {
        match event {
            Event::Play(PlayEvent::Left(job)) => {
                // One that is left before it is played is not known yet.
                self.jobs.entry(job).or_insert(TrackedJob {
                    state: JobState::Draining,
                    lease: None,
                    is_match: false,
                });
                self.advance(job, JobEvent::Left).await;
            }
            Event::Play(PlayEvent::Failed { job, error }) => {
                tracing::error!("RK-0512: job {job} cannot be played: {error}");
                self.count_failure(&error);
            }
            Event::Play(PlayEvent::Died) => self.end(anyhow::anyhow!(
                "RK-0510: a thread that plays has panicked; please report the message above"
            )),
            Event::Spool(SpoolEvent::Kept { job }) => {
                self.failures = 0;
                if let Some(lease) = self.lease(job) {
                    lease.finished.fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::Spool(SpoolEvent::Unusable { job, error }) => {
                tracing::error!("RK-0517: a finished game of job {job} cannot be kept: {error}");
                let lease = self.lease(job);
                if lease.is_some_and(|lease| lease.counters.order(Control::Drop)) {
                    self.count_failure(&error.to_string());
                }
            }
            Event::Spool(SpoolEvent::WriteFailure) => {
                let activity = &self.shared.activity;
                let pause = || activity.pause(PauseReason::Disk);
                self.disk_pause.get_or_insert_with(pause);
            }
            Event::Spool(SpoolEvent::WriteRecovery) => self.disk_pause = None,
            Event::Settled(job) => {
                if let Some(sent) = self.perform(job, Effect::CheckSent).await {
                    self.advance(job, sent).await;
                }
            }
            Event::Fatal(error) => {
                self.end(fatal_error(error, "the coordinator ended the work"));
            }
        }
    }

    /// Moves a job on, and does what that asks for.
    async fn advance(&mut self, id: JobId, event: JobEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let Some(job) = self.jobs.get_mut(&id) else {
                return;
            };
            let (state, effects) = job.state.after(event);
            job.state = state;
            for effect in effects {
                events.extend(self.perform(id, *effect).await);
            }
            if state == JobState::Done {
                self.jobs.remove(&id);
            }
        }
    }

    /// Does what a job's state asks for; what comes of it at once, if anything.
    async fn perform(&mut self, id: JobId, effect: Effect) -> Option<JobEvent> {
        let job = self.jobs.get_mut(&id)?;
        match effect {
            Effect::Order(control) => {
                if let Some(lease) = &job.lease {
                    lease.counters.order(control);
                }
            }
            Effect::Close => return Some(self.close(id).await),
            Effect::CloseLater => close_later(&self.shared, id),
            Effect::EndHeartbeat => job.lease = None,
            Effect::CheckSent => {
                // At the end of the program the leases are given back together, after the last uploads.
                let state = job.state;
                let ending = self.shared.shutdown.has_reached(Phase::Finishing);
                let is_sent =
                    state == JobState::Returning && !ending && is_sent(&self.shared, id).await;
                return is_sent.then_some(JobEvent::Sent);
            }
            Effect::GiveBack => {
                let client = self.shared.client.clone();
                tokio::spawn(async move { lease::give_back(&client, id).await });
            }
        }
        None
    }

    /// Has the spool close a job. It has taken every game of it, as threads hand games in before they leave.
    async fn close(&self, id: JobId) -> JobEvent {
        let error = match self.shared.spool.close(id).await {
            Ok(missing) => return JobEvent::Closed { missing },
            Err(error) => error,
        };
        let tries = match self.jobs.get(&id).map(|job| job.state) {
            Some(JobState::Closing { failures }) => failures + 1,
            _ => 1,
        };
        let failure = close_failure(&error, tries, self.shared.shutdown.phase());
        match failure {
            CloseFailure::Retry => log_close_failure(id, &error),
            CloseFailure::GiveUp => {
                tracing::error!("RK-0518: job {id} cannot be closed and is given up: {error}");
            }
            CloseFailure::Leave => tracing::error!(
                "RK-0518: job {id} cannot be closed: {error}; the next start uploads what can be read"
            ),
        }
        JobEvent::CloseFailed(failure)
    }

    /// Counts a job that failed. Its threads leave it already.
    fn count_failure(&mut self, error: &str) {
        self.failures += 1;
        if self.failures >= FAILURES {
            self.end(anyhow::anyhow!(
                "RK-0509: {FAILURES} jobs failed one after the other: {error}"
            ));
        }
    }

    /// Ends the program because of an error; finished games are kept.
    fn end(&mut self, error: anyhow::Error) {
        self.error.get_or_insert(error);
        self.shared.shutdown.advance(Phase::Stopping);
    }

    async fn wind_down(&mut self, phase: Phase) {
        let Some(control) = control_in(phase) else {
            return;
        };
        for job in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.advance(job, JobEvent::Ordered(control)).await;
        }
    }

    /// Has the finished games of these jobs uploaded.
    async fn cut(&self, chosen: impl Fn(&TrackedJob) -> bool) {
        let in_hand = self.jobs.iter().filter(|(_, job)| job.lease.is_some());
        for (job, _) in in_hand.filter(|(_, job)| chosen(job)) {
            if let Err(error) = self.shared.spool.cut(*job).await {
                tracing::error!("RK-0515: finished games cannot be written into a chunk: {error}");
            }
        }
    }
}

/// Whether the coordinator has answered for all finished games of a job.
async fn is_sent(shared: &Shared, job: JobId) -> bool {
    matches!(shared.spool.unsent_of(job).await, Ok(0))
}

/// Gives leases back that were not played to their end. One with finished games that wait to be uploaded is kept: if others
/// got its pairs, the games would be refused.
pub(super) async fn give_back(shared: &Shared, jobs: HashSet<JobId>) {
    for job in jobs {
        if is_sent(shared, job).await && lease::give_back(&shared.client, job).await {
            tracing::info!("an unfinished job was given back");
            tracing::debug!("given back: job {job}");
        }
    }
}

/// Has a job closed that could not be closed now; meanwhile its lease, if it has one, is held.
fn close_later(shared: &Shared, job: JobId) {
    let shared = shared.clone();
    tokio::spawn(async move {
        tokio::time::sleep(CLOSE_AGAIN).await;
        leave(&shared, job);
    });
}

/// Logs that a job could not be closed now.
fn log_close_failure(id: JobId, error: &SpoolError) {
    let seconds = CLOSE_AGAIN.as_secs();
    tracing::error!("RK-0518: job {id} cannot be closed: {error}; next try in {seconds} s");
}

/// What to do about a job that could not be closed so often. It is given up if the spool has none such, or if
/// its folder stays away while the program wants to end.
fn close_failure(error: &SpoolError, tries: u32, phase: Phase) -> CloseFailure {
    let ending = phase >= Phase::Finishing && tries >= CLOSES;
    if phase >= Phase::Stopping {
        CloseFailure::Leave
    } else if matches!(error, SpoolError::NoJob(_)) || (error.is_gone() && ending) {
        CloseFailure::GiveUp
    } else {
        CloseFailure::Retry
    }
}

/// Attempts to close a job whose folder is gone before the program ends without it.
const CLOSES: u32 = 3;
/// Until a job is closed again whose folder cannot be written.
const CLOSE_AGAIN: Duration = Duration::from_secs(10);
/// Between two looks whether another job is needed.
const LOOK: Duration = Duration::from_millis(250);

/// What becomes of jobs in this phase.
const fn control_in(phase: Phase) -> Option<Control> {
    match phase {
        Phase::Starting | Phase::Running => None,
        Phase::Finishing => Some(Control::FinishInHand),
        Phase::Stopping => Some(Control::Drop),
    }
}

/// The end of a task that may not be there; waits for ever if it is not.
async fn finished(
    task: &mut Option<JoinHandle<Result<Acquired, AcquireError>>>,
) -> Result<Acquired, AcquireError> {
    match task {
        Some(task) => task.await.unwrap_or_else(|error| {
            Err(anyhow::Error::from(error)
                .context("asking for a job failed")
                .into())
        }),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
