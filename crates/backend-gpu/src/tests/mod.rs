//! Networks of every kind on a GPU, or on the program that computes in its place, against the processor's numbers.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
use rookery_common::chess::GameHistory;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{Activation, NetworkSpec, PolicyHead, PolicySpec, ValueHead};
use rookery_engine::dummy::random_batch;
use rookery_engine::{
    Backend as _, BackendError, Batch, Evaluations, Evaluator, LoadedNetwork, Precision,
};
use rookery_model::Weights;
use rookery_model::testing::{busy_weights, small_specs};

use crate::backend::Trial;
use crate::gpu::{Checks, Gpu};
use crate::kernel::Storage;
use crate::layers::Planner;
use crate::plan::Grid;
use crate::variant::{Tiling, TowerPath};
use crate::{GpuBackend, GpuEvaluator, GpuNetwork, KernelTuner, MatrixChoice, adapters};

mod amd;
mod larger;
mod memory;
mod parts;
mod sources;
mod tuning;

const FUSED: TowerPath = TowerPath::Fused { boards: 1 };
const LAYERED: TowerPath = TowerPath::Layered(Tiling::DEFAULT);

static TRUSTED: LazyLock<Arc<Gpu>> = LazyLock::new(|| open(Checks::None));
static CHECKED: LazyLock<Arc<Gpu>> = LazyLock::new(|| open(Checks::All));

fn open(checks: Checks) -> Arc<Gpu> {
    assert!(
        !adapters().is_empty(),
        "these tests need a GPU with a Vulkan driver, or lavapipe: scripts/setup installs it (Debian's \
         mesa-vulkan-drivers)"
    );
    let gpu = Gpu::open(0, checks, MatrixChoice::On).unwrap();
    println!("on {}", gpu.adapter);
    gpu
}

fn gpu() -> Arc<Gpu> {
    Arc::clone(&TRUSTED)
}

fn network(gpu: Arc<Gpu>, weights: &Weights, storage: Storage, path: TowerPath) -> GpuEvaluator {
    let network = GpuNetwork::new(gpu, weights, storage, path).unwrap();
    GpuEvaluator::new(Arc::new(network))
}

fn evaluate(evaluator: &mut impl Evaluator, batch: &Batch) -> Evaluations {
    let mut answer = Evaluations::default();
    evaluator.evaluate(batch, &mut answer).unwrap();
    answer
}

fn expected(weights: &Weights, batch: &Batch) -> Evaluations {
    let network = Arc::new(CpuNetwork::new(weights).unwrap());
    evaluate(&mut CpuEvaluator::new(network), batch)
}

fn batch_for(spec: &NetworkSpec, positions: usize, seed: u64) -> Batch {
    random_batch(spec.input, spec.policy.encoding, positions, seed)
}

/// Networks of every kind of input, policy, value, activation and squeeze-excitation, with channels that have to be
/// padded and others.
fn specs() -> Vec<NetworkSpec> {
    let bodies = [
        (8, None, Activation::Relu),
        (24, Some(3), Activation::Mish),
        (40, Some(1), Activation::Relu),
        (16, Some(16), Activation::Mish),
        (8, Some(1), Activation::Relu),
        (24, None, Activation::Mish),
    ];
    let kinds = small_specs().into_iter().cycle();
    let mut specs: Vec<NetworkSpec> = kinds.zip(bodies).map(with_body).collect();
    let encodings = [
        (InputEncoding::Az119, PolicyEncoding::Lc01858, 5),
        (InputEncoding::Lc0112, PolicyEncoding::Az73, 1),
        (InputEncoding::Classic19, PolicyEncoding::Flat1968, 130),
    ];
    for (input, encoding, channels) in encodings {
        let mut dense = NetworkSpec::resnet(1, 16);
        dense.input = input;
        let head = PolicyHead::Dense { channels };
        dense.policy = PolicySpec { encoding, head };
        let hidden = 13 * channels;
        dense.value = ValueHead::Wdl { channels, hidden };
        specs.push(dense);
    }
    specs
}

fn with_body((mut spec, parts): (NetworkSpec, (u32, Option<u32>, Activation))) -> NetworkSpec {
    let body = spec.body_mut().unwrap();
    (body.filters, body.se_ratio, body.activation) = parts;
    spec
}

/// What is too far apart.
const fn tolerance(storage: Storage) -> f32 {
    match storage {
        Storage::F32 => 1e-4,
        Storage::F16 => 5e-3,
    }
}

/// Asserts that two answers are the same. A card's compiler may put the products and sums of two kernels together
/// differently; a program that computes in its place does not.
fn assert_same(one: &Evaluations, other: &Evaluations, storage: Storage, what: &str) {
    if gpu().adapter.is_software {
        assert_eq!(one, other, "{what} {storage:?}");
    }
    let apart = one.largest_difference(other);
    assert!(apart < tolerance(storage), "{what} {storage:?} {apart}");
}

