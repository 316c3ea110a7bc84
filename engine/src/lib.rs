//! Search and play against an [`Evaluator`](evaluator::Evaluator).

pub mod evaluator;

pub use evaluator::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};
