//! Worker threads that encode batches ahead of the training step.
//!
//! Thread `i` of `n` makes batches `i`, `i + n`, `i + 2n`, … into a channel of its own; the reader
//! takes from the channels in turn. So batches come in order and memory is bounded; the memory of batches
//! that were [given back](Prefetcher::give_back) is used again. Dropping the prefetcher closes the channels,
//! upon which the threads end.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rookery_nn::TrainBatch;

use super::encode::{BatchPlan, encode_into};
use super::sampler::Sampler;
use crate::buffer::Mixture;

/// Batches that each thread may be ahead.
const AHEAD: usize = 4;

/// A numbered range of batches, being made.
#[derive(Debug)]
pub struct Prefetcher {
    lanes: Vec<Lane>,
    threads: Vec<JoinHandle<()>>,
    taken: usize,
}

/// The two ways between the reader and a thread.
#[derive(Debug)]
struct Lane {
    batches: Receiver<TrainBatch>,
    spent: Sender<TrainBatch>,
}

/// What a thread needs.
#[derive(Debug)]
struct Work {
    mixture: Mixture,
    plan: BatchPlan,
    sampler: Sampler,
    spent: Receiver<TrainBatch>,
}

impl Prefetcher {
    /// Starts threads that make the batches of these numbers.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(
        mixture: &Mixture,
        plan: BatchPlan,
        sampler: Sampler,
        numbers: std::ops::Range<u64>,
        threads: usize,
    ) -> io::Result<Self> {
        let threads = threads.max(1);
        let mut prefetcher = Self {
            lanes: Vec::new(),
            threads: Vec::new(),
            taken: 0,
        };
        for index in 0..threads {
            let (sender, batches) = sync_channel(AHEAD);
            let (spent, given_back) = channel();
            let work = Work {
                mixture: mixture.clone(),
                plan,
                sampler,
                spent: given_back,
            };
            let numbers = numbers.clone().skip(index).step_by(threads);
            let thread = std::thread::Builder::new().name(format!("encode-{index}"));
            prefetcher
                .threads
                .push(thread.spawn(move || work.run(numbers, &sender))?);
            prefetcher.lanes.push(Lane { batches, spent });
        }
        Ok(prefetcher)
    }

    /// The next batch, or none after the last.
    pub fn next_batch(&mut self) -> Option<TrainBatch> {
        let lane = self.taken % self.lanes.len();
        self.taken += 1;
        self.lanes[lane].batches.recv().ok()
    }

    /// Returns the batch that was taken last, so that its memory is used again.
    pub fn give_back(&self, batch: TrainBatch) {
        let lane = self.taken.wrapping_sub(1) % self.lanes.len();
        // A thread that has ended needs no memory any more.
        let _ = self.lanes[lane].spent.send(batch);
    }
}

impl Work {
    fn run(&self, numbers: impl Iterator<Item = u64>, sender: &SyncSender<TrainBatch>) {
        for number in numbers {
            let spent = self.spent.try_recv();
            let mut batch = spent.unwrap_or_else(|_| self.plan.empty());
            encode_into(&mut batch, &self.mixture, self.sampler, number, &self.plan);
            if sender.send(batch).is_err() {
                return;
            }
        }
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.lanes.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; its channel ended the training.
            drop(thread.join());
        }
    }
}
