//! Files that Lc0 takes and that are not as its own trainer writes them.

use super::*;
use crate::lc0::wire::network_format::DefaultActivation;
use crate::lc0::wire::weights::Layer as Lc0Layer;
use crate::lc0::wire::{EngineVersion, NetworkFormat};

/// The numbers of a layer.
fn numbers(found: Option<&Lc0Layer>, count: usize) -> Vec<f32> {
    layer::required(found, "").unwrap().numbers(count).unwrap()
}

fn network_format(net: &mut Net) -> &mut NetworkFormat {
    let format = net.format.as_mut().unwrap();
    format.network_format.as_mut().unwrap()
}

/// The largest difference between a tensor and numbers.
fn apart(weights: &Weights, name: &str, expected: &[f32]) -> f64 {
    let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
    furthest(&wide(weights, name), &expected)
}

#[test]
fn units_that_do_not_divide_the_filters_are_joined_by_zeros() {
    let (filters, units) = (16, 3);
    let mut net = unpacked(&to_bytes(&busy_weights(&NetworkSpec::resnet(1, 16), 5)).unwrap());
    let se = body(&mut net).residual[0].se.as_mut().unwrap();
    let squeeze = &numbers(se.w1.as_ref(), 4 * filters)[..units * filters];
    let bias = &numbers(se.b1.as_ref(), 4)[..units];
    let excite = numbers(se.w2.as_ref(), 2 * filters * 4);
    let rows = excite.chunks(4).map(|row| &row[..units]);
    let excite: Vec<f32> = rows.clone().flatten().copied().collect();
    let widened: Vec<f32> = rows.flat_map(|row| [row[0], row[1], row[2], 0.0]).collect();
    se.w1 = Some(layer::linear16(squeeze));
    se.b1 = Some(layer::linear16(bias));
    se.w2 = Some(layer::linear16(&excite));

    let read = from_bytes(&net.encode_to_vec()).unwrap();
    assert_eq!(read.spec().body().unwrap().se_ratio, Some(4));
    let filled = |numbers: &[f32], zeros: usize| [numbers, &vec![0.0; zeros]].concat();
    for (part, expected) in [
        ("squeeze.weight", filled(squeeze, filters)),
        ("squeeze.bias", filled(bias, 1)),
        ("excite.weight", widened),
    ] {
        let name = format!("blocks.0.se.{part}");
        assert!(apart(&read, &name, &expected) < 1e-4, "{name}");
    }
    assert!(read.to_bytes().is_ok());
}

#[test]
fn more_units_than_filters_are_refused() {
    let text = refusal(|net| {
        let se = body(net).residual[0].se.as_mut().unwrap();
        se.b1 = Some(ones(9));
    });
    assert!(text.contains("units 9 is not supported"), "{text}");
}

#[test]
fn a_normalisation_of_the_policy_s_planes_is_multiplied_in() {
    let weights = small();
    let mut net = unpacked(&to_bytes(&weights).unwrap());
    let plain = from_bytes(&net.encode_to_vec()).unwrap();
    let policy = body(&mut net).policy.as_mut().unwrap();
    policy.bn_gammas = Some(layer::linear16(&[-2.0; 80]));
    policy.bn_betas = Some(layer::linear16(&[0.5; 80]));
    policy.bn_means = Some(layer::linear16(&[3.0; 80]));
    policy.bn_stddivs = Some(layer::linear16(&[4.0; 80]));
    let read = from_bytes(&net.encode_to_vec()).unwrap();
    let scale = -2.0 / 4.000_01_f64.sqrt();
    let part = |weights: &Weights, part: &str| wide(weights, &format!("policy.planes.{part}"));
    let expected = part(&plain, "weight")
        .into_iter()
        .map(|number| number * scale);
    let apart = furthest(&part(&read, "weight"), &expected.collect::<Vec<_>>());
    assert!(apart < 1e-6, "{apart}");
    let expected = part(&plain, "bias")
        .into_iter()
        .map(|number| (number - 3.0) * scale + 0.5);
    let apart = furthest(&part(&read, "bias"), &expected.collect::<Vec<_>>());
    assert!(apart < 1e-6, "{apart}");
}

