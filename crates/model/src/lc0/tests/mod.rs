use bytes::Bytes;
use prost::Message as _;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::ContentHash;
use rookery_common::network::{
    Activation, AuxiliaryHead, Layers, NetworkSpec, NormalizedConvolution, PolicyHead, Role,
    ValueHead,
};

use super::wire::network_format::{InputFormat, NetworkStructure, PolicyFormat};
use super::wire::weights::Residual;
use super::wire::{MAGIC, Net, Weights as Lc0Weights};
use super::*;
use crate::error::ModelError;
use crate::export_weights::Layer;
use crate::folding::FoldedConvolution;
use crate::testing::busy_weights;

mod variants;

/// Networks of every kind that Lc0 has.
fn lc0_specs() -> Vec<NetworkSpec> {
    let mut plain = NetworkSpec::resnet(1, 8);
    let body = plain.body_mut().unwrap();
    body.se_ratio = None;
    plain.policy.head = PolicyHead::Dense { channels: 3 };
    plain.value = ValueHead::Scalar {
        channels: 2,
        hidden: 5,
    };
    let mut mish = NetworkSpec::resnet(1, 16);
    let body = mish.body_mut().unwrap();
    body.activation = Activation::Mish;
    vec![NetworkSpec::resnet(2, 8), plain, mish]
}

fn small() -> Weights {
    busy_weights(&NetworkSpec::resnet(1, 8), 5)
}

fn unpacked(file: &[u8]) -> Net {
    Net::decode(gzip::decompress(file).unwrap()).unwrap()
}

/// What reading says to a network that was changed.
fn refusal(change: impl FnOnce(&mut Net)) -> String {
    let mut net = unpacked(&to_bytes(&small()).unwrap());
    change(&mut net);
    from_bytes(&net.encode_to_vec()).unwrap_err().to_string()
}

fn body(net: &mut Net) -> &mut Lc0Weights {
    net.weights.as_mut().unwrap()
}

fn fold(weights: &Weights, name: &str) -> FoldedConvolution {
    FoldedConvolution::new(weights, &convolution(weights, name)).unwrap()
}

fn convolution(weights: &Weights, name: &str) -> NormalizedConvolution {
    let layers = Layers::new(weights.spec()).unwrap();
    let mut all = layers.normalized_convolutions().into_iter();
    all.find(|layer| layer.name == name).unwrap().clone()
}

/// The numbers of a tensor in 64 bits.
fn wide(weights: &Weights, name: &str) -> Vec<f64> {
    let values = weights.get(name).unwrap().values().iter();
    values.copied().map(f64::from).collect()
}

/// The largest difference between numbers, as many on either side.
fn furthest(left: &[f64], right: &[f64]) -> f64 {
    assert_eq!(left.len(), right.len());
    let apart = left.iter().zip(right).map(|(a, b)| (a - b).abs());
    apart.fold(0.0, f64::max)
}

/// Asserts that two networks compute with the same numbers, up to what 16 bits lose.
fn assert_same(left: &Weights, right: &Weights) {
    assert_eq!(left.spec(), right.spec());
    let layers = Layers::new(left.spec()).unwrap();
    let convolutions = layers.normalized_convolutions().into_iter().map(|layer| {
        let of = |weights| match layer.name.as_str() {
            "input" => Layer::input(weights, layer).unwrap(),
            _ => Layer::convolution(weights, layer).unwrap(),
        };
        (layer.name.clone(), [of(left), of(right)])
    });
    let affine = rookery_common::network::tensors(left.spec());
    let affine = affine.iter().filter(|tensor| tensor.role == Role::Bias);
    let affine = affine.map(|bias| {
        let name = bias.name.strip_suffix(".bias").unwrap();
        let of = |weights| Layer::affine(weights, name).unwrap();
        (name.to_owned(), [of(left), of(right)])
    });
    for (name, [a, b]) in convolutions.chain(affine) {
        for (a, b) in [(a.weight, b.weight), (a.bias, b.bias)] {
            let low = a.values.iter().copied().fold(f32::INFINITY, f32::min);
            let high = a.values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let step = (high - low) / 65_535.0;
            for (a, b) in a.values.iter().zip(&b.values) {
                assert!((a - b).abs() <= 4.0 * step + 1e-6, "{name}: {a} became {b}");
            }
        }
    }
}

