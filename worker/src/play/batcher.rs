//! One network on a thread: it answers the batches of all pools that ask it as one.

use std::sync::Arc;

use rookery_common::ids::ContentHash;
use rookery_engine::{
    Backend, BackendError, Batch, EvaluationCache, Evaluations, Evaluator, EvaluatorError,
};

use super::loaded_networks::{LoadedNetworks, OnDevice};
use crate::device_pool::DevicePool;
use crate::networks::NetworkFile;

/// A network to be asked.
pub(super) struct NetworkBatcher {
    pub(super) network: ContentHash,
    pub(super) cache: Arc<EvaluationCache>,
    file: NetworkFile,
    /// None after a pause or a failure, until the batcher is opened again.
    evaluator: Option<Box<dyn Evaluator + Send>>,
    /// What computes.
    backend: Arc<dyn Backend>,
    /// The questions of several pools.
    merged: Batch,
    answer: Evaluations,
}

/// A pool's question to a batcher, and where the answer goes.
pub(super) struct Question<'a> {
    pub(super) batch: &'a Batch,
    pub(super) answer: &'a mut Evaluations,
}

impl NetworkBatcher {
    /// Loads a network, unless another thread has it.
    pub(super) fn open(
        file: &NetworkFile,
        devices: &DevicePool,
        lane: usize,
        loaded: &LoadedNetworks,
    ) -> Result<Self, BackendError> {
        let OnDevice { backend, network } = loaded.network(file, devices, lane)?;
        let evaluator = network.evaluator();
        let cache = loaded.cache(file.hash);
        let merged = Batch::new(evaluator.input(), evaluator.policy());
        let answer = Evaluations::default();
        Ok(Self {
            network: file.hash,
            cache,
            file: file.clone(),
            evaluator: Some(evaluator),
            backend,
            merged,
            answer,
        })
    }

    /// What computes the network.
    pub(super) fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    /// Lets go of the network.
    pub(super) fn close(&mut self) {
        self.evaluator = None;
    }

    /// Loads the network again if the batcher was closed.
    pub(super) fn reopen(
        &mut self,
        devices: &DevicePool,
        lane: usize,
        loaded: &LoadedNetworks,
    ) -> Result<(), BackendError> {
        if self.evaluator.is_none() {
            let OnDevice { backend, network } = loaded.network(&self.file, devices, lane)?;
            (self.backend, self.evaluator) = (backend, Some(network.evaluator()));
        }
        Ok(())
    }

    /// Lets go of the network, which could not be computed; the batcher opens again with what computes it from now on.
    pub(super) fn fail(
        &mut self,
        devices: &DevicePool,
        lane: usize,
        error: EvaluatorError,
    ) -> Result<(), BackendError> {
        self.close();
        devices.report_failure(lane, &self.backend, self.network, error.into())
    }

    /// Whether the network is loaded.
    pub(super) const fn is_open(&self) -> bool {
        self.evaluator.is_some()
    }

    /// An empty batch for this network.
    pub(super) fn batch(&self) -> Batch {
        Batch::new(self.merged.input(), self.merged.policy())
    }

    /// Answers the questions; gives the number of positions evaluated.
    pub(super) fn answer(
        &mut self,
        mut questions: Vec<Question<'_>>,
    ) -> Result<usize, EvaluatorError> {
        questions
            .iter_mut()
            .for_each(|question| question.answer.clear());
        questions.retain(|question| !question.batch.is_empty());
        match questions.as_mut_slice() {
            [] => Ok(0),
            [only] => {
                opened(&mut self.evaluator)?.evaluate(only.batch, only.answer)?;
                Ok(only.batch.len())
            }
            many => self.answer_merged(many),
        }
    }

    fn answer_merged(&mut self, questions: &mut [Question<'_>]) -> Result<usize, EvaluatorError> {
        self.merged.clear();
        for question in questions.iter() {
            (0..question.batch.len())
                .for_each(|index| self.merged.push_from(question.batch, index));
        }
        opened(&mut self.evaluator)?.evaluate(&self.merged, &mut self.answer)?;
        let (mut values, mut logits) = (&self.answer.values[..], &self.answer.logits[..]);
        for question in questions {
            let (own_values, rest) = values.split_at(question.batch.len());
            let (own_logits, other) = logits.split_at(question.batch.moves().len());
            question.answer.values.extend_from_slice(own_values);
            question.answer.logits.extend_from_slice(own_logits);
            (values, logits) = (rest, other);
        }
        Ok(self.merged.len())
    }
}

fn opened(
    evaluator: &mut Option<Box<dyn Evaluator + Send>>,
) -> Result<&mut (dyn Evaluator + Send + 'static), EvaluatorError> {
    let closed = || EvaluatorError("it is not loaded".to_owned());
    evaluator.as_deref_mut().ok_or_else(closed)
}
