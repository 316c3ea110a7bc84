//! The command `run`: jobs in, games out, until stopped.
//!
//! ```text
//!            acquire ──job and networks──> Supervisor ──assignment──> Player
//!   lease (heartbeats) ──abandon, lost──>      │  ^                     │ finished games
//!                                              │  '──left, failed───────┤
//!                                              '──close, cut──> Spool <─'
//!                                                                 │ chunks
//!                                                              upload ──> coordinator
//! ```
//!
//! [`login`] gets a token, [`resume`] takes up what an earlier start left, [`supervisor`] is the
//! loop in the middle. On Unix, `pause` lets go of the device before the program is stopped for a while.

mod acquire;
mod lease;
mod login;
#[cfg(unix)]
mod pause;
mod progress;
mod resume;
mod supervisor;
mod upload;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use rookery_client::RetryPolicy;
use tokio::sync::mpsc;

use crate::api::Client;
use crate::config::Settings;
use crate::judges::Judges;
use crate::machine::Machine;
use crate::networks::{NetworkCache, Trial};
use crate::play::{PlayEvent, Player};
use crate::retry::Retry;
use crate::shutdown::{Shutdown, finish_after, listen_to_signals};
use crate::spool::actor::SpoolEvent;
use crate::spool::{Owner, Spool, SpoolHandle};
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
    /// From a lease.
    Lease(lease::LeaseEvent),
    /// From uploading.
    Upload(upload::UploadEvent),
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
    spool: SpoolHandle,
    networks: Arc<NetworkCache>,
    trust: Arc<Trust>,
    /// Notices of the coordinator that were shown.
    shown: Arc<Mutex<HashSet<String>>>,
    events: mpsc::UnboundedSender<Event>,
    status: Arc<progress::Status>,
}

/// Plays until stopped.
///
/// # Errors
///
/// If something is wrong that the user has to put right.
pub async fn run(settings: Settings, screen: indicatif::MultiProgress) -> anyhow::Result<()> {
    let machine = tokio::task::spawn_blocking({
        let compute = settings.compute;
        let tuning = Tuning::load(&settings.data_dir);
        move || Machine::open(&compute, &tuning)
    });
    let machine = machine.await.context("the device cannot be opened")??;
    let judges = Judges::open(&settings.judges)?;
    let mut spool = Spool::open(&settings.data_dir.join("spool"))?;
    let shutdown = Shutdown::default();
    tokio::spawn(listen_to_signals(shutdown.clone()));
    if let Some(time) = settings.end_after {
        tokio::spawn(finish_after(time, shutdown.clone()));
    }
    let retry = Retry::new(RetryPolicy::default(), shutdown.clone());
    let client = Client::new(settings.server.clone())?;
    let Some(login) = login::log_in(&settings, client, &retry).await? else {
        return Ok(());
    };
    let Login { client, owner } = login;
    for (other, games) in spool.work_for(owner.clone()) {
        if games > 0 {
            tracing::warn!("{}", other.way_to_send(games, &settings.server));
        }
    }
    let threads = match machine.threads.get() {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    };
    tracing::info!(
        "playing for {} on {} ({}), {threads}, {} games at once",
        settings.server,
        machine.device,
        machine.precision,
        machine.all_games()
    );

    let found = spool.open_jobs();
    let (events, inbox) = mpsc::unbounded_channel();
    let to_supervisor = events.clone();
    let spool = crate::spool::actor::start(spool, move |event| {
        // The supervisor outlives the spool but for the last moments of the program.
        drop(to_supervisor.send(Event::Spool(event)));
    })?;
    let trial = Trial {
        device: machine.device,
        precision: machine.asked,
    };
    let trust = Trust::open(&settings.data_dir, settings.run_key.clone())?;
    let networks = NetworkCache::open(settings.data_dir.join("networks"), trial)?;
    let to_supervisor = events.clone();
    let player = Player::start(&machine, settings.priority, &judges, &spool, move |event| {
        drop(to_supervisor.send(Event::Play(event)));
    })?;
    #[cfg(unix)]
    let pauses = tokio::spawn(pause::serve(
        player.pauser(),
        machine.device,
        shutdown.clone(),
    ));
    let status = Arc::new(progress::Status::new(Arc::clone(player.gauge())));
    let shared = Shared {
        settings: Arc::new(settings),
        machine,
        client,
        owner,
        retry,
        shutdown,
        spool,
        networks,
        trust: Arc::new(trust),
        shown: Arc::default(),
        events,
        status,
    };
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
    supervisor::say_goodbye(&shared, sent).await;
    end.error.map_or(Ok(()), Err)
}
