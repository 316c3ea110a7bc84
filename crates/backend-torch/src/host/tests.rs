use rookery_common::chess::GameHistory;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{Activation, Layers, NetworkSpec, PolicyHead, Tower};
use rookery_engine::Batch;
use rookery_engine::dummy::random_batch;
use rookery_model::testing::busy_weights;
use shakmaty::{Position as _, Square};
use tch::Tensor;

use super::*;
use crate::folded::tensors_of;
use crate::tensors::tensor_of;
use crate::unpack::Unpacker;

/// Random activations `[5, channels, 8, 8]` in channels-last order.
fn activations(channels: i64, seed: i64, kind: Kind) -> Tensor {
    tch::manual_seed(seed);
    let x = Tensor::randn([5, channels, 8, 8], (Kind::Float, Device::Cpu));
    channels_last(&x.to_kind(kind)).unwrap()
}

fn assert_near(ours: &Tensor, theirs: &Tensor) {
    let tolerance = if ours.kind() == Kind::BFloat16 {
        0.02
    } else {
        1e-5
    };
    let apart = (ours.to_kind(Kind::Float) - theirs.to_kind(Kind::Float))
        .abs()
        .max();
    assert!(apart.double_value(&[]) < tolerance, "{apart:?}");
}

const KINDS: [Kind; 2] = [Kind::Float, Kind::BFloat16];

/// The stream in 32 bits that comes into a block, and what its convolutions made of it.
fn stream_and_block(channels: i64, kind: Kind) -> (Tensor, Tensor) {
    let stream = activations(channels, 1, Kind::Float);
    (stream, activations(channels, 2, kind))
}

/// Checks both results of the end of a block.
fn assert_ended(stream: &Tensor, y: &Tensor, expected: &Tensor) {
    assert_near(stream, expected);
    assert_near(y, expected);
    let narrowed = stream.to_kind(y.kind());
    assert_eq!(narrowed, *y, "the stream itself, rounded once");
}

#[test]
fn the_end_of_a_block_is_as_libtorch_computes_it() {
    for kind in KINDS {
        for channels in [8, 24, 64] {
            let (mut x, mut y) = stream_and_block(channels, kind);
            let expected = (&x + &y).relu();
            assert!(add_relu(&mut y, &mut x));
            assert_ended(&x, &y, &expected);
        }
    }
}

#[test]
fn squeeze_excitation_is_as_libtorch_computes_it() {
    for kind in KINDS {
        for (filters, se_ratio) in [(8, 4), (32, 4), (64, 8)] {
            let mut spec = NetworkSpec::resnet(1, filters);
            let body = spec.body_mut().unwrap();
            body.se_ratio = Some(se_ratio);
            let weights = busy_weights(&spec, 3);
            let layer = |name: &str, x: &Tensor| {
                let part = |part: &str| {
                    tensor_of(&weights, &format!("blocks.0.se.{name}.{part}")).unwrap()
                };
                x.linear(&part("weight"), Some(&part("bias")))
            };
            let channels = i64::from(filters);
            let (mut x, mut y) = stream_and_block(channels, kind);
            let means = y
                .to_kind(Kind::Float)
                .mean_dim([2_i64, 3].as_slice(), false, None);
            let both = layer("excite", &layer("squeeze", &means).relu()).reshape([5, -1, 1, 1]);
            let (gamma, beta) = (
                both.narrow(1, 0, channels),
                both.narrow(1, channels, channels),
            );
            let expected = (&x + gamma.sigmoid() * &y + beta).relu();
            let Tower::Residual(tower) = Layers::new(&spec).unwrap().tower;
            let layers = tower.blocks[0].excitation.as_ref().unwrap();
            let layers =
                SqueezeExcitation::new(&weights, layers, Activation::Relu, filters as usize)
                    .unwrap();
            assert!(excite(&layers, &mut y, &mut x));
            assert_ended(&x, &y, &expected);
        }
    }
}

