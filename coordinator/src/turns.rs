//! Work that keeps a core busy: off the async threads, and only so much of it at a time.
//!
//! A turn is the work's and not that of who waits for its answer: a client that goes away in the
//! middle makes no room for the next one's work before its own has ended.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, spawn_blocking};

/// Places for such work.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Semaphore>);

/// A place, for as long as it is not dropped.
#[derive(Debug)]
pub struct Turn {
    _place: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// So many places.
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a place.
    pub async fn next(&self) -> Turn {
        // The semaphore is never closed.
        let place = self.0.clone().acquire_owned().await.ok();
        Turn { _place: place }
    }

    /// Places that nobody has.
    pub fn free(&self) -> usize {
        self.0.available_permits()
    }
}

impl Turn {
    /// Does the work, and gives the place back when it ends.
    ///
    /// # Errors
    ///
    /// If the work panics.
    pub async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let done = spawn_blocking(move || {
            let _turn = self;
            work()
        });
        done.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_whose_client_has_gone_keeps_its_place() {
        let turns = Turns::new(1);
        let (release, released) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel::<()>();
        let client = tokio::spawn({
            let turns = turns.clone();
            async move {
                let work = move || {
                    begin.send(()).unwrap();
                    released.recv().unwrap();
                };
                turns.next().await.work(work).await
            }
        });
        begun.await.unwrap();
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        assert_eq!(turns.free(), 0);
        release.send(()).unwrap();
        let _next = turns.next().await;
        assert_eq!(turns.free(), 0);
    }
}
