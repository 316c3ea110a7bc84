//! Where to compute: the user's choice of a device, and the device once it is known to work.
//!
//! One binary serves all machines. libtorch's CUDA library is opened at run time, and before
//! the first question about CUDA: libtorch remembers a question that was asked too early, and then
//! stays without CUDA for the life of the process. The first convolution on a processor asks it, too.

use std::fmt;

use parking_lot::{Mutex, MutexGuard};
use rookery_engine::DeviceChoice;
use tch::{Cuda, Device, Kind, Tensor};

use crate::cuda;
use crate::error::{Result, TorchError};

/// A device that was tried and works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputeDevice(pub(crate) Device);

impl ComputeDevice {
    /// The processor, which always works.
    pub const CPU: Self = Self(Device::Cpu);

    /// Opens the device and tries it with a small computation.
    ///
    /// # Errors
    ///
    /// [`TorchError::Device`] if a device was named that is not there or does not work. `Auto` falls
    /// back to the processor and does not fail; it warns where libtorch has come with CUDA.
    pub fn open(choice: DeviceChoice) -> Result<Self> {
        match choice {
            DeviceChoice::Cpu => Ok(Self::CPU),
            DeviceChoice::Gpu(_) => Err(TorchError::Device {
                device: choice.to_string(),
                reason: "libtorch computes on processors, cuda:N and mps".into(),
            }),
            DeviceChoice::Cuda(number) => open_cuda(number),
            DeviceChoice::Mps => open_mps(),
            DeviceChoice::Auto => Ok(open_cuda(0)
                .or_else(|cuda| {
                    tell_fallback(&cuda);
                    open_mps()
                })
                .unwrap_or(Self::CPU)),
        }
    }

    /// The device as libtorch names it.
    pub const fn device(self) -> Device {
        self.0
    }

    /// Whether this is the processor.
    pub fn is_cpu(self) -> bool {
        self.0 == Device::Cpu
    }

    /// Waits for this thread's turn on a GPU, which lasts until the answer is dropped; a processor has none.
    ///
    /// libtorch gives all threads the same queue of a GPU, and who waits for what they put into it waits for all
    /// that is in it. Without turns two threads that begin together stay together: each waits for both batches,
    /// and then the GPU waits for both to prepare the next.
    pub(crate) fn turn(self) -> Option<MutexGuard<'static, ()>> {
        let Device::Cuda(number) = self.0 else {
            return None;
        };
        let turn = &TURNS[number % TURNS.len()];
        Some(turn.lock())
    }

    /// Gives back to a GPU, for other programs, the memory that libtorch keeps for its next tensors; a processor has
    /// none such. What tensors in use and the driver itself take stays.
    ///
    /// tch has no call for that. But libtorch does it before it refuses a tensor that has no room, so it is asked for
    /// one that has room nowhere.
    pub fn release_kept_memory(self) {
        if let Device::Cuda(_) = self.0 {
            let _turn = self.turn();
            drop(Tensor::f_empty([MORE_THAN_ANY], (Kind::Uint8, self.0)));
        }
    }
}

/// Bytes that no GPU has: a pebibyte.
const MORE_THAN_ANY: i64 = 1 << 50;

/// Of each GPU, by its number.
static TURNS: [Mutex<()>; 16] = [const { Mutex::new(()) }; 16];

impl fmt::Display for ComputeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Device::Cuda(number) => write!(f, "cuda:{number}"),
            Device::Mps => f.write_str("mps"),
            Device::Cpu | Device::Vulkan => f.write_str("cpu"),
        }
    }
}

/// Who has installed libtorch with CUDA wants to know why it is not used.
fn tell_fallback(error: &TorchError) {
    if cuda::library().is_ok() {
        tracing::warn!("{error}; the processor computes instead");
    } else {
        tracing::debug!("{error}");
    }
}

fn open_cuda(number: usize) -> Result<ComputeDevice> {
    let choice = DeviceChoice::Cuda(number);
    let refuse = |reason: String| TorchError::Device {
        device: choice.to_string(),
        reason,
    };
    cuda::library()
        .as_ref()
        .map_err(|reason| refuse(reason.clone()))?;
    if !Cuda::is_available() {
        return Err(refuse(NO_GPU.into()));
    }
    let count = usize::try_from(Cuda::device_count()).unwrap_or_default();
    if number >= count {
        return Err(refuse(format!(
            "this machine has {count} CUDA devices, counted from 0"
        )));
    }
    try_device(Device::Cuda(number), choice)
}

fn open_mps() -> Result<ComputeDevice> {
    if tch::utils::has_mps() {
        return try_device(Device::Mps, DeviceChoice::Mps);
    }
    let reason = "this libtorch was built without Metal".into();
    Err(TorchError::Device {
        device: DeviceChoice::Mps.to_string(),
        reason,
    })
}

/// The driver's version is that of CUDA 13.0, for which `scripts/libtorch` installs libtorch.
const NO_GPU: &str = "libtorch finds no NVIDIA GPU, or no driver of version 580 or newer; a program \
                      that has computed on the processor has to be started again for its GPU";

/// Adds two numbers on the device: allocation, a kernel and the way back.
fn try_device(device: Device, choice: DeviceChoice) -> Result<ComputeDevice> {
    let attempt = || -> Result<f64> {
        let one = Tensor::f_ones([1], (Kind::Float, device))?;
        Ok(one.f_add(&one)?.f_double_value(&[0])?)
    };
    let reason = match attempt() {
        Ok(2.0) => return Ok(ComputeDevice(device)),
        Ok(sum) => format!("it adds 1 and 1 to {sum}"),
        Err(error) => error.to_string(),
    };
    Err(TorchError::Device {
        device: choice.to_string(),
        reason,
    })
}

/// Lets libtorch use this many processor threads for what the calling thread asks of it. Threads
/// that evaluate side by side each call this with 1; otherwise each would use every core.
pub fn use_threads(threads: usize) {
    let threads = i32::try_from(threads.max(1)).unwrap_or(i32::MAX);
    tch::set_num_threads(threads);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn threads_take_turns_on_a_gpu_and_not_on_different_ones() {
        let [first, second] = [0, 1].map(|number| ComputeDevice(Device::Cuda(number)));
        let held = (first.turn(), second.turn());
        assert!(held.0.is_some() && held.1.is_some());
        assert!(ComputeDevice::CPU.turn().is_none());
        drop(held);
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _turn = first.turn();
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn auto_always_finds_a_device_and_a_missing_one_says_why() {
        let device = ComputeDevice::open(DeviceChoice::Auto).unwrap();
        assert!(try_device(device.0, DeviceChoice::Auto).is_ok());
        let error = ComputeDevice::open(DeviceChoice::Cuda(250))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("device cuda:250 cannot be used: "),
            "{error}"
        );
    }
}
