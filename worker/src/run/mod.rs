//! The command `run`: jobs in, games out, until stopped.
//!
//! ```text
//!            acquire ──job and networks──> Supervisor ──work──> Player <──abandon, lost── lease (heartbeats)
//!                                              │  ^                     │ finished games
//!                                              │  '──left, failed───────┤
//!                                              '──close, cut──> Spool <─'
//!                                                                 │ chunks
//!                                                              upload ──> coordinator
//! ```
//!
//! [`login`] gets a token, [`request`] asks for jobs, [`resume`] takes up what an earlier start left,
//! [`supervisor`] is the loop in the middle, [`job_state`] what becomes of a job. [`status`] counts,
//! [`progress`] shows it, [`job_log`], [`notices`], [`introduction`] and [`summary`] are what the log
//! says besides. On Unix, `pause` lets go of the device before the program is stopped for a while; [`activity`] tells
//! the other parts of pauses.

mod acquire;
mod activity;
mod introduction;
mod job_log;
mod job_state;
mod lease;
pub(crate) mod login;
mod notices;
#[cfg(unix)]
mod pause;
mod progress;
pub(crate) mod registration;
mod request;
mod resume;
mod status;
mod summary;
mod supervisor;
#[cfg(test)]
mod testing;
mod upload;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_backends::kernel_tuner;
use rookery_client::RetryPolicy;
use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::Backend;
use rookery_common::text::quantity;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::api::{ApiError, Client};
use crate::config::{Compute, Settings};
use crate::judges::Judges;
use crate::machine::Machine;
use crate::networks::{NetworkCache, Trial};
use crate::play::{Counters, PlayEvent, Player};
use crate::retry::Retry;
use crate::shutdown::{Phase, Shutdown, finish_after, follow_signals};
use crate::spool::{Owner, Spool, SpoolEvent, SpoolHandle};
use crate::trust::Trust;
use crate::tuning::Tuning;

use login::Login;

/// What parts of the program tell the supervisor.
#[derive(Debug)]
pub(crate) enum Event {
    /// From the threads that play.
    Play(PlayEvent),
    /// From the spool.
    Spool(SpoolEvent),
    /// A chunk of this job needs no more sending.
    Settled(JobId),
    /// The user has to do something about a heartbeat's or an upload's answer.
    Fatal(ApiError),
}

/// What all parts share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    settings: Arc<Settings>,
    machine: Machine,
    client: Client,
    /// Whose games they are.
    owner: Owner,
    retry: Retry,
    shutdown: Shutdown,
    activity: activity::ActivityHandle,
    spool: SpoolHandle,
    networks: Arc<NetworkCache>,
    trust: Arc<Trust>,
    notices: Arc<notices::Notices>,
    job_log: Arc<job_log::JobLog>,
    events: mpsc::UnboundedSender<Event>,
    status: Arc<status::Status>,
    /// When the program began to play.
    begun: Instant,
}

impl Shared {
    /// Opens what is kept in the data folder besides the spool.
    ///
    /// # Errors
    ///
    /// If the pinned keys or the folder of networks cannot be opened.
    fn new(
        settings: Settings,
        machine: Machine,
        login: Login,
        (retry, shutdown): (Retry, Shutdown),
        spool: SpoolHandle,
        counters: Arc<Counters>,
        events: mpsc::UnboundedSender<Event>,
    ) -> anyhow::Result<Self> {
        let trial = Trial(Arc::clone(&machine.devices));
        let activity = activity::ActivityHandle::new(shutdown.clone());
        let trust = Trust::open(&settings.data_dir, settings.run_key.clone())?;
        Ok(Self {
            networks: NetworkCache::open(settings.data_dir.join("networks"), trial)?,
            trust: Arc::new(trust),
            settings: Arc::new(settings),
            machine,
            client: login.client,
            owner: login.owner,
            retry,
            shutdown,
            activity: activity.clone(),
            spool,
            notices: Arc::default(),
            job_log: Arc::default(),
            events,
            status: Arc::new(status::Status::new(counters, activity)),
            begun: Instant::now(),
        })
    }
}

