//! A thread's share of a job, and the event when the last thread has left it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{JobWork, PlayEvent};

/// Where threads tell what happens.
#[derive(Clone)]
pub(super) struct Events(Arc<dyn Fn(PlayEvent) + Send + Sync>);

impl Events {
    pub(super) fn new(events: impl Fn(PlayEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(events))
    }

    pub(super) fn tell(&self, event: PlayEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

/// A thread's part in a job. The thread leaves the job when this is dropped, however that comes
/// about: a thread that has panicked must not hold a job for ever.
#[derive(Debug)]
pub(super) struct JobGuard {
    work: Arc<JobWork>,
    events: Events,
}

impl JobGuard {
    pub(super) const fn new(work: Arc<JobWork>, events: Events) -> Self {
        Self { work, events }
    }
}

impl Deref for JobGuard {
    type Target = JobWork;

    fn deref(&self) -> &JobWork {
        &self.work
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        if self.work.counters.leave() {
            self.events.tell(PlayEvent::Left(self.work.job.id));
        }
    }
}

/// Tells of a thread that ends by a panic.
pub(super) struct PanicReport(pub(super) Events);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.tell(PlayEvent::Died);
        }
    }
}
