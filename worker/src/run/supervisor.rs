//! The loop in the middle: which jobs are in hand, when the next is fetched, how everything ends.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::Job;
use rookery_common::text::quantity;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::acquire::{AcquireError, Acquired, acquire};
use super::lease::{self, Lease, LeaseEvent};
use super::login::last_word;
use super::resume::resume;
use super::upload::{Drained, UploadEvent};
use super::{Event, Shared, introduction, summary};
use crate::play::{Control, PlayEvent, Player, games_at_once};
use crate::shutdown::Phase;
use crate::spool::actor::SpoolEvent;
use crate::spool::{OpenJob, Remains, SpoolError};

/// Jobs in hand at once: one being played, one whose last games are being played, one that waits.
const JOBS: usize = 3;
/// Jobs that may fail one after the other before the program gives up.
const FAILURES: u32 = 5;

/// The state of the loop.
pub(super) struct Supervisor {
    shared: Shared,
    player: Player,
    inbox: mpsc::UnboundedReceiver<Event>,
    in_hand: HashMap<JobId, Lease>,
    /// Jobs whose lease is given back once their finished games are uploaded.
    returning: HashSet<JobId>,
    acquiring: Option<JoinHandle<Result<Acquired, AcquireError>>>,
    /// How often jobs could not be closed.
    unclosed: HashMap<JobId, u32>,
    /// Jobs begun.
    begun: u32,
    /// Failures since the last finished game.
    failures: u32,
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
            in_hand: HashMap::new(),
            returning: HashSet::new(),
            acquiring: None,
            unclosed: HashMap::new(),
            begun: 0,
            failures: 0,
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
        let mut cuts = tokio::time::interval(self.shared.settings.chunk_every);
        cuts.reset();
        self.shared.status.set_next_upload(cuts.period());
        let mut phase = Phase::Running;
        loop {
            self.fetch_ahead();
            if self.in_hand.is_empty() {
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
                _ = cuts.tick() => self.cut().await,
                () = self.shared.shutdown.reached(next_phase), if phase < Phase::Stopping => {
                    phase = self.shared.shutdown.phase();
                    self.wind_down(phase);
                }
                // Jobs that are being played begin games all the time: look again soon whether
                // the next job is needed.
                () = tokio::time::sleep(LOOK), if self.acquiring.is_none() => {}
            }
        }
        EndOfPlay {
            error: self.error,
            returning: self.returning,
        }
    }

    /// Asks for another job if the games in hand will soon not fill the machine.
    fn fetch_ahead(&mut self) {
        let unstarted: usize = self
            .in_hand
            .values()
            .map(|lease| lease.gauge.unstarted())
            .sum();
        let enough = unstarted >= self.shared.machine.all_games().div_ceil(4);
        let more = self
            .shared
            .settings
            .max_jobs
            .is_none_or(|most| self.begun < most);
        let running = self.shared.shutdown.phase() == Phase::Running;
        if running && more && !enough && self.acquiring.is_none() && self.in_hand.len() < JOBS {
            self.acquiring = Some(tokio::spawn(acquire(self.shared.clone())));
        }
    }

    fn is_over(&self) -> bool {
        let wanted = self
            .shared
            .settings
            .max_jobs
            .is_none_or(|most| self.begun < most);
        let ending = self.shared.shutdown.phase() > Phase::Running || !wanted;
        ending && self.acquiring.is_none() && self.in_hand.is_empty()
    }

    /// Games that are played to their end before the program ends.
    fn games_left(&self) -> usize {
        let gauges = self.in_hand.values().map(|lease| &lease.gauge);
        let finishing = gauges.filter(|gauge| gauge.control() != Control::Drop);
        finishing.map(|gauge| gauge.in_hand()).sum()
    }

    fn take(&mut self, acquired: Result<Acquired, AcquireError>) {
        self.acquiring = None;
        match acquired {
            Ok(acquired) => self.begin(acquired),
            Err(AcquireError::Interrupted) => {}
            Err(AcquireError::Fatal(error)) => self.end(error),
        }
    }

    fn begin(&mut self, acquired: Acquired) {
        let Acquired { assignment, lease } = acquired;
        let games = assignment.games.len();
        self.shared.job_log.taken(&assignment.job, games);
        self.tell_of_memory(&assignment.job);
        if self.begun == 0 {
            let (shared, run) = (self.shared.clone(), assignment.job.run.clone());
            tokio::spawn(async move { introduction::log(&shared, &run).await });
        }
        self.begun += 1;
        self.shared.status.set_job(&assignment.job);
        if let Some(control) = control_in(self.shared.shutdown.phase()) {
            lease.gauge.order(control);
        }
        self.in_hand.insert(assignment.job.id, lease);
        self.player.play(assignment);
    }

    /// Says so if a job's searches are too large for all games to be played at once.
    fn tell_of_memory(&self, job: &Job) {
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
            Event::Play(PlayEvent::Left(job)) => self.leave(job).await,
            Event::Play(PlayEvent::Failed { job, error }) => self.fail(job, &error),
            Event::Play(PlayEvent::Died) => self.end(anyhow::anyhow!(
                "a thread that plays has ended by a bug, which is told above; please report it"
            )),
            Event::Spool(SpoolEvent::Kept { job, .. }) => {
                self.failures = 0;
                if let Some(lease) = self.in_hand.get(&job) {
                    lease.finished.fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::Spool(SpoolEvent::Unusable { job, error }) => self.fail(job, &error.to_string()),
            Event::Lease(LeaseEvent::Abandon(job)) => {
                tracing::debug!("job {job} is no longer wanted");
                tracing::info!("a job is no longer wanted; its finished games are uploaded");
                self.order(job, Control::Drop);
            }
            Event::Lease(LeaseEvent::Lost(job, error)) => {
                tracing::warn!("a job's lease has ended ({error}); its finished games are kept");
                self.order(job, Control::Drop);
            }
            Event::Upload(UploadEvent::Settled(job)) => self.give_back_if_sent(job).await,
            Event::Lease(LeaseEvent::Fatal(error)) | Event::Upload(UploadEvent::Fatal(error)) => {
                self.end(last_word(error, "the coordinator ended the work"));
            }
        }
    }

    fn order(&self, job: JobId, control: Control) {
        if let Some(lease) = self.in_hand.get(&job) {
            lease.gauge.order(control);
        }
    }

    /// All threads have left a job: what was played of it is uploaded.
    async fn leave(&mut self, job: JobId) {
        // The spool has taken every game of the job, as threads hand games in before they leave.
        match self.shared.spool.close(job).await {
            Ok(missing) => {
                self.unclosed.remove(&job);
                self.in_hand.remove(&job);
                if missing > 0 {
                    self.returning.insert(job);
                    self.give_back_if_sent(job).await;
                }
            }
            Err(error) if self.shared.shutdown.has_reached(Phase::Stopping) => {
                tracing::error!("{error}; what can be read is uploaded at the next start");
                self.in_hand.remove(&job);
            }
            Err(error) => self.leave_again(job, &error),
        }
    }

    /// Has a job that could not be closed left once more, unless there is nothing to be closed.
    fn leave_again(&mut self, job: JobId, error: &SpoolError) {
        let tries = self.unclosed.entry(job).or_default();
        *tries += 1;
        if is_hopeless(error, *tries, self.shared.shutdown.phase()) {
            tracing::error!("{error}; job {job} is given up");
            self.unclosed.remove(&job);
            self.in_hand.remove(&job);
            self.returning.insert(job);
        } else {
            leave_later(&self.shared, job, error);
        }
    }

    /// Gives a lease back once the coordinator has answered for all that was played. At the end of
    /// the program that is done for all of them together.
    async fn give_back_if_sent(&mut self, job: JobId) {
        if self.shared.shutdown.has_reached(Phase::Finishing) {
            return;
        }
        let unsent = self.shared.spool.unsent_of(job).await;
        if self.returning.contains(&job) && matches!(unsent, Ok(0)) {
            self.returning.remove(&job);
            let client = self.shared.client.clone();
            tokio::spawn(async move { lease::give_back(&client, job).await });
        }
    }

    fn fail(&mut self, job: JobId, error: &str) {
        tracing::error!("job {job} cannot be played: {error}");
        self.order(job, Control::Drop);
        self.failures += 1;
        if self.failures >= FAILURES {
            self.end(anyhow::anyhow!(
                "{FAILURES} jobs failed one after the other: {error}"
            ));
        }
    }

    /// Ends the program because of an error; finished games are kept.
    fn end(&mut self, error: anyhow::Error) {
        self.error.get_or_insert(error);
        self.shared.shutdown.advance(Phase::Stopping);
    }

    fn wind_down(&self, phase: Phase) {
        if let Some(control) = control_in(phase) {
            self.in_hand
                .values()
                .for_each(|lease| lease.gauge.order(control));
        }
    }

    /// Has the finished games of all jobs uploaded.
    async fn cut(&self) {
        self.shared
            .status
            .set_next_upload(self.shared.settings.chunk_every);
        for job in self.in_hand.keys() {
            if let Err(error) = self.shared.spool.cut(*job).await {
                tracing::error!("finished games cannot be made into a chunk: {error}");
            }
        }
    }
}

