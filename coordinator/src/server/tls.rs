//! TLS by rustls: certificates in, and in again when their files change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use super::sighup::Sighup;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(20);

/// A certificate that may be renewed while connections are served; cheap to clone.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads a certificate chain and its key, both PEM.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the two do not belong together.
    pub fn open(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let config = RwLock::new(Arc::new(read(certificate, key)?));
        Ok(Self(Arc::new(Shared {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config,
        })))
    }

    /// Answers a client's handshake.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self
            .0
            .config
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Reads the files again. If that fails, the certificate in use stays.
    pub fn reload(&self) {
        match read(&self.0.certificate, &self.0.key) {
            Ok(config) => {
                let mut current = self
                    .0
                    .config
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(config);
                tracing::info!("The TLS certificate was read again.");
            }
            Err(error) => tracing::error!(
                error = format!("{error:#}"),
                "The TLS certificate could not be read again; the one in use stays."
            ),
        }
    }

    /// Reads the files again whenever they change, and when the process gets SIGHUP.
    pub async fn keep_fresh(self, mut hangups: Sighup) {
        let mut seen = self.changed_at();
        loop {
            let told = tokio::select! {
                () = tokio::time::sleep(LOOK) => false,
                () = hangups.next() => true,
            };
            let now = self.changed_at();
            if told || now != seen {
                seen = now;
                self.reload();
            }
        }
    }

    fn changed_at(&self) -> [Option<SystemTime>; 2] {
        [&self.0.certificate, &self.0.key]
            .map(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
    }
}

fn read(certificate: &Path, key: &Path) -> anyhow::Result<ServerConfig> {
    let shown = certificate.display();
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("RK-0217: cannot read the certificates in {shown}"))?;
    anyhow::ensure!(!chain.is_empty(), "{shown} holds no PEM certificate");
    let secret = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot read the private key in {}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS 1.2 and 1.3 are not there")?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .with_context(|| {
            format!(
                "RK-0218: the key in {} is not that of {shown}",
                key.display()
            )
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