#[test]
fn other_layouts_and_numbers_are_left_to_libtorch() {
    let mut x = activations(8, 1, Kind::Float);
    assert!(!add_relu(&mut x.contiguous(), &mut x), "another order");
    let mut narrow = activations(8, 1, Kind::BFloat16);
    assert!(
        !add_relu(&mut narrow.copy(), &mut narrow),
        "a stream in 16 bits"
    );
    assert!(
        !add_relu(&mut activations(16, 1, Kind::Float), &mut x),
        "other channels"
    );
    assert!(!relu(&mut activations(8, 1, Kind::Double)));
    assert!(!relu(&mut x.narrow(1, 0, 4)), "a part of a tensor");
    assert!(relu(&mut x.flatten(1, -1)), "a copy in another shape");
}

/// What libtorch makes of the unpacked planes, in 32 bits.
fn convolved(weights: &Weights, batch: &Batch) -> Tensor {
    let input = weights.spec().input;
    let mut unpacker = Unpacker::new(input, Device::Cpu, Kind::Float);
    let planes = unpacker.unpack(batch).unwrap();
    let Tower::Residual(tower) = Layers::new(weights.spec()).unwrap().tower;
    let folded = FoldedConvolution::new(weights, &tower.input).unwrap();
    let [weight, bias] = tensors_of(&folded).unwrap();
    let convolved = planes.tensor().to_kind(Kind::Double).conv2d(
        &weight,
        Some(&bias),
        [1, 1],
        [1, 1],
        [1, 1],
        1,
    );
    convolved.relu().to_kind(Kind::Float)
}

/// Positions of random games, and of a game in which knights go out and come back, so that all planes of
/// repetitions are full in the end.
fn positions(input: InputEncoding) -> Batch {
    let mut batch = random_batch(input, PolicyEncoding::Lc01858, 40, 7);
    let there_and_back = [
        (Square::G1, Square::F3),
        (Square::G8, Square::F6),
        (Square::F3, Square::G1),
        (Square::F6, Square::G8),
    ];
    let mut game = GameHistory::default();
    for (from, to) in there_and_back.into_iter().cycle().take(12) {
        batch.push(&game, &[]);
        let legal = game.position().legal_moves();
        let played = legal
            .iter()
            .find(|m| (m.from(), m.to()) == (Some(from), to));
        game.push(*played.unwrap());
    }
    let full = batch.binary().iter().filter(|word| **word == !0).count();
    assert!(full > 0 || input == InputEncoding::Classic19);
    batch
}

#[test]
fn the_first_layer_is_as_libtorch_computes_it_from_planes() {
    for input in InputEncoding::ALL {
        for channels in [8, 24, 64] {
            let mut spec = NetworkSpec::resnet(1, channels);
            spec.input = input;
            let weights = busy_weights(&spec, 9);
            let batch = positions(input);
            let expected = convolved(&weights, &batch);
            let layer = first_layer(&weights).unwrap().unwrap();
            for kind in KINDS {
                let [x, wide] = apply_first(&layer, &batch, kind).unwrap();
                let apart = (&wide - &expected).abs() / (expected.abs() + 1.0);
                assert!(apart.max().double_value(&[]) < 1e-5, "{input:?} {channels}");
                assert_eq!(wide.to_kind(kind), x, "the same, rounded once");
                assert!(is_boards(&x, channels as usize) && is_boards(&wide, channels as usize));
            }
        }
    }
}

#[test]
fn another_activation_than_a_rectifier_is_left_to_libtorch() {
    let mut spec = NetworkSpec::resnet(1, 8);
    spec.body_mut().unwrap().activation = Activation::Mish;
    assert!(first_layer(&busy_weights(&spec, 1)).unwrap().is_none());
}

/// A weight `[outputs, inputs, kernel, kernel]` and a bias in 64 bits.
fn folded_of(weight: &Tensor, bias: &Tensor) -> FoldedConvolution {
    let size = weight.size();
    let numbers = |tensor: &Tensor| Vec::<f64>::try_from(tensor.flatten(0, -1)).unwrap();
    FoldedConvolution {
        outputs: size[0] as usize,
        inputs: size[1] as usize,
        kernel: size[2] as usize,
        weight: numbers(weight),
        bias: numbers(bias),
    }
}

