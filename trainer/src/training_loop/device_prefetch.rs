//! Batches on their way to the device: each is brought there while the one before it is learnt.

use rookery_train::{LoadedBatch, Losses, TrainError, Trainer};

use crate::pipeline::Prefetcher;

/// Batches, and the one among them that lies on the device already.
#[derive(Debug)]
pub struct DevicePrefetch {
    batches: Prefetcher,
    ready: Option<Ready>,
}

/// A batch on the device.
#[derive(Debug)]
struct Ready {
    batch: LoadedBatch,
    positions: usize,
}

impl DevicePrefetch {
    /// Takes the batches from the first one on.
    pub const fn new(batches: Prefetcher) -> Self {
        Self {
            batches,
            ready: None,
        }
    }

    /// Takes a step on the next batch; gives the losses before it and the batch's positions, or none after
    /// the last batch.
    ///
    /// # Errors
    ///
    /// What [`Trainer::step_loaded`] gives; what is wrong with the batch after this one, too, when the step has been taken.
    pub fn step(
        &mut self,
        trainer: &mut Trainer,
        rate: f64,
    ) -> Result<Option<(Losses, usize)>, TrainError> {
        let Some(Ready { batch, positions }) = self.take(trainer)? else {
            return Ok(None);
        };
        let next = self.batches.next_batch();
        let (losses, loaded) = trainer.step_while_loading(&batch, rate, next.as_ref())?;
        if let Some(next) = next {
            let positions = next.values.len();
            self.ready = loaded.map(|batch| Ready { batch, positions });
            self.batches.give_back(next);
        }
        Ok(Some((losses, positions)))
    }

    /// The batch that is ready, or the first one.
    fn take(&mut self, trainer: &mut Trainer) -> Result<Option<Ready>, TrainError> {
        if let Some(ready) = self.ready.take() {
            return Ok(Some(ready));
        }
        let Some(first) = self.batches.next_batch() else {
            return Ok(None);
        };
        let positions = first.values.len();
        let batch = trainer.load(&first)?;
        self.batches.give_back(first);
        Ok(Some(Ready { batch, positions }))
    }
}
