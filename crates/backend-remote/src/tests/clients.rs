//! Honest clients get the right answers.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Condvar, Mutex};

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::{
    BackendError, BackendInfo, Evaluator, EvaluatorError, LoadedNetwork, ParallelEvaluator,
};

use super::*;
use crate::MAX_POSITIONS;

#[test]
fn a_remote_processor_computes_what_the_own_one_does() {
    let server = serve(cpu(), ServerOptions::default());
    let remote = connect(&server);
    let info = remote.info();
    assert_eq!(info.device, format!("remote://{}", server.address()));
    assert_eq!(
        (info.precision, info.class),
        (Precision::F32, NumericClass::CpuF32)
    );
    let weights = weights(1);
    let network = remote.load(&weights).unwrap();
    assert_eq!(network.spec(), weights.spec());
    assert_eq!(network.precision(), Precision::F32);
    let mut evaluator = Arc::clone(&network).evaluator();
    let mut answer = Evaluations::default();
    // The last is more than a frame holds.
    for positions in [0, 1, 70, MAX_POSITIONS + 5] {
        let batch = batch(&weights, positions, 3);
        evaluator.evaluate(&batch, &mut answer).unwrap();
        assert!(
            answer == expected(&weights, &batch),
            "{positions} positions"
        );
    }
    assert!(server.statistics().positions >= 71 + MAX_POSITIONS as u64);
}

#[test]
fn networks_of_every_encoding_are_served() {
    let server = serve(cpu(), ServerOptions::default());
    let remote = connect(&server);
    for input in InputEncoding::ALL {
        let mut spec = NetworkSpec::resnet(1, 8);
        spec.input = input;
        let weights = Weights::random(spec, 2).unwrap();
        let batch = batch(&weights, 9, 4);
        let mut answer = Evaluations::default();
        let mut evaluator = remote.load(&weights).unwrap().evaluator();
        evaluator.evaluate(&batch, &mut answer).unwrap();
        assert!(answer == expected(&weights, &batch), "{}", input.name());
    }
}

#[test]
fn one_to_sixteen_clients_get_each_their_own_answers() {
    for clients in [1, 4, 16] {
        let server = serve(cpu(), ServerOptions::default());
        // Two networks, so that the batches of one are never answered by the other.
        let networks = [weights(1), weights(2)];
        let barrier = Barrier::new(clients);
        std::thread::scope(|scope| {
            for client in 0..clients {
                let (server, networks, barrier) = (&server, &networks, &barrier);
                scope.spawn(move || {
                    let remote = connect(server);
                    let weights = &networks[client % 2];
                    let mut evaluator = remote.load(weights).unwrap().evaluator();
                    let mut answer = Evaluations::default();
                    barrier.wait();
                    for round in 0..6 {
                        let positions = 1 + (client * 7 + round * 3) % 40;
                        let batch = batch(weights, positions, (client * 100 + round) as u64);
                        evaluator.evaluate(&batch, &mut answer).unwrap();
                        assert!(answer == expected(weights, &batch), "client {client}");
                    }
                });
            }
        });
        eventually("all have left", || server.statistics().clients == 0);
    }
}

#[test]
fn the_threads_of_a_client_share_its_connection() {
    let server = serve(cpu(), ServerOptions::default());
    let remote = connect(&server);
    let weights = weights(1);
    let network = remote.load(&weights).unwrap();
    let threads = NonZeroUsize::new(4).unwrap();
    let mut evaluator = ParallelEvaluator::new(&network, threads).unwrap();
    let batch = batch(&weights, 50, 8);
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    assert!(answer == expected(&weights, &batch));
    assert_eq!(server.statistics().clients, 1);
}

#[test]
fn a_network_that_is_given_back_stays_for_its_other_users() {
    let server = serve(cpu(), ServerOptions::default());
    let (remote, weights) = (connect(&server), weights(1));
    let (first, again) = (
        remote.load(&weights).unwrap(),
        remote.load(&weights).unwrap(),
    );
    let batch = batch(&weights, 3, 1);
    let mut answer = Evaluations::default();
    drop(first);
    again.evaluator().evaluate(&batch, &mut answer).unwrap();
    assert!(answer == expected(&weights, &batch));
}

#[test]
fn networks_that_nobody_uses_make_room_and_used_ones_stay() {
    let mut options = ServerOptions::default();
    options.limits.networks = 2;
    let server = serve(cpu(), options);
    let remote = connect(&server);
    let first = remote.load(&weights(1)).unwrap();
    drop(remote.load(&weights(2)).unwrap());
    let third = remote.load(&weights(3)).unwrap();
    let error = remote.load(&weights(4)).unwrap_err();
    assert!(matches!(error, BackendError::OutOfMemory(_)), "{error}");
    assert!(error.to_string().contains("2 networks already"), "{error}");
    for (network, seed) in [(first, 1), (third, 3)] {
        let (weights, mut answer) = (weights(seed), Evaluations::default());
        let batch = batch(&weights, 3, 1);
        network.evaluator().evaluate(&batch, &mut answer).unwrap();
        assert!(answer == expected(&weights, &batch));
    }
}