/// Set where the tests run on a GPU without 16 bits, as SwiftShader is.
const F32_ONLY: &str = "ROOKERY_TEST_GPU_F32_ONLY";

/// The storages that are tested. The GPU has to have both unless [`F32_ONLY`] is set.
fn storages() -> &'static [Storage] {
    if std::env::var_os(F32_ONLY).is_some() {
        return &[Storage::F32];
    }
    assert!(
        gpu().adapter.has_f16,
        "{} has no f16; set {F32_ONLY}=1 to test f32 alone, and skip tests with `in_16_bits` in their names",
        gpu().adapter
    );
    &[Storage::F32, Storage::F16]
}

/// The first positions of a batch, with what is expected of them.
fn first(positions: usize, all: &Batch, expected: &Evaluations) -> (Batch, Evaluations) {
    let mut batch = Batch::new(all.input(), all.policy());
    (0..positions).for_each(|index| batch.push_from(all, index));
    let mut expected = expected.clone();
    expected.logits.truncate(batch.moves().len());
    expected.values.truncate(positions);
    (batch, expected)
}

/// Tries every second network of [`specs`], from `chosen` on, in batches of several sizes.
fn assert_as_on_the_processor(chosen: usize) {
    for (seed, spec) in specs().into_iter().enumerate().skip(chosen).step_by(2) {
        let weights = busy_weights(&spec, seed as u64);
        let all = batch_for(&spec, 300, 7);
        let expected = expected(&weights, &all);
        let paths = [LAYERED, FUSED].into_iter();
        let ways: Vec<_> = paths
            .flat_map(|path| storages().iter().map(move |storage| (path, *storage)))
            .collect();
        for (number, (path, storage)) in ways.iter().copied().enumerate() {
            let mut evaluator = network(gpu(), &weights, storage, path);
            // The largest takes longest: each network has it in one way. 65 are more than the trial has, and odd.
            let largest = (number == seed / 2 % ways.len()).then_some(300);
            for positions in [1, 2, 65].into_iter().chain(largest) {
                let (batch, expected) = first(positions, &all, &expected);
                let apart = evaluate(&mut evaluator, &batch).largest_difference(&expected);
                println!("{positions} {path:?} {storage:?} {apart:.1e} {spec:?}");
                assert!(
                    apart < tolerance(storage),
                    "{positions} {path:?} {storage:?} {apart} {spec:?}"
                );
            }
        }
    }
}

// Two tests, as drivers take their time to compile kernels.

#[test]
fn every_kind_of_network_is_as_the_processor_computes_it() {
    assert_as_on_the_processor(0);
}

#[test]
fn every_other_kind_of_network_is_so_too() {
    assert_as_on_the_processor(1);
}

/// On a GPU that has matrices: lavapipe from Mesa 25.2 on, NVIDIA's and AMD's newer cards.
#[test]
fn matrices_give_what_the_processor_computes() {
    let Some(tile) = gpu().matrix_tile else {
        return println!("{} has no matrices", gpu().adapter);
    };
    for (seed, mut spec) in specs().into_iter().enumerate() {
        spec.body_mut().unwrap().filters = 16 * (2 + seed as u32 % 2);
        let weights = busy_weights(&spec, seed as u64);
        let batch = batch_for(&spec, tile + 3, 7);
        let planner = Planner::new(&TRUSTED, &weights, Storage::F16).unwrap();
        let mut variants = planner.variants();
        variants.retain(|path| matches!(path, TowerPath::Matrices(_)));
        // Each kind of network by another one.
        let path = variants[seed % variants.len()];
        let mut evaluator = network(gpu(), &weights, Storage::F16, path);
        let found = evaluate(&mut evaluator, &batch);
        let apart = found.largest_difference(&expected(&weights, &batch));
        println!("{path} {apart:.1e} {spec:?}");
        assert!(apart < tolerance(Storage::F16), "{path} {apart} {spec:?}");
        if seed < 2 {
            let mut checked = network(Arc::clone(&CHECKED), &weights, Storage::F16, path);
            let checked = evaluate(&mut checked, &batch);
            assert_same(&checked, &found, Storage::F16, &path.to_string());
        }
    }
}

#[test]
fn kernels_with_checks_give_the_same_bits() {
    for (seed, spec) in specs().into_iter().enumerate() {
        let weights = busy_weights(&spec, seed as u64);
        let batch = batch_for(&spec, 5, 2);
        for storage in storages().iter().copied() {
            for path in [FUSED, LAYERED] {
                let [checked, trusted] = [&CHECKED, &TRUSTED].map(|gpu| {
                    let mut evaluator = network(Arc::clone(gpu), &weights, storage, path);
                    evaluate(&mut evaluator, &batch)
                });
                assert_same(&checked, &trusted, storage, &path.to_string());
            }
        }
    }
}

