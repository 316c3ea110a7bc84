//! Servers that die, come back, or are not what they seem.

use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::{BackendError, BackendInfo, LoadedNetwork};

use super::clients::GatedBackend;
use super::*;
use crate::message::Reply;

#[test]
fn a_batch_that_was_under_way_is_computed_by_the_server_that_comes_back() {
    let backend = GatedBackend::new();
    let gate = Arc::clone(&backend.gate);
    let server = serve(Arc::new(backend), ServerOptions::default());
    let own_address = server.address();
    let remote = open(&address(&server), None, LONG).unwrap();
    let weights = weights(1);
    let network = remote.load(&weights).unwrap();
    let batch = batch(&weights, 6, 1);
    let evaluating = thread::spawn({
        let batch = batch.clone();
        move || {
            let mut answer = Evaluations::default();
            network.evaluator().evaluate(&batch, &mut answer).unwrap();
            answer
        }
    });
    eventually("the batch is under way", || gate.entered.load(Relaxed) == 1);
    drop(server);
    let listener = TcpListener::bind(own_address).unwrap();
    let options = ServerOptions::default();
    let second = Server::start(listener, cpu(), NonZeroUsize::MIN, options).unwrap();
    assert!(evaluating.join().unwrap() == expected(&weights, &batch));
    assert_eq!(
        second.statistics().positions,
        6,
        "it got the network and the batch"
    );
    gate.open();
}

#[test]
fn the_next_device_takes_the_place_of_a_server_that_is_gone() {
    let backend = GatedBackend::new();
    let gate = Arc::clone(&backend.gate);
    let server = serve(Arc::new(backend), ServerOptions::default());
    let remote = connect(&server);
    let weights = weights(1);
    let network = remote.load(&weights).unwrap();
    let batch = batch(&weights, 6, 1);
    thread::scope(|scope| {
        for _ in 0..3 {
            let (network, batch, weights) = (Arc::clone(&network), &batch, &weights);
            scope.spawn(move || {
                let mut answer = Evaluations::default();
                let mut evaluator = network.evaluator();
                for _ in 0..2 {
                    evaluator.evaluate(batch, &mut answer).unwrap();
                    assert!(answer == expected(weights, batch));
                }
            });
        }
        eventually("a batch is under way", || gate.entered.load(Relaxed) == 1);
        drop(server);
    });
    // So it is for networks that come later.
    let later = super::weights(2);
    let mut answer = Evaluations::default();
    let mut evaluator = remote.load(&later).unwrap().evaluator();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    assert!(answer == expected(&later, &batch));
    gate.open();
}

/// The processor under another name.
#[derive(Debug)]
struct Renamed(BackendInfo);

impl Backend for Renamed {
    fn info(&self) -> &BackendInfo {
        &self.0
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        cpu().load(weights)
    }
}

fn renamed() -> Arc<dyn Backend> {
    Arc::new(Renamed(BackendInfo::new("cuda:0", Precision::F16).unwrap()))
}

#[test]
fn audits_judge_by_the_class_of_the_servers_device() {
    let server = serve(renamed(), ServerOptions::default());
    let remote = connect(&server);
    let info = remote.info();
    assert_eq!(
        (info.precision, info.class),
        (Precision::F16, NumericClass::CudaF16)
    );
    assert!(!info.is_cpu());
    let device = RemoteDevice::new(address(&server));
    let exact = RemoteBackend::open(device, Precision::F32, cpu(), LONG);
    let error = exact.unwrap_err().to_string();
    assert!(error.contains("computes in f16 and not in f32"), "{error}");
}

#[test]
fn a_server_whose_numbers_are_of_another_class_is_not_gone_back_to() {
    let server = serve(cpu(), ServerOptions::default());
    let own_address = server.address();
    let remote = connect(&server);
    let weights = weights(1);
    let mut evaluator = remote.load(&weights).unwrap().evaluator();
    drop(server);
    let listener = TcpListener::bind(own_address).unwrap();
    let options = ServerOptions::default();
    let second = Server::start(listener, renamed(), NonZeroUsize::MIN, options).unwrap();
    let batch = batch(&weights, 3, 1);
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    assert!(answer == expected(&weights, &batch));
    assert_eq!(second.statistics().positions, 0);
}

#[test]
fn an_address_where_no_device_is_served_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_address = listener.local_addr().unwrap();
    let address = format!("remote://{own_address}").parse().unwrap();
    let page = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let page = b"\x1f\0\0\0\x10<html>This is a router's page</html>";
        stream.write_all(page).unwrap();
    });
    let error = open(&address, None, LONG).unwrap_err().to_string();
    assert!(error.contains("no device of Rookery"), "{error}");
    page.join().unwrap();
    let error = open(&address, None, Duration::ZERO)
        .unwrap_err()
        .to_string();
    assert!(error.contains("serve-device"), "{error}");
}

#[test]
fn answers_to_something_else_are_not_taken() {
    let number = f32::NAN.to_le_bytes();
    let mut not_finite = vec![1, 0];
    (0..3 + 20).for_each(|_| not_finite.extend(number));
    // Finite, but a search that adds them up never ends.
    let mut huge = vec![1, 0];
    let numbers = [1e38_f32, 0.0, -1e38].into_iter().chain([0.0; 20]);
    numbers.for_each(|number| huge.extend(number.to_le_bytes()));
    for (id, evaluations) in [
        (1, &[1, 0, 1, 2][..]),
        (1, &[2; 14]),
        (1, &[]),
        (9, &[0, 0]),
        (1, &not_finite),
        (1, &huge),
    ] {
        let answer = Reply::Evaluations { id, evaluations }.to_frame();
        let ready = Reply::Ready {
            network: 0,
            precision: "f32".to_owned(),
        };
        let (address, lying) = liar(vec![Vec::new(), ready.to_frame(), answer]);
        let remote = open(&address, None, Duration::ZERO).unwrap();
        let weights = weights(1);
        let game = rookery_common::chess::GameHistory::default();
        let mut batch = Batch::new(weights.spec().input, weights.spec().policy.encoding);
        batch.push_indices(&game, 0..20);
        let mut answer = Evaluations::default();
        let mut evaluator = remote.load(&weights).unwrap().evaluator();
        evaluator.evaluate(&batch, &mut answer).unwrap();
        assert!(answer == expected(&weights, &batch));
        drop((remote, evaluator));
        lying.join().unwrap();
    }
}
