//! The device that a user names: one of this machine, or one that another machine offers.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use rookery_backend_cpu::CpuBackend;
use rookery_backend_gpu::KernelTuner;
use rookery_backend_remote::{DeviceToken, PATIENCE, RemoteAddress, RemoteBackend, RemoteDevice};
use rookery_backends::DeviceSelection;
use rookery_common::command_line::read_secret;
use rookery_engine::{Backend, BackendError, DeviceChoice, Precision};

use crate::config::ConfigFile;

/// Where to compute: on this machine, where a [`DeviceChoice`] or a [`DeviceSelection`] says which devices, or elsewhere.
#[derive(Debug, Clone)]
pub enum Device<L> {
    /// On this machine.
    Local(L),
    /// What `serve-device` offers.
    Remote(Box<RemoteDevice>),
}

impl<L: FromStr<Err: Display>> Device<L> {
    /// The device of a name such as `auto`, `gpu:1` or `remote://HOST:PORT`.
    ///
    /// # Errors
    ///
    /// If there is no such name, the token of a remote device cannot be read, or certificates are given for a
    /// connection in plain.
    pub fn resolve(name: &str, file: &ConfigFile) -> anyhow::Result<Self> {
        if RemoteAddress::is_meant_by(name) {
            let address: RemoteAddress = name.parse()?;
            anyhow::ensure!(
                address.is_encrypted() || file.device_ca.is_none(),
                "{address} is not encrypted, and --device-ca is of no use there: write remotes://, or leave the \
                 certificates out"
            );
            return Ok(Self::Remote(Box::new(RemoteDevice {
                token: device_token(file)?,
                trusted_certificates: file.device_ca.clone(),
                ..RemoteDevice::new(address)
            })));
        }
        let local = name.parse::<L>();
        let local = local.map_err(|error| anyhow::anyhow!("{error}, or remote://HOST:PORT"))?;
        Ok(Self::Local(local))
    }
}

impl Device<DeviceChoice> {
    /// The backends that the device has in this precision, as [`rookery_backends::open`] gives them.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if the device cannot be used, or does not compute in the precision.
    pub fn open(
        &self,
        precision: Precision,
        tuner: &KernelTuner,
    ) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
        match self {
            Self::Local(choice) => rookery_backends::open(*choice, precision, tuner),
            Self::Remote(device) => Ok(vec![open_remote(device, precision)?]),
        }
    }
}

impl Device<DeviceSelection> {
    /// The backends of each of the devices, as [`rookery_backends::open_all`] gives them.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if a device cannot be used, or does not compute in the precision.
    pub fn open_all(
        &self,
        precision: Precision,
        tuner: &KernelTuner,
    ) -> Result<Vec<Vec<Arc<dyn Backend>>>, BackendError> {
        match self {
            Self::Local(devices) => rookery_backends::open_all(devices, precision, tuner),
            Self::Remote(device) => Ok(vec![vec![open_remote(device, precision)?]]),
        }
    }
}

/// A remote device. The processor takes its place when it does not answer any more: in 32 bits it is as exact as any.
fn open_remote(
    device: &RemoteDevice,
    precision: Precision,
) -> Result<Arc<dyn Backend>, BackendError> {
    let next = Arc::new(CpuBackend::new(Precision::F32)?);
    let remote = RemoteBackend::open(device.clone(), precision, next, PATIENCE)?;
    Ok(Arc::new(remote))
}

/// The token of a device that is offered or used, if a file of it was named.
pub(crate) fn device_token(file: &ConfigFile) -> anyhow::Result<Option<DeviceToken>> {
    let Some(path) = &file.device_token_file else {
        return Ok(None);
    };
    let token = DeviceToken::parse(&read_secret(path)?);
    let named = || format!("the token file {} cannot be used", path.display());
    token.with_context(named).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_another_machine_is_told_from_those_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "correct horse battery\n").unwrap();
        let file = ConfigFile {
            device_token_file: Some(path.clone()),
            ..ConfigFile::default()
        };
        let resolve = |name: &str| Device::<DeviceChoice>::resolve(name, &file);
        let remote = resolve("remote://gpu.lan:7750").unwrap();
        assert!(
            matches!(&remote, Device::Remote(remote) if remote.token.is_some()),
            "{remote:?}"
        );
        let local = resolve("gpu:1").unwrap();
        assert!(matches!(local, Device::Local(DeviceChoice::Gpu(1))));
        let error = resolve("tpu").unwrap_err().to_string();
        assert!(error.contains("remote://HOST:PORT"), "{error}");
        let error = resolve("remote://gpu.lan").unwrap_err().to_string();
        assert!(error.contains("remote://HOST:PORT"), "{error}");
        std::fs::write(&path, "short").unwrap();
        let error = format!("{:#}", resolve("remote://gpu.lan:7750").unwrap_err());
        assert!(error.contains("5 characters"), "{error}");
        assert!(!error.contains("short\""), "{error}");
        // Without a remote device the file is not read.
        resolve("cpu").unwrap();
    }

    #[test]
    fn certificates_are_for_encrypted_connections_alone() {
        let file = ConfigFile {
            device_ca: Some("gpu.pem".into()),
            ..ConfigFile::default()
        };
        let resolve = |name: &str| Device::<DeviceChoice>::resolve(name, &file);
        let Device::Remote(remote) = resolve("remotes://gpu.lan:7750").unwrap() else {
            panic!("it is elsewhere")
        };
        assert_eq!(remote.trusted_certificates, file.device_ca);
        let error = resolve("remote://gpu.lan:7750").unwrap_err().to_string();
        assert!(error.contains("write remotes://"), "{error}");
        resolve("cpu").unwrap();
    }
}