#[test]
fn positions_with_all_moves_and_without_any_are_evaluated() {
    let spec = NetworkSpec::resnet(1, 8);
    let weights = busy_weights(&spec, 9);
    let mut batch = Batch::new(spec.input, spec.policy.encoding);
    let all = 0..spec.policy.encoding.size() as u16;
    for position in 0..6 {
        let moves = if position % 2 == 0 { 0..0 } else { all.clone() };
        batch.push_indices(&GameHistory::default(), moves);
    }
    let found = evaluate(&mut network(gpu(), &weights, Storage::F32, FUSED), &batch);
    let apart = found.largest_difference(&expected(&weights, &batch));
    assert!(apart < 1e-4, "{apart}");
    let mut many = Batch::new(spec.input, spec.policy.encoding);
    many.push_indices(&GameHistory::default(), all.clone().cycle().take(10_000));
    let mut evaluator = network(gpu(), &weights, Storage::F32, FUSED);
    let error = evaluator.evaluate(&many, &mut Evaluations::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("position 0 has 10000 moves"), "{error}");
}

#[test]
fn threads_evaluate_one_network_at_the_same_time() {
    let weights = busy_weights(&NetworkSpec::resnet(2, 16), 4);
    let loaded = GpuNetwork::new(gpu(), &weights, Storage::F32, FUSED).unwrap();
    let loaded: Arc<dyn LoadedNetwork> = Arc::new(loaded);
    let batch = batch_for(weights.spec(), 16, 9);
    let first = evaluate(&mut Arc::clone(&loaded).evaluator(), &batch);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut evaluator = Arc::clone(&loaded).evaluator();
            let (batch, first) = (&batch, &first);
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(&evaluate(&mut evaluator, batch), first);
                }
            });
        }
    });
}

#[test]
fn batches_of_two_threads_are_in_flight_at_the_same_time() {
    let gpu = open(Checks::None);
    let weights = busy_weights(&NetworkSpec::resnet(2, 16), 4);
    let loaded = GpuNetwork::new(Arc::clone(&gpu), &weights, Storage::F32, FUSED).unwrap();
    let loaded = Arc::new(loaded);
    let batch = batch_for(weights.spec(), 16, 9);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let mut evaluator = GpuEvaluator::new(Arc::clone(&loaded));
            let (batch, most) = (&batch, &gpu.most_in_flight);
            scope.spawn(move || {
                let mut batches = 0;
                while most.load(Relaxed) < 2 && batches < 10_000 {
                    evaluate(&mut evaluator, batch);
                    batches += 1;
                }
            });
        }
    });
    assert_eq!(gpu.most_in_flight.load(Relaxed), 2);
}

