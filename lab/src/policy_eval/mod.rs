//! How much better searching is than the network alone: [`loss`] is what policies lose in a strong engine's eyes, [`sample`]
//! chooses the positions.

pub mod loss;
pub(crate) mod sample;
