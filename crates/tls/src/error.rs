//! Files of certificates that cannot be used.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Of certificate and key one was given.
    #[error("RK-0216: TLS needs both --tls-cert and --tls-key")]
    OneOfTwo,
    /// The file is not there, or is no PEM.
    #[error("RK-0217: cannot read the certificates in {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: pem::Error,
    },
    /// The file has other things.
    #[error("RK-0217: cannot read the certificates in {}: it holds no PEM certificate", .0.display())]
    Empty(PathBuf),
    /// The file of the key cannot be used.
    #[error("RK-0233: cannot read the private key in {}: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: pem::Error,
    },
    /// Key and certificate do not belong together.
    #[error("RK-0218: the key in {} is not that of {}: {why}", key.display(), certificate.display())]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
        /// What rustls says.
        why: rustls::Error,
    },
    /// A certificate that cannot be trusted.
    #[error("RK-0234: {} holds a certificate that cannot be trusted: {why}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What rustls says.
        why: String,
    },
    /// The system's certificates, or rustls itself.
    #[error("RK-0113: cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// The certificates of a PEM file, at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = read.map_err(|why| TlsError::Unreadable {
        path: path.to_owned(),
        why,
    })?;
    if chain.is_empty() {
        return Err(TlsError::Empty(path.to_owned()));
    }
    Ok(chain)
}
