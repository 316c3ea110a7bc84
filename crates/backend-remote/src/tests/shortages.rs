//! Devices that are lost, or have no room for a network.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_engine::{BackendError, BackendInfo, Evaluator, EvaluatorError, LoadedNetwork};

use super::*;

/// What happens to a device, and what it holds.
#[derive(Debug, Default)]
struct Fate {
    is_lost: AtomicBool,
    /// Networks with their evaluators, each of which takes memory.
    in_memory: AtomicUsize,
}

/// A processor that can be lost, and has room for some networks.
#[derive(Debug)]
struct FragileBackend {
    info: BackendInfo,
    fate: Arc<Fate>,
    room: usize,
    opened: Arc<Openings>,
}

/// How often a device was opened, and whether that is possible.
#[derive(Debug, Default)]
struct Openings {
    count: AtomicUsize,
    is_impossible: AtomicBool,
}

impl FragileBackend {
    fn new(room: usize) -> Self {
        Self {
            // Batches are computed as they are on a GPU.
            info: BackendInfo::new("gpu:0", Precision::F32).unwrap(),
            fate: Arc::default(),
            room,
            opened: Arc::default(),
        }
    }
}

impl Backend for FragileBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        if self.is_lost() {
            return Err(BackendError::Failed("it is lost".to_owned()));
        }
        if self.fate.in_memory.load(SeqCst) >= self.room {
            return Err(BackendError::OutOfMemory("it is full".to_owned()));
        }
        let network = cpu().load(weights)?;
        let memory = Memory::new(&self.fate);
        Ok(Arc::new(FragileNetwork { network, memory }))
    }

    fn is_lost(&self) -> bool {
        self.fate.is_lost.load(SeqCst)
    }

    fn reopen(&self) -> Result<Arc<dyn Backend>, BackendError> {
        if self.opened.is_impossible.load(SeqCst) {
            return Err(BackendError::Failed("it is gone".to_owned()));
        }
        self.opened.count.fetch_add(1, SeqCst);
        Ok(Arc::new(Self {
            info: self.info.clone(),
            fate: Arc::default(),
            room: self.room,
            opened: Arc::clone(&self.opened),
        }))
    }
}

#[derive(Debug)]
struct Memory(Arc<Fate>);

impl Memory {
    fn new(fate: &Arc<Fate>) -> Self {
        fate.in_memory.fetch_add(1, SeqCst);
        Self(Arc::clone(fate))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.in_memory.fetch_sub(1, SeqCst);
    }
}

#[derive(Debug)]
struct FragileNetwork {
    network: Arc<dyn LoadedNetwork>,
    memory: Memory,
}

impl LoadedNetwork for FragileNetwork {
    fn spec(&self) -> &NetworkSpec {
        self.network.spec()
    }

    fn precision(&self) -> Precision {
        self.network.precision()
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        let evaluator = Arc::clone(&self.network).evaluator();
        Box::new(FragileEvaluator {
            evaluator,
            memory: Memory::new(&self.memory.0),
        })
    }
}

struct FragileEvaluator {
    evaluator: Box<dyn Evaluator + Send>,
    memory: Memory,
}

impl Evaluator for FragileEvaluator {
    fn input(&self) -> InputEncoding {
        self.evaluator.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.evaluator.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        if self.memory.0.is_lost.load(SeqCst) {
            return Err(EvaluatorError("it is lost".to_owned()));
        }
        self.evaluator.evaluate(batch, answer)
    }
}

/// Evaluates six positions and checks the answer.
fn check(network: &Arc<dyn LoadedNetwork>, weights: &Weights) {
    let batch = batch(weights, 6, 1);
    let mut answer = Evaluations::default();
    let mut evaluator = Arc::clone(network).evaluator();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    assert!(answer == expected(weights, &batch));
}

#[test]
fn a_lost_device_is_opened_anew_and_computes_for_the_same_clients() {
    let backend = FragileBackend::new(usize::MAX);
    let (fate, opened) = (Arc::clone(&backend.fate), Arc::clone(&backend.opened));
    let server = serve(Arc::new(backend), ServerOptions::default());
    let [first, second] = [(), ()].map(|()| open(&address(&server), None, LONG).unwrap());
    let [one, two] = [1, 2].map(weights);
    let networks = [first.load(&one).unwrap(), second.load(&one).unwrap()];
    for network in &networks {
        check(network, &one);
    }
    fate.is_lost.store(true, SeqCst);
    thread::scope(|scope| {
        for network in &networks {
            scope.spawn(|| check(network, &one));
        }
    });
    check(&first.load(&two).unwrap(), &two);
    assert_eq!(opened.count.load(SeqCst), 1);
    assert_eq!(server.statistics().positions, 5 * 6, "all by the device");
}

#[test]
fn a_device_that_is_lost_while_a_network_is_loaded_loads_it_once_it_is_open_again() {
    let backend = FragileBackend::new(usize::MAX);
    let (fate, opened) = (Arc::clone(&backend.fate), Arc::clone(&backend.opened));
    let server = serve(Arc::new(backend), ServerOptions::default());
    let (remote, weights) = (connect(&server), weights(1));
    fate.is_lost.store(true, SeqCst);
    check(&remote.load(&weights).unwrap(), &weights);
    assert_eq!(opened.count.load(SeqCst), 1);
    assert_eq!(server.statistics().positions, 6);
}

#[test]
fn clients_of_a_device_that_cannot_be_opened_anew_compute_themselves_until_it_can() {
    let backend = FragileBackend::new(usize::MAX);
    let (fate, opened) = (Arc::clone(&backend.fate), Arc::clone(&backend.opened));
    let options = ServerOptions {
        reopen_pause: Duration::ZERO,
        ..ServerOptions::default()
    };
    let server = serve(Arc::new(backend), options);
    let (remote, weights) = (connect(&server), weights(1));
    let network = remote.load(&weights).unwrap();
    fate.is_lost.store(true, SeqCst);
    opened.is_impossible.store(true, SeqCst);
    check(&network, &weights);
    assert_eq!(server.statistics().positions, 0);
    opened.is_impossible.store(false, SeqCst);
    check(&connect(&server).load(&weights).unwrap(), &weights);
    assert_eq!(server.statistics().positions, 6);
}

#[test]
fn unused_networks_give_their_memory_to_one_for_which_there_is_none() {
    // Of a network and its evaluator.
    let server = serve(Arc::new(FragileBackend::new(2)), ServerOptions::default());
    let remote = connect(&server);
    drop(remote.load(&weights(1)).unwrap());
    let second = remote.load(&weights(2)).unwrap();
    let error = remote.load(&weights(3)).unwrap_err();
    assert!(matches!(error, BackendError::OutOfMemory(_)), "{error}");
    check(&second, &weights(2));
}

#[test]
fn a_client_whose_place_was_taken_while_the_server_was_gone_computes_itself() {
    let mut options = ServerOptions::default();
    options.limits.networks = 1;
    let server = serve(cpu(), options.clone());
    let own_address = server.address();
    let remote = open(&address(&server), None, LONG).unwrap();
    let [own, others] = [1, 2].map(weights);
    let network = remote.load(&own).unwrap();
    drop(server);
    let listener = TcpListener::bind(own_address).unwrap();
    let second = Server::start(listener, cpu(), NonZeroUsize::MIN, options).unwrap();
    let other = connect(&second);
    let other_network = other.load(&others).unwrap();
    check(&network, &own);
    assert_eq!(second.statistics().positions, 0, "it has no room");
    check(&other_network, &others);
}
