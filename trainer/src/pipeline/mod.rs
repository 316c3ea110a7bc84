//! From the window to batches, ahead of the device.
//!
//! ```text
//! Sampler(seed, batch number) -> picks -> Mixture -> encode -> bounded channel -> training step
//!                                             N worker threads, batches in order
//! ```
//!
//! [`sampler`] chooses positions by a batch's number alone, [`encode`] makes a batch of them,
//! [`prefetch`] runs both on worker threads. The same seed, windows and number always give the same
//! batch, whatever the number of threads.

pub mod encode;
pub mod prefetch;
pub mod sampler;

pub use encode::{BatchPlan, Sampled, encode_batch, push_played};
pub use prefetch::{BatchSource, Prefetcher};
pub use sampler::Sampler;
