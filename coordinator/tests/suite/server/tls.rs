//! TLS: one that a client can check, renewed without a restart.

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rookery_coordinator::limits::Limits;
use rookery_coordinator::server::tls::PROTOCOLS;
use rookery_tls::{ServerCertificate, TlsError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{Site, get, rest};

/// Writes a new certificate with its key.
fn certify(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn open(folder: &Path) -> Result<ServerCertificate, TlsError> {
    ServerCertificate::open(&folder.join("cert.pem"), &folder.join("key.pem"), PROTOCOLS)
}

async fn connect(
    address: std::net::SocketAddr,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// The answer to a request by TLS.
async fn ask(site: &Site, path: &str, trusted: &CertificateDer<'static>) -> String {
    let mut stream = connect(site.address, trusted).await.unwrap();
    stream.write_all(get(path, "").as_bytes()).await.unwrap();
    rest(&mut stream).await
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = certify(folder.path());
    let tls = open(folder.path()).unwrap();
    let site = Site::start_with(Limits::default(), Some(tls.clone())).await;
    let address = site.address;
    let answer = ask(&site, "/api/v1/runs", &first).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("strict-transport-security"), "{answer}");
    let second = certify(folder.path());
    assert!(connect(address, &second).await.is_err());
    tls.reload();
    assert!(connect(address, &second).await.is_ok());
    assert!(connect(address, &first).await.is_err());
    // A file that is being written leaves the certificate in use.
    std::fs::write(folder.path().join("key.pem"), "").unwrap();
    tls.reload();
    assert!(connect(address, &second).await.is_ok());
    // Who does not speak TLS gets nothing.
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain
        .write_all(get("/api/v1/runs", "").as_bytes())
        .await
        .unwrap();
    assert!(!rest(&mut plain).await.contains("HTTP/1.1 200"));
}

#[tokio::test]
async fn pages_know_that_the_coordinator_speaks_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certify(folder.path());
    let tls = open(folder.path()).unwrap();
    let site = Site::start_with(Limits::default(), Some(tls)).await;
    let page = ask(&site, "/runs/main/join", &certificate).await;
    let command = page.replace("<span>", "").replace("</span>", "");
    assert!(command.contains("--server https://x --run main"), "{page}");
}

#[test]
fn files_that_do_not_serve_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let name = |result: Result<ServerCertificate, TlsError>| result.err().unwrap().to_string();
    assert!(name(open(folder.path())).contains("cert.pem"));
    certify(folder.path());
    let other = tempfile::tempdir().unwrap();
    certify(other.path());
    std::fs::copy(other.path().join("key.pem"), folder.path().join("key.pem")).unwrap();
    assert!(name(open(folder.path())).contains("key.pem"));
}