#[test]
fn a_network_survives_lc0s_format() {
    for mut spec in lc0_specs() {
        spec.training_step = 12_345;
        let weights = busy_weights(&spec, 7);
        let file = to_bytes(&weights).unwrap();
        let read = from_bytes(&file).unwrap();
        assert_same(&weights, &read);
        assert!(read.to_bytes().is_ok());
        let again = to_bytes(&read).unwrap();
        assert!(again == file, "a network of Lc0 does not stay as it is");
    }
}

/// The numbers of a network are written as they always were: users compare files.
#[test]
fn the_file_of_a_seed_never_changes() {
    let mut spec = NetworkSpec::resnet(2, 16);
    spec.auxiliary = AuxiliaryHead::ALL.to_vec();
    let file = to_bytes(&Weights::random(spec, 7).unwrap()).unwrap();
    let hash = ContentHash::of(&gzip::decompress(&file).unwrap());
    assert_eq!(
        hash.to_string(),
        "52710aa5381c1bede08f1f23805cd7ffad247c082dc8c94786f61f283a1bcb99"
    );
}

#[test]
fn lc0s_rule50_plane_is_not_divided() {
    let weights = small();
    let read = from_bytes(&to_bytes(&weights).unwrap()).unwrap();
    let plane = |weights: &Weights| -> Vec<f64> {
        let weight = fold(weights, "input").weight;
        let outputs = weight.chunks_exact(112 * 9);
        outputs
            .flat_map(|row| row[109 * 9..110 * 9].to_vec())
            .collect()
    };
    let lc0 = Layer::input(&weights, &convolution(&weights, "input")).unwrap();
    let ours = plane(&weights)[4];
    assert!((f64::from(lc0.weight.values[109 * 9 + 4]) * 99.0 - ours).abs() < 1e-5);
    let apart = furthest(&plane(&weights), &plane(&read));
    assert!(apart < 99.0 * 2e-5, "{apart}");
}

#[test]
fn normalisations_of_lc0_are_read() {
    let mut net = unpacked(&to_bytes(&small()).unwrap());
    let block = body(&mut net).residual[0].conv1.as_mut().unwrap();
    block.bn_gammas = Some(layer::linear16(&[-2.0; 8]));
    block.bn_betas = Some(layer::linear16(&[0.5; 8]));
    block.bn_means = Some(layer::linear16(&[3.0; 8]));
    block.bn_stddivs = Some(layer::linear16(&[4.0; 8]));
    block.biases = Some(layer::linear16(&[1.0; 8]));
    let read = from_bytes(&net.encode_to_vec()).unwrap();
    let folded = fold(&read, "blocks.0.conv1");
    let deviation = 4.000_01_f64.sqrt();
    let scaled = |number: f64| number * -2.0 / deviation;
    let expected: Vec<f64> = wide(&read, "blocks.0.conv1.weight")
        .into_iter()
        .map(scaled)
        .collect();
    let apart = furthest(&folded.weight, &expected);
    assert!(apart < 1e-6, "{apart}");
    // (1 - 3) * -2 / deviation + 0.5
    let expected = 4.0 / deviation + 0.5;
    assert!((folded.bias[3] - expected).abs() < 1e-6);
}

#[test]
fn biases_without_normalisation_are_read() {
    let mut net = unpacked(&to_bytes(&small()).unwrap());
    let conv1 = body(&mut net).residual[0].conv1.as_mut().unwrap();
    conv1.biases = conv1.bn_betas.take();
    (conv1.bn_means, conv1.bn_stddivs, conv1.bn_gammas) = (None, None, None);
    let biases = conv1.biases.clone();
    let biases = layer::required(biases.as_ref(), "")
        .unwrap()
        .numbers(8)
        .unwrap();
    let read = from_bytes(&net.encode_to_vec()).unwrap();
    let folded = fold(&read, "blocks.0.conv1");
    let apart = furthest(&folded.weight, &wide(&read, "blocks.0.conv1.weight"));
    assert!(apart < 1e-6, "{apart}");
    let biases: Vec<f64> = biases.into_iter().map(f64::from).collect();
    let apart = furthest(&folded.bias, &biases);
    assert!(apart < 1e-6, "{apart}");
}

