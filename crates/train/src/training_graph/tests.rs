use rookery_backend_cpu::PolicyCells;
use rookery_backend_torch::unpack::Unpacker;
use rookery_backend_torch::{ComputeDevice, NetworkEvaluator, use_threads};
use rookery_engine::dummy::random_batch;
use rookery_engine::{Batch, Evaluations, Evaluator as _, Precision, Wdl};
use rookery_model::testing::{busy_weights, small_specs};

use super::*;

fn assert_near(left: &Evaluations, right: &Evaluations, tolerance: f32) {
    let apart = left.largest_difference(right);
    assert!(apart <= tolerance, "{apart} apart");
}

/// The network as it is trained, in evaluation mode, read out cell by cell.
fn unfolded(weights: &Weights, batch: &Batch) -> Evaluations {
    let spec = weights.spec();
    let flat = FlatWeights::new(weights, tch::Device::Cpu).unwrap();
    let network = TrainableNetwork::new(spec, flat).unwrap();
    let mut unpacker = Unpacker::new(spec.input, tch::Device::Cpu, Kind::Float);
    let planes = unpacker.unpack(batch).unwrap();
    let raw = network.forward(planes.tensor(), Mode::Evaluate).unwrap();
    let cells = PolicyCells::new(&spec.policy);
    let mut answer = Evaluations::default();
    for position in 0..batch.len() {
        let row = raw.policy.get(position as i64);
        let logit = |index: &u16| row.double_value(&[cells.of(*index).unwrap()]) as f32;
        answer
            .logits
            .extend(batch.moves_of(position).iter().map(logit));
        let value = raw.value.get(position as i64);
        let value = if value.size() == [3] {
            value.softmax(-1, Kind::Float)
        } else {
            value.tanh()
        };
        answer
            .values
            .push(to_wdl(&Vec::<f32>::try_from(value).unwrap()));
    }
    answer
}

fn to_wdl(value: &[f32]) -> Wdl {
    match *value {
        [win, draw, loss] => Wdl { win, draw, loss },
        _ => Wdl::from_q(value[0]),
    }
}

#[test]
fn folding_does_not_change_what_a_network_says() {
    use_threads(1);
    for spec in small_specs() {
        let batch = random_batch(spec.input, spec.policy.encoding, 12, 3);
        let weights = busy_weights(&spec, 11);
        let mut answer = Evaluations::default();
        NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::F32)
            .unwrap()
            .evaluate(&batch, &mut answer)
            .unwrap();
        assert_near(&answer, &unfolded(&weights, &batch), 1e-4);
        let spread = answer
            .logits
            .iter()
            .fold(0.0_f32, |most, logit| most.max(logit.abs()));
        assert!(
            spread > 0.1,
            "logits are too small to tell anything: {spread}"
        );
        let one = |v: &Wdl| (v.win + v.draw + v.loss - 1.0).abs() < 1e-5;
        assert!(answer.values.iter().all(one));
    }
}
