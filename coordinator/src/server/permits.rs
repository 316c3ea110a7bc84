//! Permits for connections, of which there are only so many. When all are taken and somebody comes, those that have been idle for longest
//! are asked to go, as nginx does with kept connections: workers keep theirs between heartbeats, and
//! where fewer files may be open than there are workers, half of a fleet would wait for the other
//! half's to end by themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::activity::Activity;

/// How long a connection may be idle even if others wait: the first request needs a moment to arrive.
const MOMENT: Duration = Duration::from_secs(2);
/// How long a place is waited for before more are asked to go.
const PATIENCE: Duration = Duration::from_millis(100);
/// One connection in this number is asked to close at a time.
const SHARE: usize = 64;
/// Pause between two warnings.
const SILENCE: Duration = Duration::from_secs(60);

/// Connections that have a place, by its number.
type Taken = Mutex<HashMap<u64, Arc<Activity>>>;

/// All places.
pub(super) struct ConnectionLimit {
    number: usize,
    free: Arc<Semaphore>,
    taken: Arc<Taken>,
    next: u64,
    warned: Option<Instant>,
}

/// A connection's place, until it is dropped.
pub(super) struct ConnectionPermit {
    pub(super) activity: Arc<Activity>,
    number: u64,
    taken: Arc<Taken>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            free: Arc::new(Semaphore::new(number)),
            taken: Arc::default(),
            next: 0,
            warned: None,
        }
    }

    /// The next one that is free.
    pub(super) async fn take(&mut self) -> ConnectionPermit {
        let permit = loop {
            let free = self.free.clone();
            if let Ok(permit) = free.clone().try_acquire_owned() {
                break permit;
            }
            self.make_room();
            if let Ok(Ok(permit)) = timeout(PATIENCE, free.acquire_owned()).await {
                break permit;
            }
        };
        self.next += 1;
        let activity = Arc::<Activity>::default();
        self.taken.lock().insert(self.next, activity.clone());
        ConnectionPermit {
            activity,
            number: self.next,
            taken: self.taken.clone(),
            _permit: permit,
        }
    }

    /// Asks connections to go, those first that have been idle for longest. Who was asked already takes
    /// a while if it has begun a request, and blocks no other client.
    fn make_room(&mut self) {
        if self.warned.is_none_or(|last| last.elapsed() > SILENCE) {
            self.warned = Some(Instant::now());
            tracing::warn!(
                connections = self.number,
                "RK-0212: The limit of connections is reached; the longest idle ones are closed for others. Raise \
                 --connections, or the system's limit of open files."
            );
        }
        let taken = self.taken.lock();
        let idle = taken.values().filter_map(|activity| {
            let since = activity.idle_since()?;
            let may_go = since.elapsed() >= MOMENT && !activity.is_leaving();
            may_go.then_some((since, activity))
        });
        let mut idle: Vec<_> = idle.collect();
        let asked = idle.len().min(self.number.div_ceil(SHARE));
        if asked < idle.len() {
            idle.select_nth_unstable_by_key(asked, |(since, _)| *since);
        }
        for (_, activity) in &idle[..asked] {
            activity.ask_to_go();
        }
        metrics::counter!("rookery_connections_reclaimed_total").increment(asked as u64);
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.taken.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_asked(place: &ConnectionPermit) -> bool {
        let asked = pin!(place.activity.asked_to_go());
        asked
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    /// Until `take` waits for a place, which it has asked for then.
    async fn wait(places: &mut ConnectionLimit) {
        assert!(timeout(PATIENCE / 2, places.take()).await.is_err());
    }

    #[tokio::test]
    async fn those_that_were_idle_for_longest_are_asked_to_go() {
        let mut places = ConnectionLimit::new(3);
        let (first, second) = (places.take().await, places.take().await);
        let third = places.take().await;
        let busy = first.activity.begin();
        let now = Instant::now();
        let ago = |times: u32| now.checked_sub(times * MOMENT).unwrap();
        second.activity.set_idle_since(ago(2));
        // It has just come, however slow the machine is.
        let later = now + Duration::from_secs(3600);
        third.activity.set_idle_since(later);
        wait(&mut places).await;
        assert!(!is_asked(&first), "one that is answered was asked");
        assert!(is_asked(&second));
        assert!(!is_asked(&third), "one that has just come was asked");
        drop(busy);
        third.activity.set_idle_since(ago(2));
        first.activity.set_idle_since(ago(1));
        wait(&mut places).await;
        assert!(is_asked(&third), "it was idle for longer than the first");
        assert!(!is_asked(&second), "it was asked again");
        wait(&mut places).await;
        assert!(is_asked(&first));
        drop(second);
        let fourth = places.take().await;
        drop(third);
        places.take().await;
        drop((first, fourth));
        assert_eq!(places.taken.lock().len(), 0);
    }
}
