//! Worker threads that encode batches ahead of the training step.
//!
//! Thread `i` of `n` makes batches `i`, `i + n`, `i + 2n`, … into a channel of its own; the reader
//! takes from the channels in turn. So batches come in order and memory is bounded. Dropping the
//! prefetcher closes the channels, upon which the threads end.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rookery_nn::TrainBatch;

use super::encode::{BatchPlan, encode_batch};
use super::sampler::Sampler;
use crate::buffer::Mixture;

/// Batches that each thread may be ahead.
const AHEAD: usize = 4;

/// A numbered range of batches, being made.
#[derive(Debug)]
pub struct Prefetcher {
    channels: Vec<Receiver<TrainBatch>>,
    threads: Vec<JoinHandle<()>>,
    taken: usize,
}

/// What a thread needs.
#[derive(Debug, Clone)]
struct Work {
    mixture: Mixture,
    plan: BatchPlan,
    sampler: Sampler,
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
            channels: Vec::new(),
            threads: Vec::new(),
            taken: 0,
        };
        for index in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            let work = Work {
                mixture: mixture.clone(),
                plan,
                sampler,
            };
            let numbers = numbers.clone().skip(index).step_by(threads);
            let thread = std::thread::Builder::new().name(format!("encode-{index}"));
            prefetcher
                .threads
                .push(thread.spawn(move || work.run(numbers, &sender))?);
            prefetcher.channels.push(receiver);
        }
        Ok(prefetcher)
    }

    /// The next batch, or none after the last.
    pub fn next_batch(&mut self) -> Option<TrainBatch> {
        let channel = self.taken % self.channels.len();
        self.taken += 1;
        self.channels[channel].recv().ok()
    }
}

impl Work {
    fn run(&self, numbers: impl Iterator<Item = u64>, sender: &SyncSender<TrainBatch>) {
        for number in numbers {
            let batch = encode_batch(&self.mixture, self.sampler, number, &self.plan);
            if sender.send(batch).is_err() {
                return;
            }
        }
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.channels.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; its channel ended the training.
            drop(thread.join());
        }
    }
}
