//! Devices that fail while games are played: the games go on on the next one, and none is lost or other than it would be.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rookery_backend_cpu::CpuBackend;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::NetworkSpec;
use rookery_engine::{
    Backend, BackendError, BackendInfo, Batch, Evaluations, Evaluator, EvaluatorError,
    LoadedNetwork,
};

use super::*;

/// How a device of these tests fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// It is lost with everything on it.
    Loss,
    /// It gives no finite numbers from then on.
    Infinite,
    /// It loads nothing.
    Load,
    /// It has no memory at first.
    Memory,
}

/// A device that computes as the processor does until it has evaluated some batches.
#[derive(Debug)]
struct FailingBackend {
    info: BackendInfo,
    failure: Failure,
    /// Batches of each life: of the first, and of those after it was opened anew.
    lives: Vec<usize>,
    fault: Arc<Fault>,
    cpu: CpuBackend,
}

#[derive(Debug)]
struct Fault {
    has_memory: AtomicBool,
    batches_left: AtomicUsize,
    is_lost: AtomicBool,
}

impl FailingBackend {
    fn new(device: &str, precision: Precision, failure: Failure, lives: &[usize]) -> Arc<Self> {
        Arc::new(Self {
            info: BackendInfo::new(device, precision).unwrap(),
            failure,
            lives: lives[1..].to_vec(),
            fault: Arc::new(Fault {
                has_memory: AtomicBool::new(failure != Failure::Memory),
                batches_left: AtomicUsize::new(lives[0]),
                is_lost: AtomicBool::new(false),
            }),
            cpu: CpuBackend::new(Precision::F32).unwrap(),
        })
    }
}

impl Backend for FailingBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        if self.failure == Failure::Load || self.is_lost() {
            return Err(BackendError::Failed("the card computes wrongly".to_owned()));
        }
        if !self.fault.has_memory.swap(true, Ordering::SeqCst) {
            return Err(BackendError::OutOfMemory("the card is full".to_owned()));
        }
        Ok(Arc::new(FailingNetwork {
            network: self.cpu.load(weights)?,
            failure: self.failure,
            fault: Arc::clone(&self.fault),
        }))
    }

    fn is_lost(&self) -> bool {
        self.fault.is_lost.load(Ordering::SeqCst)
    }

    fn reopen(&self) -> Result<Arc<dyn Backend>, BackendError> {
        let gone = || BackendError::Failed("the card is gone".to_owned());
        self.lives.first().ok_or_else(gone)?;
        let again = Self::new(
            &self.info.device,
            self.info.precision,
            self.failure,
            &self.lives,
        );
        Ok(again)
    }
}

#[derive(Debug)]
struct FailingNetwork {
    network: Arc<dyn LoadedNetwork>,
    failure: Failure,
    fault: Arc<Fault>,
}

impl LoadedNetwork for FailingNetwork {
    fn spec(&self) -> &NetworkSpec {
        self.network.spec()
    }

    fn precision(&self) -> Precision {
        self.network.precision()
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        Box::new(FailingEvaluator {
            evaluator: Arc::clone(&self.network).evaluator(),
            failure: self.failure,
            fault: Arc::clone(&self.fault),
        })
    }
}

struct FailingEvaluator {
    evaluator: Box<dyn Evaluator + Send>,
    failure: Failure,
    fault: Arc<Fault>,
}

impl Evaluator for FailingEvaluator {
    fn input(&self) -> InputEncoding {
        self.evaluator.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.evaluator.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        let left = &self.fault.batches_left;
        let took = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        if took.is_ok() {
            return self.evaluator.evaluate(batch, answer);
        }
        let is_lost = self.failure == Failure::Loss;
        self.fault.is_lost.store(is_lost, Ordering::SeqCst);
        Err(EvaluatorError("Card (driver 1.2): a fault".to_owned()))
    }
}

