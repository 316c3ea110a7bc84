//! TLS by rustls: handshakes, and certificates that are read again when their files change.

use std::io;

use rookery_tls::ServerCertificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::sighup::Sighup;

/// What is spoken over TLS.
pub const PROTOCOLS: &[&str] = &["h2", "http/1.1"];

/// Answers a client's handshake.
pub(super) async fn accept<S>(
    certificate: &ServerCertificate,
    stream: S,
) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    TlsAcceptor::from(certificate.config()).accept(stream).await
}

/// Reads the files again whenever they change, and when the process gets SIGHUP.
pub async fn keep_fresh(certificate: ServerCertificate, mut hangups: Sighup) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(ServerCertificate::CHECK_INTERVAL) => certificate.reload_if_changed(),
            () = hangups.next() => certificate.reload(),
        }
    }
}
