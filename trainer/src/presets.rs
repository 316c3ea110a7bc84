//! Networks by name: sizes that suit a purpose, and networks of others to compare with.

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{
    Activation, Architecture, NetworkSpec, PolicyHead, PolicySpec, Resnet, SpecError, ValueHead,
};

/// The names.
pub const NAMES: [&str; 7] = [
    "tiny",
    "small",
    "medium",
    "large",
    "alphazero",
    "thesis",
    "deltazero",
];

/// The network of a name; none if there is no such name.
///
/// | name | network |
/// |---|---|
/// | `tiny` | 4x32, for tests and first tries |
/// | `small`, `medium`, `large` | 6x64, 10x128, 20x256 |
/// | `alphazero` | `az-119`, 20x256 without squeeze-excitation, `az-73` by convolution, scalar value (Silver et al., Science 2018) |
/// | `thesis` | `classic-19`, 19x256 without squeeze-excitation, `az-73` by convolution, scalar value |
/// | `deltazero` | `classic-19`, 19x64 without squeeze-excitation, `flat-1968` by a dense layer, scalar value with 40 % dropout |
pub fn spec(name: &str) -> Option<NetworkSpec> {
    Some(match name {
        "tiny" => NetworkSpec::resnet(4, 32),
        "small" => NetworkSpec::resnet(6, 64),
        "medium" => NetworkSpec::resnet(10, 128),
        "large" => NetworkSpec::resnet(20, 256),
        "alphazero" => plain(20, 256, InputEncoding::Az119, AZ73),
        "thesis" => plain(19, 256, InputEncoding::Classic19, AZ73),
        "deltazero" => NetworkSpec {
            value_dropout: 0.4,
            ..plain(19, 64, InputEncoding::Classic19, FLAT)
        },
        _ => return None,
    })
}

/// The network of a name or of a shape, blocks x filters.
///
/// # Errors
///
/// If the text is neither.
pub fn named_or_shaped(text: &str) -> anyhow::Result<NetworkSpec> {
    if let Some(spec) = spec(text) {
        return Ok(spec);
    }
    NetworkSpec::from_shape(text).map_err(|error| match error {
        SpecError::Shape(_) => anyhow::Error::new(error)
            .context(format!("the names of networks are {}", NAMES.join(", "))),
        // It is a shape, but one that cannot be.
        error => error.into(),
    })
}

const AZ73: PolicySpec = PolicySpec {
    encoding: PolicyEncoding::Az73,
    head: PolicyHead::Convolution,
};

/// Two planes before the dense layer, as AlphaGo Zero has.
const FLAT: PolicySpec = PolicySpec {
    encoding: PolicyEncoding::Flat1968,
    head: PolicyHead::Dense { channels: 2 },
};

/// A tower as AlphaZero's, with its value head: one plane, 256 hidden units, one number.
fn plain(blocks: u32, filters: u32, input: InputEncoding, policy: PolicySpec) -> NetworkSpec {
    let mut spec = NetworkSpec::resnet(blocks, filters);
    spec.architecture = Architecture::Resnet(Resnet {
        blocks,
        filters,
        se_ratio: None,
        activation: Activation::Relu,
    });
    spec.input = input;
    spec.policy = policy;
    spec.value = ValueHead::Scalar {
        channels: 1,
        hidden: 256,
    };
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_network_of_its_own() {
        let specs: Vec<_> = NAMES.iter().map(|name| spec(name).unwrap()).collect();
        for (index, spec) in specs.iter().enumerate() {
            assert_eq!(spec.check(), Ok(()));
            assert!(!specs[..index].contains(spec));
        }
        let shapes: Vec<_> = specs.iter().map(NetworkSpec::shape).collect();
        let expected = [
            "4x32", "6x64", "10x128", "20x256", "20x256", "19x256", "19x64",
        ];
        assert_eq!(shapes, expected);
        assert_eq!(spec("huge"), None);
    }

    #[test]
    fn names_are_listed_only_where_one_may_be_meant() {
        for (text, listed) in [("huge", true), ("2x12", false), ("0x64", false)] {
            let error = format!("{:#}", named_or_shaped(text).unwrap_err());
            assert_eq!(error.contains("alphazero"), listed, "{error}");
        }
    }
}
