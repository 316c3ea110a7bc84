//! Batches of all clients of one network, gathered into full ones.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError};

use super::Counters;
use super::budget::Permit;
use crate::message::Reply;
use crate::positions::write_evaluations;

/// A frame to be written to a client, and the room that it frees when it is. Only the last frame of a connection has
/// none.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) frame: Vec<u8>,
    pub(super) permit: Option<Permit>,
}

/// A client's batch that waits for the device.
#[derive(Debug)]
pub(super) struct WaitingBatch {
    pub(super) batch: Batch,
    pub(super) answer: Answer,
}

/// Where the answer to a batch goes. Who is dropped without one tells the client so.
#[derive(Debug)]
pub(super) struct Answer {
    id: u32,
    to: Sender<Outgoing>,
    permit: Option<Permit>,
}

impl Answer {
    pub(super) const fn new(id: u32, to: Sender<Outgoing>, permit: Permit) -> Self {
        Self {
            id,
            to,
            permit: Some(permit),
        }
    }

    fn send(&mut self, reply: &Reply<'_>) {
        if let Some(permit) = self.permit.take() {
            // A client that is gone needs no answer.
            let _ = self.to.send(Outgoing {
                frame: reply.to_frame(),
                permit: Some(permit),
            });
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let (id, why) = (self.id, "the device was given up".to_owned());
        self.send(&Reply::NotEvaluated { id, why });
    }
}

/// The waiting batches of a network.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Positions of a full batch.
    full: usize,
    /// How long a batch that is not full waits for others.
    patience: Duration,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<WaitingBatch>,
    /// Clients that use the network.
    clients: usize,
    is_closed: bool,
}

impl State {
    fn positions(&self) -> usize {
        self.waiting.iter().map(|one| one.batch.len()).sum()
    }
}

impl Queue {
    pub(super) fn new(full: usize, patience: Duration) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            full,
            patience,
        }
    }

    pub(super) fn client_came(&self) {
        self.state.lock().clients += 1;
    }

    pub(super) fn client_left(&self) {
        self.state.lock().clients -= 1;
        self.changed.notify_all();
    }

    pub(super) fn push(&self, batch: WaitingBatch) {
        let mut state = self.state.lock();
        // What is dropped here is answered by that.
        if !state.is_closed {
            state.waiting.push_back(batch);
            self.changed.notify_all();
        }
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
        self.changed.notify_all();
    }

    /// Batches that wait.
    pub(super) fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Takes batches that make a full one together, at least one. Waits for more no longer than its patience, and only
    /// while a client has none here. False once the queue is closed.
    fn take(&self, taken: &mut Vec<WaitingBatch>) -> bool {
        let mut state = self.state.lock();
        let mut deadline = None;
        loop {
            if state.is_closed {
                return false;
            }
            if state.waiting.is_empty() {
                deadline = None;
                self.changed.wait(&mut state);
                continue;
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.patience);
            let left = deadline.saturating_duration_since(Instant::now());
            let is_full = state.positions() >= self.full || state.waiting.len() >= state.clients;
            if is_full || left.is_zero() {
                break;
            }
            self.changed.wait_for(&mut state, left);
        }
        let mut positions = 0;
        while let Some(next) = state.waiting.front() {
            positions += next.batch.len();
            if positions > self.full && !taken.is_empty() {
                break;
            }
            taken.extend(state.waiting.pop_front());
        }
        true
    }

    /// Evaluates what comes until the queue is closed. `is_lost` says whether an error means that the device is lost;
    /// all connections are closed then.
    pub(super) fn serve(
        &self,
        mut evaluator: Box<dyn Evaluator + Send>,
        counters: &Counters,
        is_lost: impl Fn(&EvaluatorError) -> bool,
    ) {
        let mut merged = Batch::new(evaluator.input(), evaluator.policy());
        let mut evaluations = Evaluations::default();
        let mut taken = Vec::new();
        while self.take(&mut taken) {
            merged.clear();
            for one in &taken {
                (0..one.batch.len()).for_each(|index| merged.push_from(&one.batch, index));
            }
            match evaluator.evaluate(&merged, &mut evaluations) {
                Ok(()) => counters.count(merged.len()),
                // Nobody waits for the answers any more.
                Err(error) if is_lost(&error) => {
                    taken.clear();
                    continue;
                }
                Err(error) if taken.len() > 1 => {
                    tracing::warn!("{error}; its {} batches are tried alone", taken.len());
                    taken
                        .drain(..)
                        .for_each(|one| alone(one, &mut *evaluator, counters, &is_lost));
                    continue;
                }
                Err(error) => {
                    taken.drain(..).for_each(|one| one.fail(&error));
                    continue;
                }
            }
            let (mut values, mut logits) = (&evaluations.values[..], &evaluations.logits[..]);
            for mut one in taken.drain(..) {
                let (own_values, others) = values.split_at(one.batch.len());
                let (own_logits, rest) = logits.split_at(one.batch.moves().len());
                one.succeed(own_values, own_logits);
                (values, logits) = (others, rest);
            }
        }
    }
}

/// Evaluates one batch by itself, so that what is wrong with another does it no harm.
fn alone(
    mut one: WaitingBatch,
    evaluator: &mut dyn Evaluator,
    counters: &Counters,
    is_lost: impl Fn(&EvaluatorError) -> bool,
) {
    let mut evaluations = Evaluations::default();
    match evaluator.evaluate(&one.batch, &mut evaluations) {
        Ok(()) => {
            counters.count(one.batch.len());
            one.succeed(&evaluations.values, &evaluations.logits);
        }
        Err(error) if is_lost(&error) => {}
        Err(error) => one.fail(&error),
    }
}

impl WaitingBatch {
    fn succeed(&mut self, values: &[rookery_engine::Wdl], logits: &[f32]) {
        let mut packed = Vec::new();
        write_evaluations(values, logits, &mut packed);
        let id = self.answer.id;
        self.answer.send(&Reply::Evaluations {
            id,
            evaluations: &packed,
        });
    }

    fn fail(mut self, error: &EvaluatorError) {
        let (id, why) = (self.answer.id, error.0.clone());
        tracing::warn!("{error}");
        self.answer.send(&Reply::NotEvaluated { id, why });
    }
}

/// Closes a queue when its thread ends, also by a panic: no caller waits for a thread that is gone.
pub(super) struct CloseAtEnd(pub(super) Arc<Queue>);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}
