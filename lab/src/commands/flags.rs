//! Flags that several commands have.

use std::path::PathBuf;
use std::sync::Arc;

use rookery_analysis::Device;
use rookery_backends::{NamedDevice, RemoteAccess};
use rookery_engine::{Backend, DeviceChoice, Precision, fastest};
use rookery_model::Weights;

/// Where to compute.
#[derive(Debug, Clone, clap::Args)]
pub struct DeviceArgs {
    /// Compute on this device: cpu, gpu or gpu:N, auto (the fastest of these), remote://HOST:PORT (what
    /// `rookery-worker serve-device` offers there; remotes:// by TLS), and with libtorch cuda, cuda:N or mps.
    #[arg(
        long,
        env = "ROOKERY_DEVICE",
        default_value = "auto",
        value_name = "DEVICE"
    )]
    pub device: NamedDevice<DeviceChoice>,
    /// Compute in this precision: f32, f16 on a GPU that has it, auto (the fastest), and with libtorch bf16.
    /// [default: f32; on a remote device, its own]
    #[arg(long, env = "ROOKERY_PRECISION", value_name = "KIND")]
    pub precision: Option<Precision>,
    /// The file with the token of a device at `--device remote://…`.
    #[arg(long, env = "ROOKERY_DEVICE_TOKEN_FILE", value_name = "FILE")]
    pub device_token_file: Option<PathBuf>,
    /// Trust the certificates in this PEM file of a device at `--device remotes://…`: its own certificate, or that of
    /// the authority that has signed it. [default: the system's authorities]
    #[arg(long, env = "ROOKERY_DEVICE_CA", value_name = "FILE")]
    pub device_ca: Option<PathBuf>,
    /// Compute with this many processor threads. [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl DeviceArgs {
    /// The precision that was asked for. Otherwise this machine computes in 32 bits, so that results repeat everywhere; a
    /// remote device has only one.
    fn precision(&self) -> Precision {
        let usual = match self.device {
            NamedDevice::Local(_) => Precision::F32,
            NamedDevice::Remote(_) => Precision::Auto,
        };
        self.precision.unwrap_or(usual)
    }

    fn backends(&self) -> anyhow::Result<Vec<Arc<dyn Backend>>> {
        let data_dir = rookery_backends::default_data_dir();
        let kernels = rookery_backends::kernel_tuner(data_dir.as_deref());
        let access = RemoteAccess {
            token_file: self.device_token_file.clone(),
            trusted_certificates: self.device_ca.clone(),
        };
        let device = self.device.clone().with_access(&access)?;
        Ok(device.open(self.precision(), &kernels)?)
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
            device: NamedDevice::Local(DeviceChoice::Cpu),
            precision: None,
            device_token_file: None,
            device_ca: None,
            threads: Some(1),
        };
        args.open().unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_remote_device_has_its_own_precision_unless_one_is_asked_for() {
        let precision = |flags: &str| {
            let line = format!("lab {flags}");
            let args: DeviceArgs = rookery_cli::testing::flags(Path::new(""), &line).unwrap();
            args.precision()
        };
        for (flags, expected) in [
            ("", Precision::F32),
            ("--device gpu:1", Precision::F32),
            ("--device remote://gpu.lan:7750", Precision::Auto),
            (
                "--device remotes://gpu.lan:7750 --precision f16",
                Precision::F16,
            ),
        ] {
            assert_eq!(precision(flags), expected, "{flags}");
        }
    }

    #[test]
    fn a_device_that_is_none_is_refused_with_what_there_is() {
        let flags = |line: &str| rookery_cli::testing::flags::<DeviceArgs>(Path::new(""), line);
        for name in ["tpu", "remote://gpu.lan"] {
            let error = flags(&format!("lab --device {name}")).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("remote://HOST:PORT"), "{error}");
        }
    }
}
