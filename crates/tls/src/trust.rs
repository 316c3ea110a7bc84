//! What a client trusts: the system's authorities, or the certificates of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

use crate::error::{TlsError, read_certificates};

/// How a client connects. With a file it trusts the authorities in it, and servers that have one of its certificates
/// themselves, under whatever name: so a certificate that a server has signed itself can be copied to its clients.
/// Without a file it trusts the authorities of the system, or of `SSL_CERT_FILE`.
///
/// # Errors
///
/// If the file cannot be used, or the system has no certificates.
pub fn client_config(trusted: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trusted {
        None => Arc::new(Verifier::new(Arc::clone(&provider))?),
        Some(path) => Arc::new(GivenCertificates::read(path, &provider)?),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Trusts the certificates of a file.
#[derive(Debug)]
struct GivenCertificates {
    given: Vec<CertificateDer<'static>>,
    /// Checks what they have signed as authorities.
    authorities: Arc<WebPkiServerVerifier>,
}

impl GivenCertificates {
    fn read(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let untrusted = |why: String| TlsError::Untrusted {
            path: path.to_owned(),
            why,
        };
        let given = read_certificates(path)?;
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            let added = roots.add(certificate.clone());
            added.map_err(|error| untrusted(error.to_string()))?;
        }
        let provider = Arc::clone(provider);
        let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let authorities = built.map_err(|error| untrusted(error.to_string()))?;
        Ok(Self { given, authorities })
    }
}

impl ServerCertVerifier for GivenCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // That the server has its key is checked by the signature of the handshake, below.
        if self.given.iter().any(|one| one == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities
            .verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::sign::{CertifiedKey, SingleCertAndKey};
    use rustls::{ClientConnection, ServerConfig, ServerConnection};

    use super::*;

    const NAME: &str = "gpu.lan";

    /// A certificate that has signed itself, as `openssl req -x509` makes it: an authority, too.
    fn self_signed(name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (authority(name).self_signed(&key).unwrap(), key)
    }

    fn authority(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    fn file(folder: &Path, certificate: &rcgen::Certificate) -> PathBuf {
        let path = folder.join("trusted.pem");
        std::fs::write(&path, certificate.pem()).unwrap();
        path
    }

    /// A handshake in memory with a server that has this chain and signs with this key.
    fn handshake(trusted: &Path, chain: &rcgen::Certificate, key: &KeyPair) -> Result<(), Error> {
        let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let secret = aws_lc_rs::sign::any_supported_type(&secret).unwrap();
        // The key is not compared with the certificate: a thief of a certificate has none.
        let certified = CertifiedKey::new(vec![chain.der().clone()], secret);
        let server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        let name = ServerName::try_from(NAME).unwrap();
        let mut client = ClientConnection::new(client_config(Some(trusted)).unwrap(), name)?;
        while client.is_handshaking() {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            let mut rest = &wire[..];
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                server.process_new_packets()?;
            }
            wire.clear();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            let mut rest = &wire[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest).unwrap();
                client.process_new_packets()?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_servers_own_certificate_is_trusted_and_no_other_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (own, key) = self_signed(NAME);
        let trusted = file(folder.path(), &own);
        handshake(&trusted, &own, &key).unwrap();
        let (other, other_key) = self_signed(NAME);
        let error = handshake(&trusted, &other, &other_key).unwrap_err();
        assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
    }

    #[test]
    fn who_has_the_certificate_without_its_key_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let (own, _) = self_signed(NAME);
        let stolen = handshake(
            &file(folder.path(), &own),
            &own,
            &KeyPair::generate().unwrap(),
        );
        let error = stolen.unwrap_err();
        let expected = rustls::CertificateError::BadSignature;
        assert_eq!(error, Error::InvalidCertificate(expected));
    }

    #[test]
    fn what_an_authority_has_signed_must_have_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let (root, root_key) = self_signed("authority");
        let issuer = Issuer::new(authority("authority"), root_key);
        let trusted = file(folder.path(), &root);
        for (name, is_right) in [(NAME, true), ("other.lan", false)] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &issuer).unwrap();
            let done = handshake(&trusted, &certificate, &key);
            assert_eq!(done.is_ok(), is_right, "{name}: {done:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        for text in ["", &KeyPair::generate().unwrap().serialize_pem()] {
            std::fs::write(&path, text).unwrap();
            let error = client_config(Some(&path)).unwrap_err().to_string();
            assert!(error.contains("key.pem: it holds no PEM"), "{error}");
        }
        let error = client_config(Some(&folder.path().join("none"))).unwrap_err();
        assert!(error.to_string().contains("RK-0217"), "{error}");
    }
}
