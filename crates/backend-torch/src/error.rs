//! What can go wrong with networks.

use rookery_common::network::SpecError;
use rookery_model::ModelError;
use tch::TchError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum TorchError {
    /// libtorch refused or failed: a device that went away.
    #[error("libtorch failed: {0}")]
    Torch(String),
    /// A GPU has not enough free memory.
    #[error(
        "RK-0304: the GPU's memory is full; use smaller batches, or end other programs that use it ({0})"
    )]
    OutOfMemory(String),
    /// A network's file or weights, or another file, are not what they have to be.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What came out of a network is not finite.
    #[error(
        "RK-0305: output {output} is not a finite number, computed in {precision}; a network that is too large for f16 can be computed with the precision auto, bf16 or f32"
    )]
    NotFinite {
        /// Which output, the legal moves' logits first, then the values.
        output: usize,
        /// The numbers in which it was computed.
        precision: &'static str,
    },
    /// The device that was asked for cannot be used.
    #[error("RK-0302: device {device} cannot be used: {reason}")]
    Device {
        /// The device as asked for.
        device: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The numbers that were asked for cannot be computed with on this device.
    #[error("RK-0303: precision {precision} cannot be used on {device}: {reason}")]
    Precision {
        /// The precision as asked for.
        precision: &'static str,
        /// The device.
        device: String,
        /// Why not.
        reason: &'static str,
    },
    /// A batch whose parts do not fit each other or the network.
    #[error("the batch is unusable: {0}")]
    Batch(String),
}

impl From<SpecError> for TorchError {
    fn from(error: SpecError) -> Self {
        ModelError::Spec(error).into()
    }
}

impl From<TchError> for TorchError {
    /// Keeps libtorch's sentence and drops its stack trace, which fills pages.
    fn from(error: TchError) -> Self {
        let text = match error {
            TchError::Torch(text) => text,
            other => other.to_string(),
        };
        let end = text.find("\nException raised from").unwrap_or(text.len());
        let sentence = text[..end].trim();
        let short: String = sentence.chars().take(MAX_MESSAGE).collect();
        let short = short.replace('\n', " ");
        if MEMORY_MESSAGES.iter().any(|words| short.contains(words)) {
            Self::OutOfMemory(short)
        } else {
            Self::Torch(short)
        }
    }
}

/// What messages of CUDA and Metal, of cuBLAS and cuDNN, and of libtorch say where memory is missing. The last one is of
/// convolutions: libtorch tries one engine of cuDNN after the other, and passes over all that have no memory.
const MEMORY_MESSAGES: [&str; 4] = [
    "out of memory",
    "ALLOC_FAILED",
    "DEVICE_ALLOCATION_FAILED",
    "unable to find an engine",
];

/// libtorch lists every backend in some messages; no more than this many characters are kept.
const MAX_MESSAGE: usize = 300;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, TorchError>;

/// A result of libtorch itself.
pub type TorchResult<T> = std::result::Result<T, TchError>;

#[cfg(test)]
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;

    #[test]
    fn a_full_gpu_is_told_from_other_failures() {
        for full in [
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 7.79 GiB",
            "GET was unable to find an engine to execute this computation",
        ] {
            let error = TorchError::from(TchError::Torch(full.to_owned()));
            assert!(matches!(error, TorchError::OutOfMemory(_)), "{error}");
            assert!(error.to_string().contains("smaller batches"), "{error}");
        }
        let other = TorchError::from(TchError::Torch("CUDA error: an illegal address".to_owned()));
        assert!(matches!(other, TorchError::Torch(_)), "{other}");
    }

    #[test]
    fn messages_of_libtorch_come_without_its_stack_trace() {
        let left = Tensor::zeros([2, 3], (Kind::Float, Device::Cpu));
        let error = TorchError::from(left.f_matmul(&left).unwrap_err()).to_string();
        assert!(error.contains("cannot be multiplied"), "{error}");
        assert!(!error.contains("frame #0") && error.len() < 400, "{error}");
    }
}
