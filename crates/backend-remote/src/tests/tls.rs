//! Connections by TLS: the same answers, only from who is trusted, and nobody is kept out by who does not shake hands.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rookery_engine::{BackendError, ParallelEvaluator};
use rookery_tls::ServerCertificate;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tempfile::TempDir;

use super::*;
use crate::MAX_POSITIONS;
use crate::stream;

/// A server with a certificate of its own, in a folder.
struct Encrypted {
    server: Server,
    certificate: ServerCertificate,
    folder: TempDir,
}

impl Encrypted {
    fn start(mut options: ServerOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_own_certificate(folder.path());
        let [chain, key] = files(folder.path());
        let certificate = ServerCertificate::open(&chain, &key, &[]).unwrap();
        options.certificate = Some(certificate.clone());
        Self {
            server: serve(cpu(), options),
            certificate,
            folder,
        }
    }

    fn device(&self) -> RemoteDevice {
        trusting(&self.server, &files(self.folder.path())[0])
    }

    fn connect(&self) -> RemoteBackend {
        open_device(self.device()).unwrap()
    }

    fn check_honest(&self) {
        check_evaluations(&self.connect(), 5);
    }
}

fn files(folder: &Path) -> [PathBuf; 2] {
    ["chain.pem", "key.pem"].map(|name| folder.join(name))
}

/// An authority by this name.
fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// A certificate as `openssl req -x509` makes it, which names neither this machine nor its address.
fn write_own_certificate(folder: &Path) {
    let key = KeyPair::generate().unwrap();
    let certificate = authority("gpu.lan").self_signed(&key).unwrap();
    let [chain_path, key_path] = files(folder);
    std::fs::write(chain_path, certificate.pem()).unwrap();
    std::fs::write(key_path, key.serialize_pem()).unwrap();
}

fn trusting(server: &Server, certificates: &Path) -> RemoteDevice {
    let address = format!("remotes://{}", server.address()).parse().unwrap();
    RemoteDevice {
        trusted_certificates: Some(certificates.to_owned()),
        ..RemoteDevice::new(address)
    }
}

fn open_device(device: RemoteDevice) -> Result<RemoteBackend, BackendError> {
    RemoteBackend::open(device, Precision::Auto, cpu(), LONG)
}

fn check_evaluations(remote: &RemoteBackend, positions: usize) {
    let weights = weights(1);
    let batch = batch(&weights, positions, positions as u64);
    let mut answer = Evaluations::default();
    let mut evaluator = remote.load(&weights).unwrap().evaluator();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    assert!(
        answer == expected(&weights, &batch),
        "{positions} positions"
    );
}

#[test]
fn positions_are_evaluated_as_on_the_device_itself() {
    let encrypted = Encrypted::start(ServerOptions::default());
    let remote = encrypted.connect();
    assert!(remote.info().device.starts_with("remotes://"));
    for positions in [0, 1, 70, MAX_POSITIONS + 5] {
        check_evaluations(&remote, positions);
    }
    let done = encrypted.server.statistics().positions;
    assert_eq!(done, 71 + MAX_POSITIONS as u64 + 5, "it was the server");
}

#[test]
fn large_batches_go_both_ways_at_once() {
    let encrypted = Encrypted::start(ServerOptions::default());
    let weights = weights(1);
    thread::scope(|scope| {
        for client in 0..3 {
            let (remote, weights) = (encrypted.connect(), &weights);
            scope.spawn(move || {
                let network = remote.load(weights).unwrap();
                let threads = NonZeroUsize::new(4).unwrap();
                let mut evaluator = ParallelEvaluator::new(&network, threads).unwrap();
                let mut answer = Evaluations::default();
                for round in 0..3 {
                    let batch = batch(weights, 3000, client * 10 + round);
                    evaluator.evaluate(&batch, &mut answer).unwrap();
                    assert!(answer == expected(weights, &batch), "client {client}");
                }
            });
        }
    });
    let done = encrypted.server.statistics().positions;
    assert_eq!(done, 27_000, "it was the server");
}

#[test]
fn a_certificate_of_an_authority_must_have_the_servers_name() {
    let folder = tempfile::tempdir().unwrap();
    let root_key = KeyPair::generate().unwrap();
    let root = authority("authority").self_signed(&root_key).unwrap();
    let issuer = Issuer::new(authority("authority"), root_key);
    let trusted = folder.path().join("authority.pem");
    std::fs::write(&trusted, root.pem()).unwrap();
    for (name, is_right) in [("127.0.0.1", true), ("other.lan", false)] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let signed = params.signed_by(&key, &issuer).unwrap();
        let [chain_path, key_path] = files(folder.path());
        std::fs::write(&chain_path, signed.pem()).unwrap();
        std::fs::write(&key_path, key.serialize_pem()).unwrap();
        let certificate = ServerCertificate::open(&chain_path, &key_path, &[]).unwrap();
        let options = ServerOptions {
            certificate: Some(certificate),
            ..ServerOptions::default()
        };
        let server = serve(cpu(), options);
        let opened = open_device(trusting(&server, &trusted));
        if is_right {
            check_evaluations(&opened.unwrap(), 3);
        } else {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("RK-0314"), "{error}");
            assert!(error.contains("other.lan"), "{error}");
            assert!(error.contains("--device-ca"), "{error}");
        }
    }
}

