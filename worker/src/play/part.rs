//! What a thread has to do with a job, and what is told when it is over.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{Assignment, PlayEvent};

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
pub(super) struct Part {
    assignment: Arc<Assignment>,
    events: Events,
}

impl Part {
    pub(super) const fn new(assignment: Arc<Assignment>, events: Events) -> Self {
        Self { assignment, events }
    }
}

impl Deref for Part {
    type Target = Assignment;

    fn deref(&self) -> &Assignment {
        &self.assignment
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.assignment.gauge.leave() {
            self.events.tell(PlayEvent::Left(self.assignment.job.id));
        }
    }
}

/// Tells of a thread that ends by a panic.
pub(super) struct Watch(pub(super) Events);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.tell(PlayEvent::Died);
        }
    }
}