#[test]
fn policy_planes_that_are_no_moves_may_be_missing() {
    let planes = |count: usize| {
        let mut net = unpacked(&to_bytes(&small()).unwrap());
        let policy = body(&mut net).policy.as_mut().unwrap();
        let weights = &numbers(policy.weights.as_ref(), 80 * 72)[..count * 72];
        let biases = &numbers(policy.biases.as_ref(), 80)[..count];
        policy.weights = Some(layer::linear16(weights));
        policy.biases = Some(layer::linear16(biases));
        let expected = [weights, biases].map(<[f32]>::to_vec);
        (from_bytes(&net.encode_to_vec()), expected)
    };
    let (read, [mut weights, mut biases]) = planes(73);
    let read = read.unwrap();
    weights.resize(80 * 72, 0.0);
    biases.resize(80, 0.0);
    assert!(apart(&read, "policy.planes.weight", &weights) < 1e-4);
    assert!(apart(&read, "policy.planes.bias", &biases) < 1e-4);
    let text = planes(72).0.unwrap_err().to_string();
    assert!(text.contains("planes 72 is not supported"), "{text}");
}

#[test]
fn a_format_that_names_no_heads_may_name_an_activation() {
    let mut net = unpacked(&to_bytes(&busy_weights(&lc0_specs()[1], 3)).unwrap());
    let format = network_format(&mut net);
    format.network = Some(NetworkStructure::NetworkClassical.into());
    (format.policy, format.value) = (None, None);
    let read = from_bytes(&net.encode_to_vec()).unwrap();
    assert_eq!(read.spec().body().unwrap().activation, Activation::Relu);
    network_format(&mut net).default_activation = Some(DefaultActivation::Mish.into());
    let read = from_bytes(&net.encode_to_vec()).unwrap();
    assert_eq!(read.spec().body().unwrap().activation, Activation::Mish);
    network_format(&mut net).default_activation = Some(2);
    let text = from_bytes(&net.encode_to_vec()).unwrap_err().to_string();
    assert!(text.contains("activation 2"), "{text}");
}

#[test]
fn since_0_33_only_layers_say_how_they_are_encoded() {
    let weights = small();
    let mut net = unpacked(&to_bytes(&weights).unwrap());
    for encoding in [0, 2] {
        net.format.as_mut().unwrap().weights_encoding = Some(encoding);
        let version = |minor| EngineVersion {
            major: Some(0),
            minor: Some(minor),
            patch: None,
        };
        net.min_version = Some(version(32));
        let text = from_bytes(&net.encode_to_vec()).unwrap_err().to_string();
        let says = format!("the weights' encoding {encoding} is not");
        assert!(text.contains(&says), "{text}");
        net.min_version = Some(version(33));
        assert_same(&weights, &from_bytes(&net.encode_to_vec()).unwrap());
    }
}

/// Lc0 takes the heads of `Weights.policy_heads` (45) where there are some, and not those that are
/// read here.
#[test]
fn what_residual_networks_do_not_have_is_refused() {
    let net = unpacked(&to_bytes(&small()).unwrap());
    let with = |net: &Net, field: &[u8]| {
        // Net.weights (10) with one field.
        let more = [&[0x52, field.len() as u8][..], field].concat();
        from_bytes(&[net.encode_to_vec(), more].concat())
    };
    let (moves_left, policy_heads) = ([0x62, 0], [0xea, 0x02, 0]);
    assert!(with(&net, &moves_left).is_ok());
    let mut old = net.clone();
    old.format = None;
    for net in [&net, &old] {
        let text = with(net, &policy_heads).unwrap_err().to_string();
        assert!(text.contains("field 45 of the weights is not"), "{text}");
    }
}

#[test]
fn weights_as_text_are_named() {
    for text in [&b"2\n1 2 3"[..], b"1\n4", b"2\r\n1"] {
        let packed = gzip::compress(text).unwrap();
        for file in [text, &packed] {
            assert!(matches!(
                from_bytes(file),
                Err(ModelError::Lc0(Lc0Error::Text))
            ));
        }
    }
}
