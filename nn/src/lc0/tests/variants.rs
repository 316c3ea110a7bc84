//! Files that Lc0 takes and that are not as its own trainer writes them.

use super::*;
use crate::lc0::wire::network_format::DefaultActivation;
use crate::lc0::wire::{EngineVersion, NetworkFormat};

fn network_format(net: &mut Net) -> &mut NetworkFormat {
    let format = net.format.as_mut().unwrap();
    format.network_format.as_mut().unwrap()
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
                Err(NnError::Lc0(Lc0Error::Text))
            ));
        }
    }
}
