//! Flags that several commands have.

use std::sync::Arc;

use rookery_analysis::Device;
use rookery_engine::{Backend, BackendError, DeviceChoice, Precision, fastest};
use rookery_model::Weights;

/// Where to compute.
#[derive(Debug, Clone, clap::Args)]
pub struct DeviceArgs {
    /// Compute on this device: cpu, gpu or gpu:N, auto (the fastest of these), and with libtorch cuda, cuda:N or mps.
    #[arg(
        long,
        env = "ROOKERY_DEVICE",
        default_value = "auto",
        value_name = "DEVICE"
    )]
    pub device: DeviceChoice,
    /// Compute in this precision: f32, f16 on a GPU that has it, auto (the fastest), and with libtorch bf16.
    #[arg(
        long,
        env = "ROOKERY_PRECISION",
        default_value = "f32",
        value_name = "KIND"
    )]
    pub precision: Precision,
    /// Compute with this many processor threads. [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl DeviceArgs {
    fn backends(&self) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
        let data_dir = rookery_backends::default_data_dir();
        let kernels = rookery_backends::kernel_tuner(data_dir.as_deref());
        rookery_backends::open(self.device, self.precision, &kernels)
    }

    /// Opens the device, the most exact where several may be meant.
    ///
    /// # Errors
    ///
    /// If no such device is there.
    pub fn open(&self) -> anyhow::Result<Device> {
        let backends = self.backends()?;
        Ok(Device::new(Arc::clone(&backends[0]), self.threads))
    }

    /// Opens the device that computes a network fastest.
    ///
    /// # Errors
    ///
    /// If no such device is there, or it does not compute the network.
    pub fn open_for(&self, weights: &Weights) -> anyhow::Result<Device> {
        let backends = self.backends()?;
        Ok(Device::new(fastest(backends, weights)?, self.threads))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// One thread of the processor.
    pub(crate) fn device() -> Device {
        let args = DeviceArgs {
            device: DeviceChoice::Cpu,
            precision: Precision::F32,
            threads: Some(1),
        };
        args.open().unwrap()
    }
}
