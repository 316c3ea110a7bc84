//! The certificate of a server, read again when its files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::error::{TlsError, read_certificates};

/// A certificate that may be renewed while connections are served; cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerCertificate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    protocols: &'static [&'static str],
    config: RwLock<Arc<ServerConfig>>,
    /// When the files had changed last.
    changed: Mutex<[Option<SystemTime>; 2]>,
}

impl ServerCertificate {
    /// How often [`reload_if_changed`](Self::reload_if_changed) is to be called.
    pub const CHECK_INTERVAL: Duration = Duration::from_secs(20);

    /// Reads a certificate chain and its key, both PEM. `protocols` are offered to clients by ALPN.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the two do not belong together.
    pub fn open(
        certificate: &Path,
        key: &Path,
        protocols: &'static [&'static str],
    ) -> Result<Self, TlsError> {
        let changed = changed_at(certificate, key);
        let config = read(certificate, key, protocols)?;
        Ok(Self(Arc::new(Shared {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            protocols,
            config: RwLock::new(Arc::new(config)),
            changed: Mutex::new(changed),
        })))
    }

    /// The certificate of the flags `--tls-cert` and `--tls-key`, if they are given.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and if only one of the two is given.
    pub fn of_flags(
        certificate: Option<&Path>,
        key: Option<&Path>,
        protocols: &'static [&'static str],
    ) -> Result<Option<Self>, TlsError> {
        match (certificate, key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Self::open(certificate, key, protocols).map(Some),
            _ => Err(TlsError::OneOfTwo),
        }
    }

    /// What the next handshake works with.
    pub fn config(&self) -> Arc<ServerConfig> {
        let config = self.0.config.read();
        config.clone()
    }

    /// Reads the files again. If that fails, the certificate in use stays.
    pub fn reload(&self) {
        let Shared {
            certificate,
            key,
            protocols,
            config,
            changed,
        } = &*self.0;
        *changed.lock() = changed_at(certificate, key);
        match read(certificate, key, protocols) {
            Ok(new) => {
                *config.write() = Arc::new(new);
                tracing::info!("The TLS certificate was read again.");
            }
            Err(error) => tracing::error!(
                error = error.to_string(),
                "The TLS certificate could not be read again; the one in use stays."
            ),
        }
    }

    /// Reads the files again if they have changed.
    pub fn reload_if_changed(&self) {
        let now = changed_at(&self.0.certificate, &self.0.key);
        let seen = *self.0.changed.lock();
        if now != seen {
            self.reload();
        }
    }
}

fn changed_at(certificate: &Path, key: &Path) -> [Option<SystemTime>; 2] {
    [certificate, key].map(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
}

fn read(certificate: &Path, key: &Path, protocols: &[&str]) -> Result<ServerConfig, TlsError> {
    let chain = read_certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| TlsError::Key {
        path: key.to_owned(),
        why,
    })?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth();
    let config = builder.with_single_cert(chain, secret);
    let mut config = config.map_err(|why| TlsError::Mismatch {
        key: key.to_owned(),
        certificate: certificate.to_owned(),
        why,
    })?;
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn certify(folder: &Path) -> [PathBuf; 2] {
        let names = vec!["localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let paths = ["cert.pem", "key.pem"].map(|name| folder.join(name));
        fs::write(&paths[0], cert.pem()).unwrap();
        fs::write(&paths[1], signing_key.serialize_pem()).unwrap();
        paths
    }

    #[test]
    fn both_files_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = certify(folder.path());
        let none = ServerCertificate::of_flags(None, None, &[]).unwrap();
        assert!(none.is_none());
        let both = ServerCertificate::of_flags(Some(&certificate), Some(&key), &[]).unwrap();
        assert!(both.is_some());
        for (certificate, key) in [(Some(&certificate), None), (None, Some(&key))] {
            let given = (certificate.map(PathBuf::as_path), key.map(PathBuf::as_path));
            let error = ServerCertificate::of_flags(given.0, given.1, &[]).unwrap_err();
            assert!(error.to_string().contains("both --tls-cert and --tls-key"));
        }
    }

    #[test]
    fn files_that_changed_are_read_again_and_what_cannot_be_read_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = certify(folder.path());
        let served = ServerCertificate::open(&certificate, &key, &[]).unwrap();
        let first = served.config();
        served.reload_if_changed();
        assert!(Arc::ptr_eq(&first, &served.config()), "nothing has changed");
        certify(folder.path());
        let later = SystemTime::now() + Duration::from_secs(9);
        fs::File::options()
            .append(true)
            .open(&key)
            .and_then(|file| file.set_modified(later))
            .unwrap();
        served.reload_if_changed();
        let second = served.config();
        assert!(!Arc::ptr_eq(&first, &second));
        fs::write(&key, "").unwrap();
        served.reload();
        assert!(Arc::ptr_eq(&second, &served.config()));
    }
}
