//! A network on another machine behind the engine's [`Evaluator`].

use std::sync::Arc;
use std::sync::mpsc::channel;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError, LoadedNetwork as _};

use super::backend::{Place, RemoteNetwork};
use super::link::NetworkError;
use crate::positions::part_from;

/// Evaluates a network on another machine; the thread that asks waits for the answer.
///
/// A batch that is too large for one frame is sent in parts, all at once. The connection carries the batches of all
/// threads.
pub(super) struct RemoteEvaluator {
    network: Arc<RemoteNetwork>,
    /// On the next device, while the server does not answer.
    replacement: Option<Box<dyn Evaluator + Send>>,
}

/// Why the device has not answered.
enum NoAnswer {
    /// The connection was lost.
    Lost,
    /// The device cannot compute the batch.
    Failed(String),
}

impl RemoteEvaluator {
    pub(super) const fn new(network: Arc<RemoteNetwork>) -> Self {
        Self {
            network,
            replacement: None,
        }
    }

    fn error(&self, why: &str) -> EvaluatorError {
        EvaluatorError(format!("{}: {why}", self.network.remote.address()))
    }

    /// Lets the next device evaluate.
    fn replace(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        if self.replacement.is_none() {
            let network = self.network.replacement();
            let network = network.map_err(|error| self.error(&error.to_string()))?;
            self.replacement = Some(network.evaluator());
        }
        match &mut self.replacement {
            Some(evaluator) => evaluator.evaluate(batch, answer),
            None => Err(self.error("nothing takes its place")),
        }
    }
}

impl Evaluator for RemoteEvaluator {
    fn input(&self) -> InputEncoding {
        self.network.spec().input
    }

    fn policy(&self) -> PolicyEncoding {
        self.network.spec().policy.encoding
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        let fits = batch.check_encodings(self.input(), self.policy());
        fits.map_err(|EvaluatorError(why)| self.error(&why))?;
        loop {
            let place = match self.network.place() {
                Ok(place) => place,
                Err(NetworkError::Lost(_) | NetworkError::Failed { passing: true, .. }) => {
                    return self.replace(batch, answer);
                }
                Err(NetworkError::Failed { why, .. }) => return Err(self.error(&why)),
            };
            match ask(&place, batch, answer) {
                Ok(()) => break,
                Err(NoAnswer::Lost) => {}
                Err(NoAnswer::Failed(why)) => return Err(self.error(&why)),
            }
        }
        self.network.remote.has_answered();
        if self.replacement.take().is_some() {
            self.network.drop_replacement();
        }
        Ok(())
    }
}

/// Sends a batch, in as many parts as it needs, and waits for their answers.
fn ask(place: &Place, batch: &Batch, answer: &mut Evaluations) -> Result<(), NoAnswer> {
    let (to, answers) = channel();
    let (mut start, mut count) = (0, 0);
    while start < batch.len() {
        let part = part_from(batch, start);
        start = part.end;
        let sent = place.link.send(place.network, batch, (count, part), &to);
        sent.map_err(|_| NoAnswer::Lost)?;
        count += 1;
    }
    drop(to);
    let mut parts = vec![None; count];
    // Ends when all parts are answered, or none will be any more.
    for (index, part) in answers {
        parts[index] = Some(part.map_err(NoAnswer::Failed)?);
    }
    answer.clear();
    for part in parts {
        let Evaluations { logits, values } = part.ok_or(NoAnswer::Lost)?;
        answer.logits.extend_from_slice(&logits);
        answer.values.extend_from_slice(&values);
    }
    Ok(())
}
