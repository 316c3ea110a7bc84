//! TLS by rustls, for the coordinator and for devices that are offered to other machines: the certificate of a server,
//! and what a client trusts.
//!
//! Modules in dependency order: `error`, `certificate`, `trust`.

mod certificate;
mod error;
mod trust;

pub use certificate::ServerCertificate;
pub use error::TlsError;
pub use trust::client_config;