/// A processor whose every batch waits until the gate is open, and that refuses batches with a marked position.
#[derive(Debug)]
pub(super) struct GatedBackend {
    info: BackendInfo,
    pub(super) gate: Arc<Gate>,
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    /// Batches that have come to the device.
    pub(super) entered: AtomicUsize,
    /// Positions of each batch that was computed.
    pub(super) computed: Mutex<Vec<usize>>,
}

impl Gate {
    pub(super) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

#[derive(Debug)]
struct GatedNetwork(Arc<dyn LoadedNetwork>, Arc<Gate>);

struct GatedEvaluator(Box<dyn Evaluator + Send>, Arc<Gate>);

impl GatedBackend {
    pub(super) fn new() -> Self {
        Self {
            info: cpu().info().clone(),
            gate: Arc::default(),
        }
    }
}

impl Backend for GatedBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        let network = cpu().load(weights)?;
        Ok(Arc::new(GatedNetwork(network, Arc::clone(&self.gate))))
    }
}

impl LoadedNetwork for GatedNetwork {
    fn spec(&self) -> &NetworkSpec {
        self.0.spec()
    }

    fn precision(&self) -> Precision {
        self.0.precision()
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        let evaluator = Arc::clone(&self.0).evaluator();
        Box::new(GatedEvaluator(evaluator, Arc::clone(&self.1)))
    }
}

impl Evaluator for GatedEvaluator {
    fn input(&self) -> InputEncoding {
        self.0.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.0.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        self.1.entered.fetch_add(1, Relaxed);
        let is_open = self.1.is_open.lock().unwrap();
        drop(
            self.1
                .opened
                .wait_while(is_open, |is_open| !*is_open)
                .unwrap(),
        );
        if batch.scalars().contains(&MARK) {
            return Err(EvaluatorError("a marked position".to_owned()));
        }
        self.1.computed.lock().unwrap().push(batch.len());
        self.0.evaluate(batch, answer)
    }
}

/// A scalar that marks a position.
const MARK: f32 = 77_777.0;

#[test]
fn batches_of_several_clients_become_one_on_the_device() {
    let backend = GatedBackend::new();
    let gate = Arc::clone(&backend.gate);
    let server = serve(Arc::new(backend), ServerOptions::default());
    let weights = weights(1);
    std::thread::scope(|scope| {
        for client in 0..5 {
            let (server, weights) = (&server, &weights);
            let remote = connect(server);
            let network = remote.load(weights).unwrap();
            scope.spawn(move || {
                let batch = batch(weights, 4, client);
                let mut answer = Evaluations::default();
                network.evaluator().evaluate(&batch, &mut answer).unwrap();
                assert!(answer == expected(weights, &batch), "client {client}");
                drop(remote);
            });
            if client == 0 {
                // It is on the device while the others come.
                eventually("the device is busy", || gate.entered.load(Relaxed) == 1);
            }
        }
        eventually("four batches wait", || server.statistics().waiting == 4);
        gate.open();
    });
    assert_eq!(*gate.computed.lock().unwrap(), [4, 16]);
    assert_eq!(server.statistics().batches, 2);
}

#[test]
fn a_batch_that_cannot_be_computed_fails_alone() {
    let backend = GatedBackend::new();
    let gate = Arc::clone(&backend.gate);
    let server = serve(Arc::new(backend), ServerOptions::default());
    let weights = weights(1);
    std::thread::scope(|scope| {
        for client in 0..3 {
            let (server, weights) = (&server, &weights);
            let network = connect(server).load(weights).unwrap();
            let mut own = batch(weights, 2, client);
            let is_marked = client == 1;
            if is_marked {
                let mut scalars = own.scalars_of(0).to_vec();
                scalars[0] = MARK;
                let (binary, moves) = (own.binary_of(0).to_vec(), own.moves_of(0).to_vec());
                own.push_encoded(&binary, &scalars, &moves);
            }
            scope.spawn(move || {
                let mut answer = Evaluations::default();
                let done = network.evaluator().evaluate(&own, &mut answer);
                match done {
                    Err(error) => {
                        assert!(is_marked, "{error}");
                        assert!(error.to_string().contains("a marked position"), "{error}");
                    }
                    Ok(()) => assert!(!is_marked && answer == expected(weights, &own)),
                }
            });
        }
        gate.open();
    });
}
