//! What can go wrong on a connection.

use std::io;
use std::time::Duration;

use rustls::CertificateError;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// The other side has closed it between two frames.
    #[error("the connection was closed")]
    Closed,
    /// Nothing has come although something had to.
    #[error("nothing was received for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The other side is there, and does not do what it was asked for.
    #[error("no batch or network was answered for {} s: its device hangs", .0.as_secs_f32())]
    Unanswered(Duration),
    /// A frame was begun and not finished.
    #[error("a frame was not finished within {} s", .0.as_secs_f32())]
    Stalled(Duration),
    /// TLS was begun and not finished.
    #[error("the TLS handshake was not finished within {} s", .0.as_secs_f32())]
    Handshake(Duration),
    /// TLS does not allow it: no TLS is spoken, or a certificate is not trusted.
    #[error("{}", tls_failure(.0))]
    Tls(#[from] rustls::Error),
    /// What the other side's certificate is compared with cannot be used.
    #[error(transparent)]
    Trust(#[from] rookery_tls::TlsError),
    /// Bytes that the protocol does not allow.
    #[error("the protocol was broken: {0}")]
    Protocol(String),
    /// The other side gave this reason to end it.
    #[error("{0}")]
    Refused(String),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ConnectionError {
    /// Broken rules.
    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol(what.into())
    }
}

/// What rustls says, in words of users.
pub(crate) fn tls_failure(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => "the other side speaks no TLS".to_owned(),
        rustls::Error::InvalidCertificate(CertificateError::Other(why)) => {
            format!("the certificate is not trusted ({why})")
        }
        rustls::Error::InvalidCertificate(why) => format!("the certificate is not trusted ({why})"),
        other => format!("TLS failed: {other}"),
    }
}
