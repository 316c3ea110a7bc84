//! Server and clients on the loopback interface, with the processor as the device.

mod clients;
mod hostile;
mod outages;
mod raw;
mod shortages;
mod tls;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rookery_backend_cpu::CpuBackend;
use rookery_common::network::NetworkSpec;
use rookery_engine::dummy::random_batch;
use rookery_engine::{Backend, Batch, Evaluations, Evaluator as _, Precision};
use rookery_model::Weights;

use crate::frame::{FrameReader, MAX_REQUEST};
use crate::message::{Offer, Reply};
use crate::stream;
use crate::{
    DeviceToken, RemoteAddress, RemoteBackend, RemoteDevice, Server, ServerOptions, VERSION,
};

/// A test gives up after this time.
pub(crate) const LONG: Duration = Duration::from_secs(120);

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::new(Precision::F32).unwrap())
}

fn weights(seed: u64) -> Weights {
    Weights::random(NetworkSpec::resnet(1, 8), seed).unwrap()
}

fn batch(weights: &Weights, positions: usize, seed: u64) -> Batch {
    let spec = weights.spec();
    random_batch(spec.input, spec.policy.encoding, positions, seed)
}

/// What the processor of this machine makes of a batch.
fn expected(weights: &Weights, batch: &Batch) -> Evaluations {
    let mut evaluations = Evaluations::default();
    let network = cpu().load(weights).unwrap();
    network
        .evaluator()
        .evaluate(batch, &mut evaluations)
        .unwrap();
    evaluations
}

fn serve(backend: Arc<dyn Backend>, options: ServerOptions) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::start(listener, backend, NonZeroUsize::MIN, options).unwrap()
}

fn address(server: &Server) -> RemoteAddress {
    format!("remote://{}", server.address()).parse().unwrap()
}

/// A client that takes the processor as soon as the server does not answer.
fn connect(server: &Server) -> RemoteBackend {
    open(&address(server), None, Duration::ZERO).unwrap()
}

fn open(
    address: &RemoteAddress,
    token: Option<&str>,
    patience: Duration,
) -> Result<RemoteBackend, rookery_engine::BackendError> {
    let token = token.map(|token| DeviceToken::parse(token).unwrap());
    let device = RemoteDevice {
        token,
        ..RemoteDevice::new(address.clone())
    };
    RemoteBackend::open(device, Precision::Auto, cpu(), patience)
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A server for one client. It greets as one should, writes the first of these bytes with its greeting, and each of the
/// others after one more frame of the client.
pub(crate) fn liar(answers: Vec<Vec<u8>>) -> (RemoteAddress, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("remote://{}", listener.local_addr().unwrap());
    let lie = move |mut stream: TcpStream| -> std::io::Result<()> {
        let reading = Arc::new(stream.try_clone()?);
        let mut reader = FrameReader::new(stream::plain(&reading, LONG).0, LONG);
        let challenge = Reply::Challenge {
            version: VERSION,
            wants_token: false,
            nonce: [0; 32],
        };
        let mut welcome = Reply::Welcome(Offer {
            device: "cpu".to_owned(),
            precision: "f32".to_owned(),
            class: "cpu-f32".to_owned(),
        })
        .to_frame();
        stream.write_all(&challenge.to_frame())?;
        for answer in answers {
            if reader.next(Some(LONG), MAX_REQUEST).is_err() {
                return Ok(());
            }
            welcome.extend(answer);
            stream.write_all(&std::mem::take(&mut welcome))?;
        }
        // Until the client has had enough.
        while reader.next(Some(LONG), MAX_REQUEST).is_ok() {}
        Ok(())
    };
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        lie(stream).unwrap();
    });
    (address.parse().unwrap(), thread)
}