#[test]
fn an_empty_batch_has_an_empty_answer_and_a_strange_one_an_error() {
    let spec = NetworkSpec::resnet(1, 8);
    let weights = Weights::random(spec.clone(), 1).unwrap();
    let mut evaluator = network(gpu(), &weights, Storage::F32, FUSED);
    let empty = Batch::new(spec.input, spec.policy.encoding);
    assert_eq!(evaluate(&mut evaluator, &empty), Evaluations::default());
    let strange = Batch::new(InputEncoding::Classic19, PolicyEncoding::Az73);
    let mut wrong = Batch::new(spec.input, spec.policy.encoding);
    wrong.push_indices(&GameHistory::default(), [u16::MAX]);
    for (batch, what) in [
        (strange, "takes lc0-112 and gives lc0-1858"),
        (wrong, "a move of policy index 65535"),
    ] {
        let error = evaluator.evaluate(&batch, &mut Evaluations::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    // It goes on.
    let batch = batch_for(&spec, 2, 1);
    assert_eq!(evaluate(&mut evaluator, &batch).values.len(), 2);
}

#[test]
fn what_is_not_finite_is_an_error() {
    let mut weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
    weights.get_mut("value.dense2.weight").unwrap().fill(3e38);
    weights.get_mut("value.dense1.bias").unwrap().fill(1e3);
    let batch = batch_for(weights.spec(), 2, 2);
    let mut evaluator = network(gpu(), &weights, Storage::F32, FUSED);
    let error = evaluator.evaluate(&batch, &mut Evaluations::default());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("not a finite number, computed in f32"),
        "{error}"
    );
    weights
        .get_mut("policy.conv.norm.weight")
        .unwrap()
        .fill(1e38);
    weights.get_mut("policy.conv.weight").unwrap().fill(1e38);
    let refused = GpuNetwork::new(gpu(), &weights, Storage::F32, FUSED).unwrap_err();
    assert!(
        refused.to_string().contains("policy.conv.weight"),
        "{refused}"
    );
}

#[test]
fn a_network_too_large_in_16_bits_is_computed_in_32_where_the_choice_is_free() {
    storages();
    let spec = NetworkSpec::resnet(1, 8);
    let mut weights = busy_weights(&spec, 1);
    // The tower's numbers are beyond what 16 bits hold, and the heads make them small again.
    let scale = |weights: &mut Weights, name: &str, factor: f32| {
        let numbers = weights.get_mut(name).unwrap();
        numbers.iter_mut().for_each(|number| *number *= factor);
    };
    for part in ["weight", "bias"] {
        scale(&mut weights, &format!("input.norm.{part}"), 1e5);
    }
    for head in ["policy", "value"] {
        scale(&mut weights, &format!("{head}.conv.weight"), 1e-5);
    }
    let exact = GpuBackend::with_gpu(gpu(), Precision::F16, KernelTuner::default()).unwrap();
    assert!(matches!(exact.load(&weights), Err(BackendError::Failed(_))));
    let free = exact.in_precision(Precision::Auto).unwrap();
    assert_eq!(free.info().precision, Precision::F16);
    assert_eq!(free.load(&weights).unwrap().precision(), Precision::F32);
    let small = busy_weights(&spec, 1);
    assert_eq!(free.load(&small).unwrap().precision(), Precision::F16);
}

#[test]
fn wrong_numbers_are_refused_with_the_adapter_and_its_driver() {
    let backend = GpuBackend::with_gpu(gpu(), Precision::F32, KernelTuner::default()).unwrap();
    let weights = busy_weights(&NetworkSpec::resnet(1, 8), 1);
    let loaded = GpuNetwork::new(gpu(), &weights, Storage::F32, FUSED).unwrap();
    let other = busy_weights(&NetworkSpec::resnet(1, 8), 2);
    let refused = Trial::new(&other)
        .unwrap()
        .check(&Arc::new(loaded))
        .unwrap_err();
    let refused = refused.to_string();
    let adapter = backend.adapter();
    for part in [&adapter.name, &adapter.driver, "1x8 wrongly in f32"] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn numbers_that_are_wrong_in_larger_batches_alone_are_refused() {
    let weights = busy_weights(&NetworkSpec::resnet(1, 8), 1);
    let trial = Trial::new(&weights).unwrap();
    let mut loaded = GpuNetwork::new(gpu(), &weights, Storage::F32, FUSED).unwrap();
    let mut steps = loaded.plan.steps.iter_mut();
    let policy = steps.find(|step| step.name == "policy").unwrap();
    // Workgroups for the moves of the smallest batch, whatever the batch is.
    let (smallest, _) = trial.repeated(8);
    policy.grid = Grid::Groups {
        each: smallest.moves().len().div_ceil(8),
        positions: 1024,
    };
    let loaded = Arc::new(loaded);
    let found = evaluate(&mut GpuEvaluator::new(Arc::clone(&loaded)), &smallest);
    let apart = found.largest_difference(&trial.repeated(8).1);
    assert!(apart < 1e-4, "{apart}");
    let refused = trial.positions_within(Duration::MAX, &loaded).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("1x8 wrongly in f32"), "{refused}");
}

#[test]
fn a_lost_gpu_says_so_and_computes_again_once_it_is_opened_anew() {
    let weights = busy_weights(&NetworkSpec::resnet(1, 8), 1);
    let batch = batch_for(weights.spec(), 3, 1);
    let lost = open(Checks::None);
    let backend =
        GpuBackend::with_gpu(Arc::clone(&lost), Precision::F32, KernelTuner::default()).unwrap();
    let mut evaluator = backend.load(&weights).unwrap().evaluator();
    let before = evaluate(&mut evaluator, &batch);
    assert!(!backend.is_lost());
    lost.device.destroy();
    let error = evaluator.evaluate(&batch, &mut Evaluations::default());
    let error = error.unwrap_err().to_string();
    for part in [&lost.adapter.name, &lost.adapter.driver] {
        assert!(error.contains(part), "{error}");
    }
    assert!(backend.is_lost());
    backend.load(&weights).unwrap_err();
    let again = backend.reopen().unwrap();
    assert!(!again.is_lost());
    assert_eq!(again.info(), backend.info());
    let mut evaluator = again.load(&weights).unwrap().evaluator();
    assert_eq!(evaluate(&mut evaluator, &batch), before);
}

#[test]
fn a_gpu_that_is_not_there_and_a_precision_that_it_lacks_are_refused() {
    let error = GpuBackend::new(250, Precision::Auto, KernelTuner::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("device gpu:250 cannot be used"), "{error}");
    let error = GpuBackend::with_gpu(gpu(), Precision::Bf16, KernelTuner::default()).unwrap_err();
    assert!(
        error.to_string().contains("precision bf16 cannot be used"),
        "{error}"
    );
}