#[test]
fn a_server_with_another_certificate_is_not_trusted() {
    let encrypted = Encrypted::start(ServerOptions::default());
    let other = tempfile::tempdir().unwrap();
    write_own_certificate(other.path());
    let device = trusting(&encrypted.server, &files(other.path())[0]);
    let error = open_device(device).unwrap_err().to_string();
    assert!(error.contains("is not trusted"), "{error}");
    assert!(error.contains("--device-ca"), "{error}");
    encrypted.check_honest();
}

#[test]
fn a_renewed_certificate_is_used_without_a_restart() {
    let encrypted = Encrypted::start(ServerOptions::default());
    let before = encrypted.connect();
    let old = tempfile::tempdir().unwrap();
    let copy = old.path().join("old.pem");
    std::fs::copy(&files(encrypted.folder.path())[0], &copy).unwrap();
    write_own_certificate(encrypted.folder.path());
    encrypted.certificate.reload();
    encrypted.check_honest();
    open_device(trusting(&encrypted.server, &copy)).unwrap_err();
    // Connections go on that were there before.
    check_evaluations(&before, 4);
}

#[test]
fn who_does_not_shake_hands_keeps_nobody_out() {
    let mut options = ServerOptions::default();
    options.limits.greetings = 2;
    options.limits.greeting_time = LONG;
    let encrypted = Encrypted::start(options);
    let address = encrypted.server.address();
    let mut silent = TcpStream::connect(address).unwrap();
    let mut stalled = TcpStream::connect(address).unwrap();
    stalled.write_all(&CLIENT_HELLO).unwrap();
    encrypted.check_honest();
    assert!(is_closed(&mut silent), "the oldest makes room");
    encrypted.check_honest();
}

#[test]
fn a_handshake_has_a_deadline_however_slowly_it_comes() {
    let mut options = ServerOptions::default();
    options.limits.greeting_time = Duration::from_millis(300);
    let encrypted = Encrypted::start(options);
    let mut slow = TcpStream::connect(encrypted.server.address()).unwrap();
    slow.set_nodelay(true).unwrap();
    slow.write_all(&CLIENT_HELLO).unwrap();
    let trickling = thread::spawn({
        let mut slow = slow.try_clone().unwrap();
        move || {
            while slow.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    assert!(is_closed(&mut slow));
    trickling.join().unwrap();
    encrypted.check_honest();
}

/// The beginning of a handshake whose first message has 16,000 bytes.
const CLIENT_HELLO: [u8; 9] = [0x16, 3, 1, 0x3e, 0x84, 1, 0, 0x3e, 0x80];

/// Waits until the server closes the connection, without a word.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut said = Vec::new();
    stream.set_read_timeout(Some(LONG)).unwrap();
    match stream.read_to_end(&mut said) {
        Ok(_) => said.is_empty(),
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn who_speaks_no_tls_to_a_server_of_tls_learns_what_to_write() {
    let mut options = ServerOptions::default();
    options.limits.greeting_time = Duration::from_millis(200);
    let encrypted = Encrypted::start(options);
    let error = open(&address(&encrypted.server), None, LONG).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("it speaks TLS"), "{error}");
    assert!(error.contains("remotes://HOST:PORT"), "{error}");
}

#[test]
fn who_speaks_tls_to_a_server_in_plain_learns_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    write_own_certificate(folder.path());
    let server = serve(cpu(), ServerOptions::default());
    let error = open_device(trusting(&server, &files(folder.path())[0])).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("speaks no TLS"), "{error}");
    assert!(error.contains("write remote://"), "{error}");
    check_evaluations(&connect(&server), 2);
}

#[test]
fn what_is_no_tls_after_the_handshake_ends_the_connection_alone() {
    let encrypted = Encrypted::start(ServerOptions::default());
    let [chain, _] = files(encrypted.folder.path());
    let config = rookery_tls::client_config(Some(&chain)).unwrap();
    let name = ServerName::try_from("gpu.lan").unwrap();
    let session = ClientConnection::new(config, name).unwrap();
    let socket = Arc::new(TcpStream::connect(encrypted.server.address()).unwrap());
    let (mut reading, _) = stream::encrypted(&socket, session.into(), LONG, LONG).unwrap();
    (&*socket).write_all(&[7; 5000]).unwrap();
    let deadline = Instant::now() + LONG;
    let mut bytes = [0; 300];
    // First the challenge, then the end.
    while let Ok(1..) = reading.read(&mut bytes, Some(deadline)) {}
    assert!(Instant::now() < deadline, "it is open");
    encrypted.check_honest();
}
