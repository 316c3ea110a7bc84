use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
use rookery_common::network::Activation;
use rookery_engine::dummy::random_batch;
use rookery_model::ModelError;
use rookery_model::testing::{busy_weights, small_specs};

use super::*;
use crate::device::use_threads;

/// One thread each: tests run side by side.
fn evaluator(weights: &Weights) -> NetworkEvaluator {
    use_threads(1);
    NetworkEvaluator::new(weights, ComputeDevice::CPU, Precision::F32).unwrap()
}

fn assert_near(left: &Evaluations, right: &Evaluations, tolerance: f32) {
    let apart = left.largest_difference(right);
    assert!(apart <= tolerance, "{apart} apart");
}

fn evaluate(evaluator: &mut NetworkEvaluator, batch: &Batch) -> Evaluations {
    let mut answer = Evaluations::default();
    evaluator.evaluate(batch, &mut answer).unwrap();
    answer
}

#[test]
fn a_position_is_judged_alike_in_every_batch() {
    for spec in small_specs() {
        let batch = random_batch(spec.input, spec.policy.encoding, 33, 5);
        let mut evaluator = evaluator(&busy_weights(&spec, 2));
        let together = evaluate(&mut evaluator, &batch);
        let mut alone = Evaluations::default();
        for position in 0..batch.len() {
            let mut single = Batch::new(spec.input, spec.policy.encoding);
            single.push_from(&batch, position);
            let answer = evaluate(&mut evaluator, &single);
            alone.logits.extend(answer.logits);
            alone.values.extend(answer.values);
        }
        assert_near(&alone, &together, 1e-4);
    }
}

/// As on a device whose memory holds no more.
#[test]
fn a_batch_that_is_too_large_for_the_device_is_evaluated_in_parts() {
    for spec in small_specs() {
        let batch = random_batch(spec.input, spec.policy.encoding, 33, 5);
        let mut evaluator = evaluator(&busy_weights(&spec, 2));
        let whole = evaluate(&mut evaluator, &batch);
        for most in [1, 10, 32] {
            evaluator.most = most;
            assert_near(&evaluate(&mut evaluator, &batch), &whole, 1e-4);
        }
    }
}

/// A GPU gets them, so that its batches have few sizes.
#[test]
fn empty_positions_after_a_batch_have_no_answer() {
    for spec in small_specs() {
        let batch = random_batch(spec.input, spec.policy.encoding, 13, 5);
        let mut evaluator = evaluator(&busy_weights(&spec, 2));
        let expected = evaluate(&mut evaluator, &batch);
        let mut unpacker = Unpacker::new(spec.input, tch::Device::Cpu, Kind::Float);
        let planes = unpacker.unpack(&batch).unwrap().to_tensor().unwrap();
        let empty = planes.narrow(0, 0, 3).zeros_like();
        let planes = Tensor::cat(&[planes, empty], 0);
        let computation = Arc::clone(&evaluator.computation);
        no_grad(|| {
            let graph = computation.graph.graph();
            let x = graph.tower(&planes, &FoldedConvolution::apply)?;
            evaluator.read_out(&x, batch.len(), None)
        })
        .unwrap();
        let (logits, values) = evaluator.numbers.split_at(batch.moves().len());
        let width = values.len() / batch.len();
        let mut answer = Evaluations::default();
        answer.logits.extend_from_slice(logits);
        answer.values.extend(values.chunks(width).map(to_wdl));
        assert_near(&answer, &expected, 1e-4);
    }
}

#[test]
fn an_empty_batch_has_an_empty_answer_and_a_strange_one_an_error() {
    let spec = NetworkSpec::resnet(1, 8);
    let mut evaluator = evaluator(&Weights::random(spec.clone(), 1).unwrap());
    let empty = Batch::new(spec.input, spec.policy.encoding);
    assert_eq!(evaluate(&mut evaluator, &empty), Evaluations::default());
    let strange = random_batch(InputEncoding::Classic19, PolicyEncoding::Az73, 1, 1);
    let error = evaluator
        .evaluate(&strange, &mut Evaluations::default())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("takes lc0-112 and gives lc0-1858"),
        "{error}"
    );
}

