//! Progress lines.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::calls::Ground;
use crate::cli::Mode;

/// How often.
const EVERY: Duration = Duration::from_secs(2);

/// Tells how a phase goes until it is aborted.
pub(super) fn begin(mode: Mode, ground: Arc<Ground>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.tick().await;
        let mut before = ground.answers.load(Ordering::Relaxed);
        loop {
            ticks.tick().await;
            let now = ground.answers.load(Ordering::Relaxed);
            let rate = (now - before) as f64 / EVERY.as_secs_f64();
            before = now;
            let failures = ground.failures.load(Ordering::Relaxed);
            let chunks = ground.book.with(|accounts| accounts.acknowledged.len());
            // The reader may be gone.
            let _ = writeln!(
                std::io::stderr(),
                "{}: {rate:.0} answers/s, {failures} failures, {chunks} chunks acknowledged",
                mode.name()
            );
        }
    })
}
