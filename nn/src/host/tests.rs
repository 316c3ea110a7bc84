use rookery_common::network::NetworkSpec;
use tch::Tensor;

use super::*;
use crate::testing::busy_weights;

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

#[test]
fn the_end_of_a_block_is_as_libtorch_computes_it() {
    for kind in KINDS {
        for channels in [8, 24, 64] {
            let (x, mut y) = (
                activations(channels, 1, kind),
                activations(channels, 2, kind),
            );
            let expected = (&x + &y).relu();
            assert!(close(&mut y, &x));
            assert_near(&y, &expected);
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
                let part = |part: &str| weights.get(&format!("blocks.0.se.{name}.{part}")).unwrap();
                x.linear(part("weight"), Some(part("bias")))
            };
            let channels = i64::from(filters);
            let (x, mut y) = (
                activations(channels, 1, kind),
                activations(channels, 2, kind),
            );
            let means = y
                .to_kind(Kind::Float)
                .mean_dim([2_i64, 3].as_slice(), false, None);
            let both = layer("excite", &layer("squeeze", &means).relu()).reshape([5, -1, 1, 1]);
            let (gamma, beta) = (
                both.narrow(1, 0, channels),
                both.narrow(1, channels, channels),
            );
            let expected = (&x + gamma.sigmoid() * &y + beta).relu();
            assert!(
                Gate::new(&weights, "blocks.0.se")
                    .unwrap()
                    .close(&mut y, &x)
            );
            assert_near(&y, &expected);
        }
    }
}

#[test]
fn other_layouts_and_numbers_are_left_to_libtorch() {
    let x = activations(8, 1, Kind::Float);
    assert!(!close(&mut x.contiguous(), &x), "another order");
    assert!(
        !close(&mut activations(8, 1, Kind::BFloat16), &x),
        "other numbers"
    );
    assert!(
        !close(&mut activations(16, 1, Kind::Float), &x),
        "other channels"
    );
    assert!(!rectify(&mut activations(8, 1, Kind::Double)));
    assert!(!rectify(&mut x.narrow(1, 0, 4)), "a part of a tensor");
    assert!(rectify(&mut x.flatten(1, -1)), "a copy in another shape");
}

#[test]
fn what_is_not_a_number_is_not_hidden() {
    for kind in KINDS {
        let mut x = activations(8, 1, kind);
        let _ = x.fill_(f64::NAN);
        let mut y = activations(8, 2, kind);
        assert!(close(&mut y, &x) && rectify(&mut x));
        for tensor in [x, y] {
            assert_eq!(tensor.isnan().all().int64_value(&[]), 1);
        }
    }
}