#[test]
fn two_evaluators_work_side_by_side() {
    let spec = NetworkSpec::resnet(1, 16);
    let weights = busy_weights(&spec, 4);
    let batch = random_batch(spec.input, spec.policy.encoding, 16, 9);
    let expected = evaluate(&mut evaluator(&weights), &batch);
    let work = |mut evaluator: NetworkEvaluator| {
        use_threads(1);
        for _ in 0..5 {
            assert_near(&evaluate(&mut evaluator, &batch), &expected, 1e-4);
        }
    };
    std::thread::scope(|scope| {
        for evaluator in [evaluator(&weights), evaluator(&weights)] {
            scope.spawn(move || work(evaluator));
        }
    });
}

#[test]
fn threads_evaluate_one_network_at_the_same_time() {
    for spec in small_specs() {
        let weights = busy_weights(&spec, 4);
        let batch = random_batch(spec.input, spec.policy.encoding, 16, 9);
        let mut first = evaluator(&weights);
        let expected = evaluate(&mut first, &batch);
        let network = Arc::clone(&first.network);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut evaluator = NetworkEvaluator::from_network(Arc::clone(&network));
                let (batch, expected) = (&batch, &expected);
                scope.spawn(move || {
                    use_threads(1);
                    for _ in 0..5 {
                        assert_near(&evaluate(&mut evaluator, batch), expected, 1e-4);
                    }
                });
            }
        });
    }
}

#[test]
fn bf16_is_close_to_f32() {
    let spec = NetworkSpec::resnet(2, 16);
    let weights = Weights::random(spec.clone(), 8).unwrap();
    let batch = random_batch(spec.input, spec.policy.encoding, 8, 2);
    let mut bf16 = NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::Bf16).unwrap();
    assert_eq!(bf16.precision(), Precision::Bf16);
    assert_near(
        &evaluate(&mut bf16, &batch),
        &evaluate(&mut evaluator(&weights), &batch),
        0.03,
    );
}

#[test]
fn weights_too_large_to_fold_are_refused() {
    let spec = NetworkSpec::resnet(1, 8);
    let mut weights = Weights::random(spec, 1).unwrap();
    for name in ["input.norm.weight", "input.weight"] {
        fill(&mut weights, name, 1e38);
    }
    let refused = NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::F32).unwrap_err();
    assert!(refused.to_string().contains("input.weight"), "{refused}");
}

/// Gives every number of a tensor the same value.
fn fill(weights: &mut Weights, name: &str, value: f32) {
    weights.get_mut(name).unwrap().fill(value);
}

/// On the processor, in one of the first kinds or else of the wider ones.
fn among(
    weights: &Weights,
    kinds: &'static [Kind],
    wider: &'static [Kind],
) -> Result<InferenceNetwork> {
    InferenceNetwork::among(
        weights,
        ComputeDevice::CPU,
        Convolutions::default(),
        [kinds, wider],
    )
}

/// As of a GPU whose 16 bits are too few for what a network computes in some position.
#[test]
fn a_network_that_overflows_in_the_middle_is_computed_in_other_numbers_by_all() {
    let spec = NetworkSpec::resnet(2, 16);
    let weights = Weights::random(spec.clone(), 8).unwrap();
    let mut overflowing = Weights::random(spec.clone(), 8).unwrap();
    fill(&mut overflowing, "policy.conv.norm.weight", 1e3);
    fill(&mut overflowing, "policy.planes.weight", 3e38);
    let batch = random_batch(spec.input, spec.policy.encoding, 8, 2);
    let expected = evaluate(&mut evaluator(&weights), &batch);
    let cpu = ComputeDevice::CPU;
    let network = among(&weights, &[Kind::Float], &[Kind::BFloat16]).unwrap();
    let network = Arc::new(network);
    let [mut first, mut second] =
        [(), ()].map(|()| NetworkEvaluator::from_network(Arc::clone(&network)));
    assert_near(&evaluate(&mut first, &batch), &expected, 1e-4);
    assert_eq!(first.precision(), Precision::F32);

    let broken = Computation::new(&overflowing, cpu, Convolutions::default(), Kind::Float).unwrap();
    network.state.lock().present = Arc::new(broken);
    for evaluator in [&mut first, &mut second] {
        assert_near(&evaluate(evaluator, &batch), &expected, 0.03);
        assert_eq!(evaluator.precision(), Precision::Bf16);
    }
    let later = NetworkEvaluator::from_network(network);
    assert_eq!(later.precision(), Precision::Bf16);
}