/// The moves of 20 games on these devices and the processor behind them, and what the pool computes with afterwards.
fn play_on(backends: Vec<Arc<dyn Backend>>, lanes: usize) -> (Vec<Vec<shakmaty::Move>>, String) {
    let (to_games, games) = mpsc::channel();
    let mut all = backends;
    all.push(Arc::new(CpuBackend::new(Precision::F32).unwrap()));
    let machine = Machine {
        devices: Arc::new(DevicePool::new(all, lanes, 1.0)),
        ..machine(2, 4, 1 << 30)
    };
    let fixture = Fixture::with_sink(&machine, &Games(to_games), games);
    let network = fixture.network(1);
    fixture.play(selfplay(20, network.hash), vec![network]);
    let event = fixture.next_event();
    assert!(matches!(event, PlayEvent::Left(_)), "{event:?}");
    let mut games: Vec<GameRecord> = fixture.games.try_iter().collect();
    games.sort_by_key(|game| game.index);
    assert!(games.iter().map(|game| game.index).eq(0..20));
    let plies = games.into_iter().map(|game| game.plies);
    let moves = plies.map(|plies| plies.iter().map(|ply| ply.played).collect());
    let info = machine.devices.job_info();
    let after = format!("{} {}", machine.devices.names(), info.precision);
    (moves.collect(), after)
}

fn assert_games_are_as_on_the_processor(
    backends: Vec<Arc<dyn Backend>>,
    lanes: usize,
    after: &str,
) {
    let (expected, _) = play_on(Vec::new(), 1);
    assert_eq!(play_on(backends, lanes), (expected, after.to_owned()));
}

#[test]
fn games_go_on_on_the_processor_after_a_device_was_lost_twice() {
    let lost = FailingBackend::new("gpu:0", Precision::F32, Failure::Loss, &[5, 7]);
    assert_games_are_as_on_the_processor(vec![lost], 1, "cpu f32");
}

#[test]
fn a_device_that_was_lost_once_computes_on() {
    let lost = FailingBackend::new("gpu:0", Precision::F32, Failure::Loss, &[5, usize::MAX]);
    assert_games_are_as_on_the_processor(vec![lost], 1, "gpu:0 f32");
}

#[test]
fn a_device_that_is_gone_is_left_at_once() {
    let gone = FailingBackend::new("gpu:0", Precision::F32, Failure::Loss, &[5]);
    let next = FailingBackend::new("gpu:1", Precision::F32, Failure::Loss, &[usize::MAX]);
    assert_games_are_as_on_the_processor(vec![gone, next], 1, "gpu:1 f32");
}

#[test]
fn a_network_that_is_not_finite_in_16_bits_is_computed_in_32() {
    let half = FailingBackend::new("gpu:0", Precision::F16, Failure::Infinite, &[5]);
    let exact = FailingBackend::new("gpu:0", Precision::F32, Failure::Infinite, &[usize::MAX]);
    // Other networks may still be computed in 16 bits.
    assert_games_are_as_on_the_processor(vec![half, Arc::clone(&exact) as _], 1, "gpu:0 f16");
    let left = exact.fault.batches_left.load(Ordering::SeqCst);
    assert!(left < usize::MAX, "nothing was computed in 32 bits");
}

#[test]
fn a_network_that_fails_its_trial_on_every_gpu_is_computed_on_the_processor() {
    let wrong = |device, precision| -> Arc<dyn Backend> {
        FailingBackend::new(device, precision, Failure::Load, &[0])
    };
    let all = vec![
        wrong("gpu:0", Precision::F16),
        wrong("gpu:0", Precision::F32),
        wrong("gpu:1", Precision::F16),
    ];
    assert_games_are_as_on_the_processor(all, 1, "gpu:0 f16");
}

#[test]
fn one_of_two_devices_that_compute_side_by_side_takes_the_others_games() {
    let lost = FailingBackend::new("gpu:0", Precision::F32, Failure::Loss, &[3]);
    let other = FailingBackend::new("gpu:1", Precision::F32, Failure::Loss, &[usize::MAX]);
    assert_games_are_as_on_the_processor(vec![lost, other], 2, "gpu:1 f32");
}

#[test]
fn a_job_waits_for_a_device_without_memory() {
    let full = FailingBackend::new("gpu:0", Precision::F32, Failure::Memory, &[usize::MAX]);
    assert_games_are_as_on_the_processor(vec![full], 1, "gpu:0 f32");
}

#[test]
fn what_no_device_computes_fails_its_job() {
    let (to_games, games) = mpsc::channel();
    let infinite = FailingBackend::new("gpu:0", Precision::F32, Failure::Infinite, &[5]);
    let machine = Machine {
        devices: DevicePool::single(infinite),
        ..machine(2, 4, 1 << 30)
    };
    let fixture = Fixture::with_sink(&machine, &Games(to_games), games);
    let network = fixture.network(1);
    fixture.play(selfplay(20, network.hash), vec![network]);
    let PlayEvent::Failed { error, .. } = fixture.next_event() else {
        panic!("the job was played");
    };
    assert!(error.contains("Card (driver 1.2): a fault"), "{error}");
}