/// Gives leases back that were not played to their end.
pub(super) async fn give_back(shared: &Shared, jobs: HashSet<JobId>) {
    for job in jobs {
        if lease::give_back(&shared.client, job).await {
            tracing::info!("an unfinished job was given back");
            tracing::debug!("given back: job {job}");
        }
    }
}

/// Has a job left that could not be closed now; meanwhile its lease, if it has one, is held.
pub(super) fn leave_later(shared: &Shared, job: JobId, error: &SpoolError) {
    let seconds = CLOSE_AGAIN.as_secs();
    tracing::error!("{error}; next try in {seconds} s");
    let events = shared.events.clone();
    tokio::spawn(async move {
        tokio::time::sleep(CLOSE_AGAIN).await;
        // Without a supervisor there is nothing to be left.
        drop(events.send(Event::Play(PlayEvent::Left(job))));
    });
}

/// Whether a job that could not be closed so often is not tried again: the spool has none such, or
/// its folder stays away while the program wants to end.
fn is_hopeless(error: &SpoolError, tries: u32, phase: Phase) -> bool {
    let ending = phase >= Phase::Finishing && tries >= CLOSES;
    matches!(error, SpoolError::NoJob(_)) || (error.is_gone() && ending)
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
        Phase::Running => None,
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

/// Tells at the end what was done and what is left.
pub(super) async fn say_goodbye(shared: &Shared, sent: Drained) {
    let Remains { kept, lost } = shared.spool.end().await.unwrap_or_default();
    if lost > 0 {
        let lost = quantity(lost, "finished game");
        tracing::error!("lost, as they could not be written: {lost}");
    }
    let uploaded = shared.status.uploaded();
    // Who stops at once does not wait for what the coordinator has counted.
    if uploaded.chunks > 0 && !shared.shutdown.has_reached(Phase::Stopping) {
        summary::log_account(shared).await;
    }
    let uploaded = summary::given(uploaded, shared.begun.elapsed());
    match (sent, kept) {
        (Drained::All, 0) => tracing::info!("ended; uploaded: {uploaded}"),
        _ => tracing::warn!(
            "ended; uploaded: {uploaded}; kept and uploaded at the next start: {}",
            quantity(kept, "finished game")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_job_that_is_gone_does_not_hold_up_the_end() {
        let file = |kind: ErrorKind| SpoolError::File {
            action: "write",
            path: "spool".into(),
            source: Error::from(kind),
        };
        let gone = file(ErrorKind::NotFound);
        assert!(!is_hopeless(&gone, CLOSES, Phase::Running));
        assert!(!is_hopeless(&gone, 1, Phase::Finishing));
        assert!(is_hopeless(&gone, CLOSES, Phase::Finishing));
        // Room may be made on a disk.
        let full = file(ErrorKind::StorageFull);
        assert!(!is_hopeless(&full, u32::MAX, Phase::Finishing));
        let none = SpoolError::NoJob(crate::spool::testing::job(1).id);
        assert!(is_hopeless(&none, 1, Phase::Running));
    }
}