#[test]
fn a_network_that_is_finite_in_no_numbers_is_refused_with_what_could_help() {
    let spec = NetworkSpec::resnet(1, 16);
    let mut weights = Weights::random(spec.clone(), 8).unwrap();
    fill(&mut weights, "policy.conv.norm.weight", 1e3);
    fill(&mut weights, "policy.planes.weight", 3e38);
    let batch = random_batch(spec.input, spec.policy.encoding, 2, 2);
    for wider in [&[] as &[Kind], &[Kind::Float]] {
        let network = among(&weights, &[Kind::Float], wider);
        let mut evaluator = NetworkEvaluator::from_network(Arc::new(network.unwrap()));
        let refused = evaluator.evaluate(&batch, &mut Evaluations::default());
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("not a finite number, computed in f32"),
            "{refused}"
        );
    }
}

#[test]
fn weights_too_large_for_16_bits_are_computed_in_other_numbers_from_the_start() {
    let spec = NetworkSpec::resnet(1, 16);
    let mut weights = Weights::random(spec.clone(), 8).unwrap();
    fill(&mut weights, "value.dense1.bias", 1e5);
    let half = &[Kind::Half];
    let refused = among(&weights, half, &[]).unwrap_err();
    assert!(
        matches!(refused, TorchError::Model(ModelError::NotComputable(_))),
        "{refused}"
    );
    let network = among(&weights, half, &[Kind::Float]).unwrap();
    let mut wide = NetworkEvaluator::from_network(Arc::new(network));
    assert_eq!(wide.precision(), Precision::F32);
    let batch = random_batch(spec.input, spec.policy.encoding, 4, 2);
    let expected = evaluate(&mut evaluator(&weights), &batch);
    assert_near(&evaluate(&mut wide, &batch), &expected, 1e-4);
}

/// The processor's backend beside libtorch, whose convolutions add up in another order.
fn assert_backends_agree(weights: &Weights, seed: u64) {
    use_threads(1);
    let spec = weights.spec();
    let batch = random_batch(spec.input, spec.policy.encoding, 17, seed);
    let network = InferenceNetwork::with_convolutions(
        weights,
        ComputeDevice::CPU,
        Precision::F32,
        Convolutions::Libtorch,
    );
    let expected = evaluate(
        &mut NetworkEvaluator::from_network(Arc::new(network.unwrap())),
        &batch,
    );
    let network = Arc::new(CpuNetwork::new(weights).unwrap());
    let mut answer = Evaluations::default();
    CpuEvaluator::new(network)
        .evaluate(&batch, &mut answer)
        .unwrap();
    assert_near(&answer, &expected, 1e-4);
}

#[test]
fn the_processors_backend_says_what_libtorch_says_of_every_kind_of_network() {
    for (seed, spec) in (0..).zip(small_specs()) {
        for (filters, se_ratio) in [(8, None), (24, Some(3)), (64, Some(8))] {
            for activation in [Activation::Relu, Activation::Mish] {
                let mut spec = spec.clone();
                let body = spec.body_mut().unwrap();
                (body.filters, body.se_ratio, body.activation) = (filters, se_ratio, activation);
                assert_backends_agree(&busy_weights(&spec, seed), seed);
            }
        }
    }
}

#[test]
fn the_processors_backend_says_what_libtorch_says_of_lc0s_networks() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("ROOKERY_DATA").unwrap_or_else(|_| default.to_owned());
    let Ok(files) = std::fs::read_dir(format!("{folder}/lc0")) else {
        return;
    };
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "gz") {
            assert_backends_agree(&rookery_model::lc0::read(&path).unwrap(), 3);
        }
    }
}