#[test]
fn the_oldest_files_have_classical_heads() {
    let weights = busy_weights(&lc0_specs()[1], 3);
    let mut net = unpacked(&to_bytes(&weights).unwrap());
    net.format = None;
    assert_same(&weights, &from_bytes(&net.encode_to_vec()).unwrap());
}

#[test]
fn other_kinds_of_networks_are_refused_by_name() {
    fn format(net: &mut Net) -> &mut super::wire::NetworkFormat {
        net.format
            .as_mut()
            .unwrap()
            .network_format
            .as_mut()
            .unwrap()
    }
    let input = InputFormat::Input112WithCanonicalizationV2;
    let text = refusal(|net| format(net).input = Some(input.into()));
    assert!(
        text.contains("INPUT_112_WITH_CANONICALIZATION_V2 is not"),
        "{text}"
    );
    let text = refusal(|net| format(net).input = Some(77));
    assert!(text.contains("input number 77"), "{text}");
    let attention = NetworkStructure::NetworkAttentionbodyWithHeadformat;
    let text = refusal(|net| format(net).network = Some(attention.into()));
    assert!(
        text.contains("NETWORK_ATTENTIONBODY_WITH_HEADFORMAT"),
        "{text}"
    );
    let policy = PolicyFormat::PolicyAttention;
    let text = refusal(|net| format(net).policy = Some(policy.into()));
    assert!(text.contains("POLICY_ATTENTION"), "{text}");
}

#[test]
fn all_blocks_or_none_have_squeeze_excitation() {
    let mut net = unpacked(&to_bytes(&busy_weights(&NetworkSpec::resnet(2, 8), 5)).unwrap());
    for index in [1, 0] {
        let se = body(&mut net).residual[index].se.take();
        let text = from_bytes(&net.encode_to_vec()).unwrap_err().to_string();
        assert!(text.contains("some blocks only, 1 of 2,"), "{text}");
        body(&mut net).residual[index].se = se;
    }
}

#[test]
fn an_attention_body_is_recognised_by_its_encoders() {
    let mut bytes = unpacked(&to_bytes(&small()).unwrap()).encode_to_vec();
    // Net.weights (10) with one Weights.encoder (27) that is empty.
    bytes.extend_from_slice(&[0x52, 3, 0xda, 0x01, 0]);
    let text = from_bytes(&bytes).unwrap_err().to_string();
    assert!(text.contains("attention body with 1 encoder"), "{text}");
}

/// Protobuf's writers may put fields in any order.
#[test]
fn the_magic_may_come_last() {
    let bytes = unpacked(&to_bytes(&small()).unwrap()).encode_to_vec();
    let (magic, rest) = bytes.split_at(wire::BEGINNING.len());
    assert_eq!(magic, wire::BEGINNING);
    assert_eq!(
        from_bytes(&[rest, magic].concat()).unwrap().spec(),
        from_bytes(&bytes).unwrap().spec()
    );
    let nameless = from_bytes(rest);
    assert!(matches!(nameless, Err(ModelError::Lc0(Lc0Error::Magic))));
    let other = [rest, &[0x0d, 1, 2, 3, 4]].concat();
    assert!(matches!(
        from_bytes(&other),
        Err(ModelError::Lc0(Lc0Error::Magic))
    ));
}

#[test]
fn networks_of_ours_that_are_packed_are_to_be_unpacked() {
    let packed = gzip::compress(&small().to_bytes().unwrap()).unwrap();
    let text = from_bytes(&packed).unwrap_err().to_string();
    assert!(
        text.contains("a safetensors file; unpack it first"),
        "{text}"
    );
    let cut = &packed[..packed.len() / 2];
    let text = from_bytes(cut).unwrap_err().to_string();
    assert!(text.contains("download it again"), "{text}");
}

