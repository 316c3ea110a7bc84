//! Networks evaluated by any GPU, in kernels written in WGSL for Vulkan, Metal and DirectX 12. No libtorch.
//!
//! [`adapters`] lists the GPUs of this machine. [`GpuBackend`] is one of them behind the engine's
//! [`Backend`](rookery_engine::Backend): it loads networks, each of which is compared with the processor's numbers
//! before it is used. Any number of [`GpuEvaluator`]s, one for each thread, evaluate a network.
//!
//! ```text
//! Batch --request--> one array of words --> device: tower, policy, value --> one array of numbers --> Evaluations
//! ```
//!
//! A position goes up as packed planes with the policy cells of its legal moves, about a kilobyte; only the logits of
//! those and the value come back. A batch is one submission and one readback, and the steady state allocates no memory of
//! the device. The tower is one kernel, a workgroup for each position, where a workgroup's memory holds the board's
//! activations; else a kernel or two for each convolution. How these divide the work is [tuned](KernelTuner) for the GPU.
//!
//! Modules in dependency order: `advice`, `adapter`, `kernel`, `gpu`, `arrange`, `request`, `plan`, `variant`, `layers` with `tower`
//! and `heads`, `submission_bound`, `network`, `buffers`, `evaluator`, `tuning`, `backend`.

mod adapter;
mod advice;
mod arrange;
mod backend;
mod buffers;
mod evaluator;
mod gpu;
mod heads;
mod kernel;
mod layers;
mod matrices;
mod matrix_choice;
mod network;
mod plan;
mod request;
mod submission_bound;
#[cfg(test)]
mod tests;
mod tower;
mod tuning;
mod variant;

pub use adapter::{GpuAdapter, adapters};
pub use advice::{driver_advice, has_nvidia_gpu};
pub use backend::GpuBackend;
pub use evaluator::GpuEvaluator;
pub use matrix_choice::MatrixChoice;
pub use network::GpuNetwork;
pub use tuning::{KernelTuner, TunedKernels};
