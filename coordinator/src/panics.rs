//! Panics: a bug in one piece of work ends that work, and not the task that does the next one.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

/// A bug ended a piece of work; the standard error stream has told where.
#[derive(Debug, thiserror::Error)]
#[error("it panicked: {0}")]
pub struct Panicked(String);

impl Panicked {
    pub fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Self(text.unwrap_or("no message").to_owned())
    }
}

/// Does a piece of work to its end or its panic. What it shares with others must bear to be left
/// as the panic left it.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|panic| Panicked::of(&*panic))
}

/// Begins work, which `what` names in the log, and begins it again after a pause whenever it panics.
pub async fn again<T, W>(what: &str, pause: Duration, begin: impl Fn() -> W) -> T
where
    W: Future<Output = T>,
{
    loop {
        match caught(begin()).await {
            Ok(done) => return done,
            Err(panic) => {
                tracing::error!(%panic, "RK-0237: {what} ended by a bug, and is started again.");
            }
        }
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    fn bug() -> u8 {
        panic!("a bug")
    }

    fn bug_at(place: u8) -> u8 {
        panic!("a bug at {place}")
    }

    #[tokio::test]
    async fn a_panic_ends_its_work_and_says_why() {
        let said = |done: Result<u8, Panicked>| done.unwrap_err().to_string();
        assert_eq!(said(caught(async { bug() }).await), "it panicked: a bug");
        let at = said(caught(async { bug_at(3) }).await);
        assert_eq!(at, "it panicked: a bug at 3");
        assert_eq!(caught(async { 7 }).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_panics_is_begun_again() {
        let begun = AtomicU8::new(0);
        let begin = || async {
            match begun.fetch_add(1, Ordering::Relaxed) {
                0..3 => bug(),
                times => times,
            }
        };
        assert_eq!(again("work", Duration::ZERO, begin).await, 3);
    }
}