#[test]
fn blocks_are_counted_before_they_are_decoded() {
    let weights = Lc0Weights {
        residual: vec![Residual::default(); 100_000],
        ..Lc0Weights::default()
    };
    let net = Net {
        magic: Some(MAGIC),
        weights: Some(weights),
        ..Net::default()
    };
    let bytes = Bytes::from(net.encode_to_vec());
    assert_eq!(scan::scan(&bytes).unwrap().blocks, 100_000);
    let text = from_bytes(&bytes).unwrap_err().to_string();
    assert!(text.contains("blocks is 100000"), "{text}");
}

#[test]
fn layers_that_are_wrong_are_named() {
    let text = refusal(|net| body(net).value = None);
    assert!(text.contains("layer value.weights is missing"), "{text}");
    let text = refusal(|net| body(net).ip2_val_w = None);
    assert!(text.contains("layer ip2_val_w is missing"), "{text}");
    let text = refusal(|net| body(net).ip2_val_b = Some(ones(2)));
    assert!(
        text.contains("ip2_val_b has 4 bytes, expected are 6"),
        "{text}"
    );
    let text = refusal(|net| body(net).input.as_mut().unwrap().weights = Some(ones(5)));
    assert!(text.contains("input.weights has 5 numbers"), "{text}");
    let negative = Some(layer::linear16(&[-1.0; 8]));
    let text = refusal(|net| body(net).input.as_mut().unwrap().bn_stddivs = negative);
    assert!(text.contains("input.bn_stddivs holds a negative"), "{text}");
    let text = refusal(|net| {
        let layer = body(net).ip1_val_w.as_mut().unwrap();
        layer.min_val = Some(f32::NAN);
    });
    assert!(
        text.contains("ip1_val_w holds a number that is not finite"),
        "{text}"
    );
    let text = refusal(|net| net.weights = None);
    assert!(text.contains("weights is missing"), "{text}");
}

fn ones(count: usize) -> super::wire::weights::Layer {
    layer::linear16(&vec![1.0; count])
}

#[test]
fn files_are_known_by_how_they_begin() {
    let weights = small();
    let packed = to_bytes(&weights).unwrap();
    let plain = gzip::decompress(&packed).unwrap().to_vec();
    let ours = weights.to_bytes().unwrap();
    for (bytes, expected) in [
        (packed, true),
        (plain, true),
        (ours, false),
        (vec![0x1f], false),
    ] {
        assert_eq!(is_lc0(&bytes), expected);
    }
    assert!(!is_lc0(&[]));
}

#[test]
fn damaged_files_are_refused() {
    let packed = to_bytes(&small()).unwrap();
    let bytes = gzip::decompress(&packed).unwrap();
    for length in (0..bytes.len()).step_by(997) {
        assert!(from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    for length in (0..packed.len()).step_by(997) {
        assert!(from_bytes(&packed[..length]).is_err(), "{length} bytes");
    }
    // Any other byte in the protobuf's skeleton must not make reading panic.
    for index in (0..bytes.len().min(40)).chain(bytes.len() - 40..bytes.len()) {
        for bit in 0..8 {
            let mut changed = bytes.to_vec();
            changed[index] ^= 1 << bit;
            drop(from_bytes(&changed));
        }
    }
    // Layers of one byte, which is no whole number.
    let halves = "0dc001000052100a050a031a010012071a0512031a0100";
    let halves: Vec<u8> = (0..halves.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&halves[at..at + 2], 16).unwrap())
        .collect();
    let text = from_bytes(&halves).unwrap_err().to_string();
    assert!(text.contains("input.weights has 0 numbers"), "{text}");
    for text in [&b"2 1 2 3"[..], b""] {
        assert!(matches!(
            from_bytes(text),
            Err(ModelError::Lc0(Lc0Error::Other(_)))
        ));
    }
}

#[test]
fn networks_that_lc0_does_not_have_are_refused() {
    let mut spec = NetworkSpec::resnet(1, 8);
    spec.input = InputEncoding::Classic19;
    let error = to_bytes(&Weights::random(spec, 1).unwrap()).unwrap_err();
    assert!(error.to_string().contains("input classic-19"), "{error}");
    let mut spec = NetworkSpec::resnet(1, 8);
    spec.policy.encoding = PolicyEncoding::Az73;
    let error = to_bytes(&Weights::random(spec, 1).unwrap()).unwrap_err();
    assert!(error.to_string().contains("policy az-73"), "{error}");
}
