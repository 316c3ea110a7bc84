//! Which kinds of Lc0's networks are read, and how they are named.

use rookery_common::network::Activation;

use super::error::{Lc0Error, Lc0Result};
use super::scan::Contents;
use super::wire::network_format::{
    DefaultActivation, InputFormat, NetworkStructure, PolicyFormat, ValueFormat,
};
use super::wire::{Net, NetworkFormat, format};

/// The structures that residual networks have.
const RESIDUAL: &str = "a residual network, with or without squeeze-excitation";

/// What a file says of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) activation: Activation,
    pub(super) policy: PolicyKind,
    pub(super) value: ValueKind,
}

/// How a policy is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyKind {
    Dense,
    Convolution,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Scalar,
    Wdl,
}

/// The oldest networks' kind, where a file names no heads.
const CLASSICAL: Kind = Kind {
    activation: Activation::Relu,
    policy: PolicyKind::Dense,
    value: ValueKind::Scalar,
};

/// The first Lc0 (major and minor version) that goes by what each layer says of its encoding, and no
/// more by what the file says.
const FIRST_LC0_WITH_ENCODED_LAYERS: (u32, u32) = (0, 33);

/// Checks that a file holds a network of a supported kind.
pub(super) fn kind(net: &Net, contents: &Contents) -> Lc0Result<Kind> {
    check_encoding(net)?;
    let format = net.format.as_ref();
    let kind = match format.and_then(|format| format.network_format.as_ref()) {
        Some(network) => named_kind(network, contents)?,
        None => CLASSICAL,
    };
    match contents.foreign {
        // Lc0 may compute with what is not looked at here: it prefers heads of networks that have
        // several to the one head of others.
        Some(number) => Err(refuse(
            "field",
            format!("{number} of the weights"),
            "what residual networks have",
        )),
        None => Ok(kind),
    }
}

fn check_encoding(net: &Net) -> Lc0Result<()> {
    let encoding = net.format.as_ref().and_then(|f| f.weights_encoding);
    let version = net.min_version.as_ref().map(|v| (v.major(), v.minor()));
    let of_layers = version.is_some_and(|version| version >= FIRST_LC0_WITH_ENCODED_LAYERS);
    match encoding {
        Some(number) if number != format::Encoding::Linear16 as i32 && !of_layers => Err(refuse(
            "the weights' encoding",
            number.to_string(),
            "LINEAR16",
        )),
        _ => Ok(()),
    }
}

/// The kind that a file's format names.
fn named_kind(network: &NetworkFormat, contents: &Contents) -> Lc0Result<Kind> {
    let heads_are_named = structure(network, contents)?;
    let input = network.input();
    if input != InputFormat::InputClassical112Plane {
        let found = named(network.input, input.as_str_name());
        return Err(refuse("the input", found, "INPUT_CLASSICAL_112_PLANE"));
    }
    let kind = Kind {
        activation: activation(network)?,
        ..CLASSICAL
    };
    if !heads_are_named {
        return Ok(kind);
    }
    Ok(Kind {
        policy: policy(network)?,
        value: value(network)?,
        ..kind
    })
}

/// Whether the format names the heads; older files do not.
fn structure(network: &NetworkFormat, contents: &Contents) -> Lc0Result<bool> {
    if contents.encoders > 0 {
        let found = format!("attention body with {} encoder layers", contents.encoders);
        return Err(refuse("the network", found, RESIDUAL));
    }
    match network.network() {
        NetworkStructure::NetworkClassical | NetworkStructure::NetworkSe => Ok(false),
        NetworkStructure::NetworkClassicalWithHeadformat
        | NetworkStructure::NetworkSeWithHeadformat => Ok(true),
        other => {
            let found = named(network.network, other.as_str_name());
            Err(refuse("the network", found, RESIDUAL))
        }
    }
}

fn policy(network: &NetworkFormat) -> Lc0Result<PolicyKind> {
    match network.policy() {
        PolicyFormat::PolicyClassical => Ok(PolicyKind::Dense),
        PolicyFormat::PolicyConvolution => Ok(PolicyKind::Convolution),
        other => {
            let found = named(network.policy, other.as_str_name());
            let supported = "POLICY_CLASSICAL and POLICY_CONVOLUTION";
            Err(refuse("the policy head", found, supported))
        }
    }
}

fn value(network: &NetworkFormat) -> Lc0Result<ValueKind> {
    match network.value() {
        ValueFormat::ValueClassical => Ok(ValueKind::Scalar),
        ValueFormat::ValueWdl => Ok(ValueKind::Wdl),
        other => {
            let found = named(network.value, other.as_str_name());
            Err(refuse(
                "the value head",
                found,
                "VALUE_CLASSICAL and VALUE_WDL",
            ))
        }
    }
}

fn activation(network: &NetworkFormat) -> Lc0Result<Activation> {
    let number = network.default_activation.unwrap_or_default();
    match DefaultActivation::try_from(number) {
        Ok(DefaultActivation::Relu) => Ok(Activation::Relu),
        Ok(DefaultActivation::Mish) => Ok(Activation::Mish),
        Err(_) => Err(refuse(
            "the activation",
            number.to_string(),
            "relu and mish",
        )),
    }
}

fn refuse(what: &'static str, found: String, supported: &'static str) -> Lc0Error {
    Lc0Error::NotSupported {
        what,
        found,
        supported,
    }
}

/// The name of an enumeration's value, or its number where this version knows no name.
fn named(number: Option<i32>, name: &str) -> String {
    match number {
        // An unknown number reads as the first value, whose own number is 0.
        Some(number) if number != 0 && name.ends_with("_UNKNOWN") => format!("number {number}"),
        _ => name.to_owned(),
    }
}
