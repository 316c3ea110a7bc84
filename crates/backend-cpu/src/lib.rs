//! Networks evaluated by a processor, in kernels written in Rust. No libtorch.
//!
//! [`CpuBackend`] is the processor behind the engine's [`Backend`](rookery_engine::Backend). [`CpuNetwork`] holds a
//! network's weights in the order in which the kernels read them; any number of [`CpuEvaluator`]s, one for each
//! thread, evaluate it behind the engine's [`Evaluator`](rookery_engine::Evaluator). All numbers have 32 bits. Each kernel is compiled for
//! AVX-512, for AVX2 with FMA, and for the target's own instructions (NEON on aarch64); the processor's
//! best is chosen at run time.
//!
//! ```text
//! packed planes --first_layer--> [positions][64][channels] --winograd, elementwise--> tower's output
//!     tower's output --winograd or dense--> policy features --legal_policy--> logits of the legal moves
//!                    --dense, dense, dense--> win, draw, loss
//! ```
//!
//! Channels are padded with zeros to a multiple of [`LANES`], so every network that the format allows
//! runs in the same kernels.
//!
//! # Examples
//!
//! ```
//! use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
//! use rookery_common::chess::GameHistory;
//! use rookery_common::network::NetworkSpec;
//! use rookery_engine::{Batch, Evaluations, Evaluator};
//! use rookery_model::Weights;
//! use shakmaty::Position;
//! use std::sync::Arc;
//!
//! let weights = Weights::random(NetworkSpec::resnet(1, 8), 1)?;
//! let network = Arc::new(CpuNetwork::new(&weights)?);
//! let mut evaluator = CpuEvaluator::new(network);
//! let mut batch = Batch::new(evaluator.input(), evaluator.policy());
//! let game = GameHistory::default();
//! batch.push(&game, &game.position().legal_moves());
//! let mut answer = Evaluations::default();
//! evaluator.evaluate(&batch, &mut answer)?;
//! assert_eq!(answer.logits.len(), 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activation;
mod aligned;
mod backend;
mod dense;
mod element;
mod elementwise;
mod evaluator;
mod first_layer;
mod legal_policy;
mod matrix;
mod network;
mod outputs;
mod policy_cells;
mod simd;
mod winograd;

#[cfg(test)]
mod reference;

pub use backend::CpuBackend;
pub use dense::Dense;
pub use element::{Bf16, Element};
pub use elementwise::{SqueezeExcitation, add_relu, relu};
pub use evaluator::CpuEvaluator;
pub use first_layer::FirstLayer;
pub use legal_policy::LegalPolicy;
pub use network::CpuNetwork;
pub use outputs::{check_finite, value_of};
pub use policy_cells::PolicyCells;
pub use simd::{Instructions, LANES};
pub use winograd::{Winograd, Workspace};
