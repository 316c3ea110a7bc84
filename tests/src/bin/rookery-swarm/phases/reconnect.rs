//! Everybody comes back at once: what happens after a coordinator or its network was away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;

use super::calls::{Ground, Refusal};
use super::{Held, PATIENCE, Swarm};
use crate::measure::{Record, Route};

/// File descriptors that are left for everything else.
const SPARE_FILES: u64 = 500;

/// Lets all workers take a job, breaks all connections, and has every worker open a new one at the
/// same moment, send a heartbeat, and keep trying until it is answered. A connection stays open
/// until all workers are back, as far as the system's limit of open files goes.
pub(super) async fn run(swarm: &Swarm) -> anyhow::Result<(Record, Duration)> {
    let held = swarm.take_jobs(swarm.cli.workers).await?;
    let (files, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)?;
    let room = files.saturating_sub(SPARE_FILES).max(1) as usize;
    let room = Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS)));
    let gate = Arc::new(Barrier::new(held.len() + 1));
    let mut tasks = JoinSet::new();
    for held in held {
        let task = come_back(swarm.ground.clone(), held, room.clone(), gate.clone());
        tasks.spawn(task);
    }
    gate.wait().await;
    let begun = Instant::now();
    let mut all = Record::default();
    let mut took = Duration::ZERO;
    let mut open = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (record, connection) = done??;
        all.merge(record);
        // Connections stay open while there is room for the others.
        open.push(connection);
        if room.available_permits() == 0 {
            open.clear();
        }
        took = begun.elapsed();
    }
    Ok((all, took))
}

type Open = (crate::http::Connection, tokio::sync::OwnedSemaphorePermit);

async fn come_back(
    ground: Arc<Ground>,
    held: Held,
    room: Arc<Semaphore>,
    gate: Arc<Barrier>,
) -> anyhow::Result<(Record, Open)> {
    let mut record = Record::default();
    let mut connection = ground.connection()?;
    gate.wait().await;
    let begun = Instant::now();
    let permit = room.acquire_owned().await?;
    let mut wait = Duration::from_millis(200);
    loop {
        let answer = ground
            .heartbeat(&mut connection, held.contributor, held.job.id)
            .await;
        match answer {
            Ok(_) => {
                record.note(Route::Reconnect, begun, None);
                return Ok((record, (connection, permit)));
            }
            Err(refusal) if refusal.passes() && begun.elapsed() < PATIENCE => {
                record.note(Route::Reconnect, begun, refusal.error());
                tokio::time::sleep(refusal.wait().unwrap_or(wait)).await;
                wait = (wait * 2).min(Duration::from_secs(5));
            }
            Err(refusal) => {
                record.note(Route::Reconnect, begun, Refusal::error(&refusal));
                ground
                    .book
                    .with(|accounts| accounts.leases_lost.insert(held.job.id));
                return Ok((record, (connection, permit)));
            }
        }
    }
}
