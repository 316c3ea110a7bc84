//! Worker threads that make batches ahead of the training step, of whatever [source](BatchSource).
//!
//! Thread `i` of `n` makes batches `i`, `i + n`, `i + 2n`, … into a channel of its own; the reader
//! takes from the channels in turn. So batches come in order and memory is bounded; the memory of batches
//! that were [given back](Prefetcher::give_back) is used again. Dropping the prefetcher closes the channels,
//! upon which the threads end.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rookery_train::TrainBatch;

/// Batches that each thread may be ahead.
const AHEAD: usize = 4;

/// Where batches come from. What a batch holds follows from its number alone.
pub trait BatchSource: Send + Sync + 'static {
    /// A batch without positions.
    fn empty(&self) -> TrainBatch;

    /// Makes batch `number` in place of what `batch` held.
    fn make(&self, number: u64, batch: &mut TrainBatch);
}

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
struct Work<S> {
    source: Arc<S>,
    spent: Receiver<TrainBatch>,
}

impl Prefetcher {
    /// Starts threads that make the batches of these numbers. The source is dropped with the last of them.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(
        source: impl BatchSource,
        numbers: std::ops::Range<u64>,
        threads: usize,
    ) -> io::Result<Self> {
        let (source, threads) = (Arc::new(source), threads.max(1));
        let mut prefetcher = Self {
            lanes: Vec::new(),
            threads: Vec::new(),
            taken: 0,
        };
        for index in 0..threads {
            let (sender, batches) = sync_channel(AHEAD);
            let (spent, given_back) = channel();
            let work = Work {
                source: Arc::clone(&source),
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

impl<S: BatchSource> Work<S> {
    fn run(&self, numbers: impl Iterator<Item = u64>, sender: &SyncSender<TrainBatch>) {
        for number in numbers {
            let spent = self.spent.try_recv();
            let mut batch = spent.unwrap_or_else(|_| self.source.empty());
            self.source.make(number, &mut batch);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rookery_common::encoding::{InputEncoding, PolicyEncoding};
    use rookery_engine::{Batch, Wdl};
    use rookery_train::OpponentReplyTargets;

    use super::*;

    /// Batches with as many values as their numbers say; counts those that were made from nothing.
    struct Numbered(Arc<AtomicUsize>);

    impl BatchSource for Numbered {
        fn empty(&self) -> TrainBatch {
            self.0.fetch_add(1, Ordering::SeqCst);
            TrainBatch {
                positions: Batch::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858),
                policy: Vec::new(),
                values: Vec::new(),
                ahead: Vec::new(),
                replies: OpponentReplyTargets::default(),
                boards: Vec::new(),
            }
        }

        fn make(&self, number: u64, batch: &mut TrainBatch) {
            batch.clear();
            batch.values.resize(number as usize, Wdl::WIN);
        }
    }

    /// A thread holds a batch that it makes, the channel those ahead, the reader one; no thread makes another from
    /// nothing while one has come back.
    #[test]
    fn batches_come_in_order_and_their_memory_is_used_again() {
        for threads in [1, 3] {
            let made = Arc::new(AtomicUsize::new(0));
            let source = Numbered(Arc::clone(&made));
            let mut prefetcher = Prefetcher::start(source, 5..205, threads).unwrap();
            for number in 5..205 {
                let batch = prefetcher.next_batch().unwrap();
                assert_eq!(batch.values.len(), number);
                prefetcher.give_back(batch);
            }
            assert!(prefetcher.next_batch().is_none());
            let made = made.load(Ordering::SeqCst);
            assert!(made <= threads * (AHEAD + 2), "{made} of {threads} threads");
        }
    }

    #[test]
    fn the_source_is_gone_with_the_prefetcher() {
        let made = Arc::new(AtomicUsize::new(0));
        let source = Numbered(Arc::clone(&made));
        let mut prefetcher = Prefetcher::start(source, 0..u64::MAX, 2).unwrap();
        assert!(prefetcher.next_batch().is_some());
        drop(prefetcher);
        assert_eq!(Arc::strong_count(&made), 1);
    }
}
