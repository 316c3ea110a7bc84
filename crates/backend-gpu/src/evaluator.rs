//! A network behind the engine's [`Evaluator`].

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rookery_backend_cpu::{check_finite, value_of};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError, LoadedNetwork as _};

use crate::buffers::Buffers;
use crate::gpu::GpuError;
use crate::network::GpuNetwork;
use crate::request;

/// Evaluates a network for the thread that asks, which waits for the device.
///
/// Each evaluator has its own arrays on the device, so that the batches of several threads follow one another without a
/// pause: while one's is computed, the other's is prepared. An array to write and one to read for each thread replace a
/// ring of staging buffers: nothing is allocated from the second batch on, unless it is larger.
#[derive(Debug)]
pub struct GpuEvaluator {
    network: Arc<GpuNetwork>,
    buffers: Option<Buffers>,
    request: Vec<u32>,
    answer: Vec<f32>,
}

impl GpuEvaluator {
    /// An evaluator of a network that others may evaluate at the same time.
    pub fn new(network: Arc<GpuNetwork>) -> Self {
        Self {
            network,
            buffers: None,
            request: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// What it evaluates.
    pub fn network(&self) -> &GpuNetwork {
        &self.network
    }

    /// How long each kernel takes for a batch, in order, `rounds` times in a row. The batch is not divided.
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if the batch is larger than the device has memory for, or the device fails.
    pub fn kernel_times(
        &self,
        batch: &Batch,
        rounds: u32,
    ) -> Result<Vec<(&'static str, Duration)>, EvaluatorError> {
        let network = Arc::clone(&self.network);
        let buffers = self.allocate(batch.len())?;
        let all = 0..batch.len();
        if fitting(batch, all.clone(), &buffers) != all {
            return Err(self.error("it has no memory for such a batch"));
        }
        let mut request = Vec::new();
        request::write(batch, all.clone(), &network.cells, &mut request)?;
        let counts = [batch.len(), request::moves_of(batch, &all)];
        let times = buffers.times(&network, &request, counts, rounds);
        let times = times.map_err(|why| self.error(&why))?;
        let names = network.plan.steps.iter().map(|step| step.name);
        Ok(names.zip(times).collect())
    }

    fn error(&self, why: &str) -> EvaluatorError {
        EvaluatorError(format!("{}: {why}", self.network.gpu.adapter))
    }

    /// Buffers for `positions`, or for fewer where memory is short.
    fn buffers(&mut self, positions: usize) -> Result<&Buffers, EvaluatorError> {
        let most = self.network.bound.positions(Instant::now());
        let wanted = positions.min(most);
        let kept = self
            .buffers
            .as_ref()
            .is_some_and(|buffers| buffers.positions >= wanted);
        if !kept {
            let mut size = wanted.next_power_of_two().min(most);
            size = Buffers::bindable(&self.network, self.input(), size);
            if size < wanted {
                // Else every batch would ask for larger buffers again.
                self.network.bound.set_by_arrays(size);
            }
            // The old ones give their memory to the new ones.
            self.buffers = None;
            self.buffers = Some(self.allocate(size)?);
        }
        let none = || self.error("it has no buffers");
        self.buffers.as_ref().ok_or_else(none)
    }

    fn allocate(&self, mut positions: usize) -> Result<Buffers, EvaluatorError> {
        loop {
            match Buffers::new(&self.network, self.input(), positions) {
                Ok(buffers) => return Ok(buffers),
                Err(GpuError::OutOfMemory) if positions > 1 => {
                    positions /= 2;
                    // Other evaluators need not find it out.
                    if self.network.bound.note_shortage(positions, Instant::now()) {
                        tracing::warn!(
                            "{} is short of memory: batches of {positions} positions",
                            self.network.gpu.adapter
                        );
                    }
                }
                Err(GpuError::OutOfMemory) => {
                    return Err(self.error("it has too little free memory for a single position"));
                }
                Err(GpuError::Failed(why)) => return Err(self.error(&why)),
            }
        }
    }

    /// Adds the evaluations of some positions to `answer`, the first of `rest` that the buffers have room for. Gives
    /// where the rest begins.
    fn evaluate_part(
        &mut self,
        batch: &Batch,
        rest: Range<usize>,
        answer: &mut Evaluations,
    ) -> Result<usize, EvaluatorError> {
        let network = Arc::clone(&self.network);
        let (mut request, mut numbers) = (
            std::mem::take(&mut self.request),
            std::mem::take(&mut self.answer),
        );
        let buffers = self.buffers(rest.len())?;
        let part = fitting(batch, rest, buffers);
        let moves = request::moves_of(batch, &part);
        if moves > buffers.moves {
            return Err(EvaluatorError(format!(
                "position {} has {moves} moves, more than any policy",
                part.start
            )));
        }
        request::write(batch, part.clone(), &network.cells, &mut request)?;
        numbers.clear();
        numbers.resize(moves + part.len() * network.plan.sizes.values, 0.0);
        let begun = Instant::now();
        let done = buffers.round_trip(&network, &request, [part.len(), moves], &mut numbers);
        let queued = match done {
            Ok(queued) => queued,
            Err(why) => {
                self.buffers = None;
                return Err(self.error(&network.gpu.give_up(why)));
            }
        };
        let time = begun.elapsed();
        network.bound.note_time(part.len(), time, queued);
        let (logits, values) = numbers.split_at(moves);
        answer.logits.extend_from_slice(logits);
        let first = answer.values.len();
        answer
            .values
            .extend(values.chunks_exact(network.plan.sizes.values).map(value_of));
        check_finite(logits, &answer.values[first..], network.precision())?;
        (self.request, self.answer) = (request, numbers);
        Ok(part.end)
    }
}

/// The first positions of a range for which there is room, at least one.
fn fitting(batch: &Batch, rest: Range<usize>, buffers: &Buffers) -> Range<usize> {
    let mut end = rest.end.min(rest.start + buffers.positions);
    while end > rest.start + 1 && request::moves_of(batch, &(rest.start..end)) > buffers.moves {
        end -= 1;
    }
    rest.start..end
}

impl Evaluator for GpuEvaluator {
    fn input(&self) -> InputEncoding {
        self.network.spec().input
    }

    fn policy(&self) -> PolicyEncoding {
        self.network.spec().policy.encoding
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        answer.clear();
        batch.check_encodings(self.input(), self.policy())?;
        let mut done = 0;
        while done < batch.len() {
            done = self.evaluate_part(batch, done..batch.len(), answer)?;
        }
        Ok(())
    }
}