/// Ticks whose missed ones, as after a night in which the machine slept, come to one.
fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Opens the device, and keeps what was measured for the next start.
fn open_machine(
    compute: &Compute,
    data_dir: &Path,
    unfinished: Option<Backend>,
) -> anyhow::Result<Machine> {
    let known = Tuning::load(data_dir);
    let mut tuning = known.clone();
    let kernels = kernel_tuner(Some(data_dir));
    let machine = Machine::open(compute, &kernels, &mut tuning, unfinished)?;
    if tuning != known
        && let Err(error) = tuning.save(data_dir)
    {
        tracing::warn!("what was measured is not kept: {error:#}");
    }
    Ok(machine)
}

/// Plays until stopped.
///
/// # Errors
///
/// If something is wrong that the user has to put right.
pub async fn run(settings: Settings, screen: indicatif::MultiProgress) -> anyhow::Result<()> {
    let mut spool = Spool::open(&settings.data_dir.join("spool"))?;
    let unfinished = spool.open_jobs().first().map(|job| job.backend);
    let machine = tokio::task::spawn_blocking({
        let (compute, data_dir) = (settings.compute.clone(), settings.data_dir.clone());
        move || open_machine(&compute, &data_dir, unfinished)
    });
    let machine = machine.await.context("the device cannot be opened")??;
    let judges = Judges::open(&settings.judges)?;
    let shutdown = Shutdown::default();
    tokio::spawn(follow_signals(shutdown.clone()));
    if let Some(time) = settings.end_after {
        tokio::spawn(finish_after(time, shutdown.clone()));
    }
    let retry = Retry::new(RetryPolicy::default(), shutdown.clone());
    let client = Client::new(settings.server.clone())?;
    tracing::info!("connecting to {}", settings.server);
    let Some(login) = login::log_in(&settings, client, &retry).await? else {
        return Ok(());
    };
    shutdown.advance(Phase::Running);
    for (other, games) in spool.work_for(login.owner.clone()) {
        if games > 0 {
            tracing::warn!("{}", other.way_to_send(games, &settings.server));
        }
    }
    tracing::info!("playing for {}", settings.server);
    let mut computing = vec![format!(
        "computing on {} ({}), {}, {} at once",
        machine.devices.names(),
        machine.devices.job_info().precision,
        quantity(machine.all_threads(), "thread"),
        quantity(machine.all_games(), "game")
    )];
    computing.extend(machine.devices.explained_names());
    tracing::info!("{}", computing.join("; "));

    let (found, unreadable) = (spool.open_jobs(), spool.take_unreadable());
    let (events, inbox) = mpsc::unbounded_channel();
    let to_supervisor = events.clone();
    let spool = SpoolHandle::start(spool, move |event| {
        // The supervisor outlives the spool but for the last moments of the program.
        drop(to_supervisor.send(Event::Spool(event)));
    })?;
    let to_supervisor = events.clone();
    let player = Player::start(&machine, settings.priority, &judges, &spool, move |event| {
        drop(to_supervisor.send(Event::Play(event)));
    })?;
    let shared = Shared::new(
        settings,
        machine,
        login,
        (retry, shutdown),
        spool,
        Arc::clone(player.counters()),
        events,
    )?;
    #[cfg(unix)]
    let pauses = tokio::spawn(pause::serve(player.pause_handle(), shared.clone()));
    tokio::spawn(resume::give_back_unreadable(
        shared.client.clone(),
        unreadable,
    ));
    let progress = tokio::spawn(progress::show(shared.clone(), screen));
    let uploads = tokio::spawn(upload::serve(shared.clone()));
    let supervisor = supervisor::Supervisor::new(shared.clone(), player, inbox);
    let end = supervisor.run(found).await;
    uploads.abort();
    let sent = upload::drain(&shared).await;
    supervisor::give_back(&shared, end.returning).await;
    progress.abort();
    #[cfg(unix)]
    pauses.abort();
    summary::log_end(&shared, sent).await;
    end.error.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ticks_that_were_missed_come_to_one() {
        let behavior = ticks(Duration::from_secs(1)).missed_tick_behavior();
        assert_eq!(behavior, MissedTickBehavior::Delay);
    }
}
