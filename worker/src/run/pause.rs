//! Pausing, by Ctrl-Z or `kill -TSTP`: before the program stands still, networks leave the device's memory; with
//! SIGCONT they are loaded again, and games go on where they were.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind, signal};

use super::Shared;
use super::activity::PauseReason;
use crate::device_pool::DevicePool;
use crate::play::{PauseHandle, Paused};
use crate::shutdown::Phase;

/// For so long the program waits for threads to end the batch that they are at.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pauses whenever asked to.
pub(super) async fn serve(pause_handle: PauseHandle, shared: Shared) {
    loop {
        if let Err(error) = pause(&pause_handle, &shared).await {
            tracing::warn!("the program cannot be paused: {error}");
            return;
        }
    }
}

/// Waits for the next wish to pause, and does so until the wish to go on or to end.
async fn pause(pause_handle: &PauseHandle, shared: &Shared) -> std::io::Result<()> {
    let devices = &shared.machine.devices;
    // Listened to anew each time, so that wishes of the time before do not count.
    listen(Signal::TSTP)?.recv().await;
    let mut wish_to_go_on = listen(Signal::CONT)?;
    let _asked = shared.activity.pause(PauseReason::Asked);
    tracing::info!("pausing: games stay in memory; `fg` (SIGCONT) resumes");
    // A thread may wait until its GPU has idled for its share.
    let _skipped = devices.skip_rests();
    let paused = tokio::select! {
        paused = let_go(pause_handle.pause(), Arc::clone(devices)) => paused,
        _ = wish_to_go_on.recv() => None,
    };
    if paused.is_some() {
        kill_process(getpid(), Signal::STOP)?;
        // The first process of a container is not stopped by that. Its threads pause all the same, and it fetches no job.
        tokio::select! {
            _ = wish_to_go_on.recv() => {}
            () = shared.shutdown.reached(Phase::Finishing) => {}
        }
    }
    tracing::info!("resumed after a pause");
    Ok(())
}

fn listen(wish: Signal) -> std::io::Result<unix::Signal> {
    signal(SignalKind::from_raw(wish.as_raw()))
}

/// Waits until all threads are paused, and gives back what their networks took.
async fn let_go(paused: Paused, devices: Arc<DevicePool>) -> Option<Paused> {
    let work = move || {
        let (names, seconds) = (devices.names(), PATIENCE.as_secs());
        let are_all_paused = paused.wait(PATIENCE);
        devices.release_memory();
        if are_all_paused {
            tracing::info!("{names} is free for other programs");
        } else {
            tracing::warn!(
                "a batch takes longer than {seconds} s: some networks stay in the memory of {names} during this pause"
            );
        }
        paused
    };
    tokio::task::spawn_blocking(work).await.ok()
}
