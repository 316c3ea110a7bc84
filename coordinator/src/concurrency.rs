//! Concurrency limit of work that keeps a core or the database busy.
//!
//! A turn is the work's and not that of who waits for its answer: a client that goes away in the
//! middle makes no room for the next one's work before its own has ended.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, spawn, spawn_blocking};

use crate::db::{DbError, Result as Stored};

/// Places for such work.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit(Arc<Semaphore>);

/// A place, for as long as it is not dropped.
#[derive(Debug)]
pub struct Permit {
    _place: Option<OwnedSemaphorePermit>,
}

impl ConcurrencyLimit {
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a place.
    pub async fn next(&self) -> Permit {
        // The semaphore is never closed.
        let place = self.0.clone().acquire_owned().await.ok();
        Permit { _place: place }
    }

    /// Asks the ledger in turn; the database keeps the turn until it has answered, even if the caller has gone
    /// away.
    pub async fn ask<T: Send + 'static>(
        &self,
        answer: impl Future<Output = Stored<T>> + Send + 'static,
    ) -> Stored<T> {
        let answered = self.next().await.wait_for(answer).await;
        answered.unwrap_or_else(|error| Err(DbError::Unavailable(error.to_string().into())))
    }

    pub fn free(&self) -> usize {
        self.0.available_permits()
    }
}

/// Places of each key by itself, before those that all share: who brings much waits behind itself, and others do not.
#[derive(Debug)]
pub struct FairLimit<K> {
    places: usize,
    each: Mutex<HashMap<K, Weak<Semaphore>>>,
}

impl<K: Hash + Eq> FairLimit<K> {
    /// A limit of `places` at a time for each key.
    pub fn new(places: usize) -> Self {
        let each = Mutex::default();
        Self { places, each }
    }

    pub async fn next(&self, key: K) -> Permit {
        let place = self.of(key).acquire_owned().await.ok();
        Permit { _place: place }
    }

    /// The key's semaphore, which lives as long as somebody waits for it or has a place.
    fn of(&self, key: K) -> Arc<Semaphore> {
        let mut each = self.each.lock();
        if let Some(semaphore) = each.get(&key).and_then(Weak::upgrade) {
            return semaphore;
        }
        each.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.places));
        each.insert(key, Arc::downgrade(&semaphore));
        semaphore
    }
}

impl Permit {
    /// Does work that keeps a core busy, off the async threads, and gives the place back when it ends.
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

    /// Waits for what others do, for example the database, and gives the place back when they have.
    pub async fn wait_for<T: Send + 'static>(
        self,
        answer: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let done = spawn(async move {
            let _turn = self;
            answer.await
        });
        done.await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn who_brings_much_waits_behind_itself() {
        let (each, all) = (FairLimit::new(2), ConcurrencyLimit::new(1));
        let busy = all.next().await;
        let turn = |who: &'static str| {
            let (each, all) = (&each, &all);
            async move {
                let _own = each.next(who).await;
                let _turn = all.next().await;
                who
            }
            .boxed_local()
        };
        let mut much: Vec<_> = (0..9).map(|_| turn("much")).collect();
        for waiting in &mut much {
            assert_eq!(waiting.now_or_never(), None);
        }
        let mut other = turn("other");
        assert_eq!((&mut other).now_or_never(), None);
        drop(busy);
        // Two of the nine were before it.
        for waiting in &mut much[..2] {
            assert_eq!(waiting.now_or_never(), Some("much"));
        }
        assert_eq!((&mut much[2]).now_or_never(), None);
        assert_eq!((&mut other).now_or_never(), Some("other"));
        assert_eq!((&mut much[2]).now_or_never(), Some("much"));
        drop(much);
        drop(each.next("new").await);
        assert_eq!(each.each.lock().len(), 1, "nothing is kept of who has gone");
    }

    /// A client has something done in a place of its own, and goes away before it is.
    async fn keeps_its_place<W: Future<Output = Result<(), JoinError>> + Send + 'static>(
        begin: impl FnOnce(Permit, oneshot::Sender<()>, oneshot::Receiver<()>) -> W,
    ) {
        let turns = ConcurrencyLimit::new(1);
        let (release, released) = oneshot::channel();
        let (begins, begun) = oneshot::channel();
        let client = tokio::spawn(begin(turns.next().await, begins, released));
        begun.await.unwrap();
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        assert_eq!(turns.free(), 0);
        release.send(()).unwrap();
        let _next = turns.next().await;
        assert_eq!(turns.free(), 0);
    }

    #[tokio::test]
    async fn work_whose_client_has_gone_keeps_its_place() {
        keeps_its_place(|place, begins, released| {
            place.work(move || {
                begins.send(()).unwrap();
                released.blocking_recv().unwrap();
            })
        })
        .await;
    }

    #[tokio::test]
    async fn a_query_whose_client_has_gone_keeps_its_place() {
        keeps_its_place(|place, begins, released| {
            place.wait_for(async move {
                begins.send(()).unwrap();
                released.await.unwrap();
            })
        })
        .await;
    }
}