#[test]
fn winograds_convolutions_are_as_libtorch_computes_them() {
    crate::use_threads(1);
    let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Double, Device::Cpu));
    for (inputs, outputs) in [(16, 16), (32, 48), (64, 32), (128, 16)] {
        tch::manual_seed(inputs);
        let (weight, bias) = (random(&[outputs, inputs, 3, 3]), random(&[outputs]));
        let layer = winograd(&folded_of(&weight, &bias)).unwrap();
        for positions in [1, 5, 6, 17] {
            let x = random(&[positions, inputs, 8, 8]);
            let expected = x.conv2d(&weight, Some(&bias), [1, 1], [1, 1], [1, 1], 1);
            let x = channels_last(&x.to_kind(Kind::Float)).unwrap();
            let y = convolve(&layer, &x).unwrap().unwrap();
            assert!(is_boards(&y, outputs as usize));
            let apart = (y.to_kind(Kind::Double) - &expected).abs().max();
            let most = 1e-5 * expected.abs().max().double_value(&[]);
            assert!(
                apart.double_value(&[]) < most,
                "{inputs} {positions} {apart:?}"
            );
            let narrow = x.to_kind(Kind::BFloat16);
            assert!(
                convolve(&layer, &narrow).unwrap().is_none(),
                "other numbers"
            );
            assert!(
                convolve(&layer, &x.contiguous()).unwrap().is_none(),
                "another order"
            );
        }
    }
    for shape in [[16, 8, 3, 3], [20, 16, 3, 3], [16, 16, 1, 1]] {
        let bias = random(&shape[..1]);
        assert!(winograd(&folded_of(&random(&shape), &bias)).is_none());
    }
}

/// Networks with both kinds of policy head, of so many channels.
fn with_policies(channels: u32) -> [Weights; 2] {
    [PolicyHead::Convolution, PolicyHead::Dense { channels }].map(|head| {
        let mut spec = NetworkSpec::resnet(1, channels);
        spec.policy.head = head;
        busy_weights(&spec, 5)
    })
}

/// All outputs of a policy's last layer as libtorch computes them, square by square for planes.
fn all_logits(weights: &Weights, features: &Tensor) -> Tensor {
    let part = |part: &str| tensor_of(weights, &format!("policy.{part}")).unwrap();
    match weights.spec().policy.head {
        PolicyHead::Convolution => features
            .conv2d(
                &part("planes.weight"),
                Some(&part("planes.bias")),
                [1, 1],
                [1, 1],
                [1, 1],
                1,
            )
            .permute([0, 2, 3, 1])
            .flatten(1, -1),
        PolicyHead::Dense { .. } => features
            .flatten(1, -1)
            .linear(&part("dense.weight"), Some(&part("dense.bias"))),
    }
}

#[test]
fn logits_of_single_moves_are_as_libtorch_computes_all() {
    for channels in [8, 24, 64] {
        for weights in with_policies(channels) {
            let legal = legal_policy(&weights).unwrap();
            for kind in KINDS {
                let features = activations(channels.into(), 3, kind);
                let expected = all_logits(&weights, &features.to_kind(Kind::Float));
                let cells: Vec<i64> = (0..expected.numel() as i64).collect();
                let mut logits = vec![0.0; cells.len()];
                assert!(write_logits(&legal, &features, &cells, &mut logits));
                let logits = Tensor::from_slice(&logits).reshape(expected.size());
                let apart = (&logits - &expected).abs() / (expected.abs() + 1.0);
                assert!(apart.max().double_value(&[]) < 1e-4);
                assert!(!write_logits(
                    &legal,
                    &features.contiguous(),
                    &cells,
                    &mut [0.0]
                ));
            }
        }
    }
}

#[test]
fn what_is_not_a_number_is_not_hidden() {
    for kind in KINDS {
        let (mut x, mut y) = stream_and_block(8, kind);
        let _ = x.fill_(f64::NAN);
        assert!(add_relu(&mut y, &mut x) && relu(&mut x));
        for tensor in [x, y] {
            assert_eq!(tensor.isnan().all().int64_value(&[]), 1);
        }
    }
}
