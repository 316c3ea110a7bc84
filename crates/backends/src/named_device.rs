//! The device that a user names: one of this machine, or one that another machine offers.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use rookery_backend_cpu::CpuBackend;
use rookery_backend_gpu::KernelTuner;
use rookery_backend_remote::{DeviceToken, PATIENCE, RemoteAddress, RemoteBackend, RemoteDevice};
use rookery_common::secret::read_secret;
use rookery_engine::{Backend, BackendError, DeviceChoice, Precision};

use crate::DeviceSelection;

/// Where to compute: on this machine, where a [`DeviceChoice`] or a [`DeviceSelection`] says which devices, or elsewhere.
#[derive(Debug, Clone)]
pub enum NamedDevice<L> {
    /// On this machine.
    Local(L),
    /// What `serve-device` offers.
    Remote(Box<RemoteDevice>),
}

/// What is needed to use a remote device, besides its address.
#[derive(Debug, Clone, Default)]
pub struct RemoteAccess {
    /// A file that holds the token.
    pub token_file: Option<PathBuf>,
    /// A PEM file with the certificates that are trusted.
    pub trusted_certificates: Option<PathBuf>,
}

impl RemoteAccess {
    /// The token, if a file of it was named.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or what it holds is no token.
    pub fn token(&self) -> anyhow::Result<Option<DeviceToken>> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let token = DeviceToken::parse(&read_secret(path)?);
        let named = || format!("the token file {} cannot be used", path.display());
        token.with_context(named).map(Some)
    }
}

/// The device of a name such as `auto`, `gpu:1` or `remote://HOST:PORT`; a remote one without access.
impl<L: FromStr<Err: Display>> FromStr for NamedDevice<L> {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        if RemoteAddress::is_meant_by(name) {
            return Ok(Self::Remote(Box::new(RemoteDevice::new(name.parse()?))));
        }
        let local = name.parse::<L>();
        let local = local.map_err(|error| anyhow::anyhow!("{error}, or remote://HOST:PORT"))?;
        Ok(Self::Local(local))
    }
}

impl<L> NamedDevice<L> {
    /// The same device with what is needed to use it, if it is a remote one.
    ///
    /// # Errors
    ///
    /// If the token of a remote device cannot be read, or certificates are given for a connection in plain.
    pub fn with_access(self, access: &RemoteAccess) -> anyhow::Result<Self> {
        let Self::Remote(device) = self else {
            return Ok(self);
        };
        let (address, trusted_certificates) = (device.address, &access.trusted_certificates);
        anyhow::ensure!(
            address.is_encrypted() || trusted_certificates.is_none(),
            "{address} is not encrypted, and --device-ca is of no use there: write remotes://, or leave the \
             certificates out"
        );
        Ok(Self::Remote(Box::new(RemoteDevice {
            token: access.token()?,
            trusted_certificates: trusted_certificates.clone(),
            ..RemoteDevice::new(address)
        })))
    }
}

impl NamedDevice<DeviceChoice> {
    /// The backends that the device has in this precision, as [`open`](crate::open) gives them.
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
            Self::Local(choice) => crate::open(*choice, precision, tuner),
            Self::Remote(device) => Ok(vec![open_remote(device, precision)?]),
        }
    }
}

impl NamedDevice<DeviceSelection> {
    /// The backends of each of the devices, as [`open_all`](crate::open_all) gives them.
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
            Self::Local(devices) => crate::open_all(devices, precision, tuner),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str, access: &RemoteAccess) -> anyhow::Result<NamedDevice<DeviceChoice>> {
        name.parse::<NamedDevice<DeviceChoice>>()?
            .with_access(access)
    }

    #[test]
    fn a_device_of_another_machine_is_told_from_those_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "correct horse battery\n").unwrap();
        let access = RemoteAccess {
            token_file: Some(path.clone()),
            ..RemoteAccess::default()
        };
        let resolve = |name: &str| resolve(name, &access);
        let remote = resolve("remote://gpu.lan:7750").unwrap();
        assert!(
            matches!(&remote, NamedDevice::Remote(remote) if remote.token.is_some()),
            "{remote:?}"
        );
        let local = resolve("gpu:1").unwrap();
        assert!(matches!(local, NamedDevice::Local(DeviceChoice::Gpu(1))));
        for wrong in ["tpu", "remote://gpu.lan"] {
            let error = resolve(wrong).unwrap_err().to_string();
            assert!(error.contains("remote://HOST:PORT"), "{error}");
        }
        std::fs::write(&path, "short").unwrap();
        let error = format!("{:#}", resolve("remote://gpu.lan:7750").unwrap_err());
        assert!(error.contains("5 characters"), "{error}");
        assert!(!error.contains("short\""), "{error}");
        // Without a remote device the file is not read.
        resolve("cpu").unwrap();
    }

    #[test]
    fn certificates_are_for_encrypted_connections_alone() {
        let access = RemoteAccess {
            trusted_certificates: Some("gpu.pem".into()),
            ..RemoteAccess::default()
        };
        let NamedDevice::Remote(remote) = resolve("remotes://gpu.lan:7750", &access).unwrap()
        else {
            panic!("it is elsewhere")
        };
        assert_eq!(remote.trusted_certificates, access.trusted_certificates);
        let error = resolve("remote://gpu.lan:7750", &access).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("write remotes://"), "{error}");
        resolve("cpu", &access).unwrap();
    }
}
