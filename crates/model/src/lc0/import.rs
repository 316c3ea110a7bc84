//! From Lc0's layers to [`Weights`].

use std::collections::BTreeMap;

use prost::Message as _;
use rookery_common::encoding::InputEncoding;
use rookery_common::file_kind::FileKind;
use rookery_common::network::{
    Architecture, Convolution, Dense, Layers, NetworkSpec, NormalizedConvolution, PolicyHead,
    PolicyOutput, ResidualBlock, Resnet, SqueezeExcitation, Tower, ValueHead,
};

use super::convolution::{self, Normed};
use super::error::{Lc0Error, Lc0Result};
use super::formats::{self, Kind, PolicyKind, ValueKind};
use super::layer::required;
use super::wire::weights::{ConvBlock, Layer, Residual, SEunit};
use super::wire::{BEGINNING, MAGIC, Net, TEXT_BEGINNINGS, Weights as Lc0Weights};
use super::{gzip, scan};
use crate::error::Result;
use crate::export_weights::with_scales;
use crate::weights::Weights;

/// Planes of the convolution policy head that are moves; Lc0's trainer adds 7 unused ones.
const POLICY_PLANES: u32 = 73;

/// Reads a network from the bytes of Lc0's file. Its moves-left head is dropped.
///
/// # Errors
///
/// [`ModelError::Lc0`](crate::ModelError::Lc0) with what is wrong or not supported, and
/// [`ModelError::Spec`](crate::ModelError::Spec) for sizes outside Rookery's bounds.
pub fn from_bytes(bytes: &[u8]) -> Result<Weights> {
    let packed = bytes.starts_with(&gzip::GZIP);
    let bytes = gzip::decompress(bytes)?;
    check_magic(&bytes, packed)?;
    let contents = scan::scan(&bytes)?;
    NetworkSpec::resnet(contents.blocks.max(1), 8).check()?;
    let net = Net::decode(bytes).map_err(|error| Lc0Error::Schema(error.to_string()))?;
    let kind = formats::kind(&net, &contents)?;
    let Some(lc0) = &net.weights else {
        return Err(Lc0Error::Missing("weights".to_owned()).into());
    };
    let mut spec = spec(lc0, kind)?;
    let training = net.training_params.as_ref();
    spec.training_step = training.map_or(0, |t| t.training_steps().into());
    spec.check()?;
    let layers = Layers::new(&spec)?;
    let tensors = Importer::default().network(&layers, lc0, spec.input)?;
    Weights::new(spec, tensors)
}

/// The one field that says what a message is. Writers put it first, and need not.
#[derive(prost::Message)]
struct Head {
    #[prost(fixed32, optional, tag = "1")]
    magic: Option<u32>,
}

/// Whether a file, unpacked, says that it is a network of Lc0.
pub(super) fn has_magic(bytes: &[u8]) -> bool {
    let decoded = || Head::decode(bytes).is_ok_and(|head| head.magic == Some(MAGIC));
    bytes.starts_with(&BEGINNING) || decoded()
}

/// Whether a file begins as weights as text do.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    TEXT_BEGINNINGS.iter().any(|text| bytes.starts_with(text))
}

fn check_magic(bytes: &[u8], packed: bool) -> Lc0Result<()> {
    if has_magic(bytes) {
        return Ok(());
    }
    if is_text(bytes) {
        return Err(Lc0Error::Text);
    }
    Err(match FileKind::of(bytes) {
        Some(_) if packed && bytes.is_empty() => Lc0Error::Nothing,
        Some(kind) if packed && kind.is_safetensors() => Lc0Error::PackedSafetensors,
        Some(kind) if packed => Lc0Error::Holds(kind),
        Some(kind) => Lc0Error::Other(kind),
        None => Lc0Error::Magic,
    })
}

/// The specification that follows from the lengths of layers; nothing is checked against its
/// bounds yet.
fn spec(lc0: &Lc0Weights, kind: Kind) -> Lc0Result<NetworkSpec> {
    let blocks = lc0.residual.len() as u32;
    let mut spec = NetworkSpec::resnet(blocks, 8);
    let block = |block: &Option<ConvBlock>| block.clone().unwrap_or_default();
    let input = block(&lc0.input);
    let unit = spec.input.planes() * 9;
    let filters = required(input.weights.as_ref(), "input.weights")?.multiple_of(unit)?;
    spec.architecture = Architecture::Resnet(Resnet {
        blocks,
        filters,
        se_ratio: se_ratio(&lc0.residual, filters)?,
        activation: kind.activation,
    });

    let policy = block(&lc0.policy);
    let policy = required(policy.weights.as_ref(), "policy.weights")?;
    spec.policy.head = match kind.policy {
        PolicyKind::Convolution => convolution_head(policy.multiple_of(filters as usize * 9)?)?,
        PolicyKind::Dense => PolicyHead::Dense {
            channels: policy.multiple_of(filters as usize)?,
        },
    };
    let value = block(&lc0.value);
    let value = required(value.weights.as_ref(), "value.weights")?;
    let channels = value.multiple_of(filters as usize)?;
    let hidden = required(lc0.ip1_val_b.as_ref(), "ip1_val_b")?.multiple_of(1)?;
    spec.value = match kind.value {
        ValueKind::Wdl => ValueHead::Wdl { channels, hidden },
        ValueKind::Scalar => ValueHead::Scalar { channels, hidden },
    };
    Ok(spec)
}

fn convolution_head(planes: u32) -> Lc0Result<PolicyHead> {
    if planes >= POLICY_PLANES {
        return Ok(PolicyHead::Convolution);
    }
    Err(Lc0Error::NotSupported {
        what: "a convolution policy head with planes",
        found: planes.to_string(),
        supported: "73 or more",
    })
}

/// Filters for each unit of the squeeze-excitations, which all blocks or none must have. Where the
/// units are no divisor of the filters, the next one above counts: there will be units that add
/// nothing.
fn se_ratio(blocks: &[Residual], filters: u32) -> Lc0Result<Option<u32>> {
    let excitations: Vec<&SEunit> = blocks.iter().filter_map(|b| b.se.as_ref()).collect();
    if excitations.is_empty() {
        return Ok(None);
    }
    if excitations.len() != blocks.len() {
        return Err(some_excite(excitations.len(), blocks.len()));
    }
    let mut most = 0;
    for (index, se) in excitations.iter().enumerate() {
        let label = format!("residual.{index}.se.b1");
        most = most.max(required(se.b1.as_ref(), &label)?.multiple_of(1)?);
    }
    let mut enough = (most..=filters).filter(|units| filters.is_multiple_of(*units));
    match enough.next() {
        Some(units) => Ok(Some(filters / units)),
        None => Err(Lc0Error::NotSupported {
            what: "squeeze-excitation with units",
            found: most.to_string(),
            supported: "as many as there are filters at most",
        }),
    }
}

fn some_excite(with: usize, blocks: usize) -> Lc0Error {
    Lc0Error::NotSupported {
        what: "squeeze-excitation in some blocks only,",
        found: format!("{with} of {blocks},"),
        supported: "all or none",
    }
}

/// Collects the numbers of a network's tensors.
#[derive(Default)]
struct Importer {
    tensors: BTreeMap<String, Vec<f32>>,
}

impl Importer {
    fn network(
        mut self,
        layers: &Layers,
        lc0: &Lc0Weights,
        input: InputEncoding,
    ) -> Lc0Result<BTreeMap<String, Vec<f32>>> {
        let Tower::Residual(tower) = &layers.tower;
        self.convolution(&tower.input, "input", lc0.input.as_ref())?;
        self.undivide(&tower.input, input);
        for (index, (layers, block)) in tower.blocks.iter().zip(&lc0.residual).enumerate() {
            self.block(layers, &format!("residual.{index}"), block)?;
        }
        let first = &layers.policy.convolution;
        match &layers.policy.output {
            PolicyOutput::Planes(planes) => {
                self.convolution(first, "policy1", lc0.policy1.as_ref())?;
                self.policy_planes(planes, lc0.policy.as_ref())?;
            }
            PolicyOutput::Dense(dense) => {
                self.convolution(first, "policy", lc0.policy.as_ref())?;
                self.dense(dense, "ip_pol", [&lc0.ip_pol_w, &lc0.ip_pol_b])?;
            }
        }
        let value = &layers.value;
        self.convolution(&value.convolution, "value", lc0.value.as_ref())?;
        self.dense(&value.hidden, "ip1_val", [&lc0.ip1_val_w, &lc0.ip1_val_b])?;
        self.dense(&value.output, "ip2_val", [&lc0.ip2_val_w, &lc0.ip2_val_b])?;
        Ok(self.tensors)
    }

    fn block(&mut self, layers: &ResidualBlock, lc0: &str, block: &Residual) -> Lc0Result<()> {
        let (conv1, conv2) = (format!("{lc0}.conv1"), format!("{lc0}.conv2"));
        self.convolution(&layers.conv1, &conv1, block.conv1.as_ref())?;
        self.convolution(&layers.conv2, &conv2, block.conv2.as_ref())?;
        match (&layers.excitation, &block.se) {
            (Some(layers), Some(se)) => self.excitation(layers, &format!("{lc0}.se"), se),
            _ => Ok(()),
        }
    }

    /// A squeeze-excitation, with units of zeros where the specification has more than the file.
    fn excitation(&mut self, layers: &SqueezeExcitation, lc0: &str, se: &SEunit) -> Lc0Result<()> {
        let SqueezeExcitation { squeeze, excite } = layers;
        let [filters, all, outputs] =
            [squeeze.inputs, squeeze.outputs, excite.outputs].map(|size| size as usize);
        let units = required(se.b1.as_ref(), &format!("{lc0}.b1"))?.len();
        let numbers = |layer: &Option<Layer>, part: &str, count: usize| {
            required(layer.as_ref(), &format!("{lc0}.{part}"))?.numbers(count)
        };
        let mut weight = numbers(&se.w1, "w1", units * filters)?;
        weight.resize(all * filters, 0.0);
        let mut bias = numbers(&se.b1, "b1", units)?;
        bias.resize(all, 0.0);
        self.put(&squeeze.name, [("weight", weight), ("bias", bias)]);
        let weight = widened(&numbers(&se.w2, "w2", outputs * units)?, units, all);
        let bias = numbers(&se.b2, "b2", outputs)?;
        self.put(&excite.name, [("weight", weight), ("bias", bias)]);
        Ok(())
    }

    /// A convolution and its normalisation.
    fn convolution(
        &mut self,
        layer: &NormalizedConvolution,
        lc0: &str,
        block: Option<&ConvBlock>,
    ) -> Lc0Result<()> {
        let missing = || Lc0Error::Missing(lc0.to_owned());
        let outputs = layer.outputs as usize;
        let weights = outputs * (layer.inputs * layer.kernel * layer.kernel) as usize;
        let parts = Normed::read(block.ok_or_else(missing)?, lc0, weights, outputs)?;
        let parts = [
            ("weight", parts.weight),
            ("norm.weight", parts.gamma),
            ("norm.bias", parts.beta),
            ("norm.mean", parts.mean),
            ("norm.variance", parts.variance),
        ];
        self.put(&layer.name, parts);
        Ok(())
    }

    /// The last convolution of the policy, which has no normalisation here. Planes after the last
    /// that is a move are left out or added.
    fn policy_planes(&mut self, layer: &Convolution, block: Option<&ConvBlock>) -> Lc0Result<()> {
        let missing = || Lc0Error::Missing("policy".to_owned());
        let block = block.ok_or_else(missing)?;
        let planes = layer.outputs as usize;
        let plane = (layer.inputs * layer.kernel * layer.kernel) as usize;
        let found = required(block.weights.as_ref(), "policy.weights")?.len() / plane;
        let [mut weight, mut bias] = convolution::folded(block, "policy", found * plane, found)?;
        weight.resize(planes * plane, 0.0);
        bias.resize(planes, 0.0);
        self.put(&layer.name, [("weight", weight), ("bias", bias)]);
        Ok(())
    }

    fn dense(&mut self, layer: &Dense, lc0: &str, parts: [&Option<Layer>; 2]) -> Lc0Result<()> {
        let numbers = |part: &Option<Layer>, end: &str, count: u32| {
            required(part.as_ref(), &format!("{lc0}_{end}"))?.numbers(count as usize)
        };
        let weight = numbers(parts[0], "w", layer.inputs * layer.outputs)?;
        let bias = numbers(parts[1], "b", layer.outputs)?;
        self.put(&layer.name, [("weight", weight), ("bias", bias)]);
        Ok(())
    }

    /// Lc0's weights are for counts that are not divided, Rookery's for divided ones.
    fn undivide(&mut self, layer: &NormalizedConvolution, input: InputEncoding) {
        if let Some(weight) = self.tensors.get_mut(&format!("{}.weight", layer.name)) {
            for (weight, scale) in with_scales(weight, input) {
                *weight = (f64::from(*weight) * scale) as f32;
            }
        }
    }

    fn put<const N: usize>(&mut self, layer: &str, parts: [(&str, Vec<f32>); N]) {
        let named = parts.map(|(part, numbers)| (format!("{layer}.{part}"), numbers));
        self.tensors.extend(named);
    }
}

/// A matrix with rows of `from` numbers as one with rows of `to`, zeros being added.
fn widened(matrix: &[f32], from: usize, to: usize) -> Vec<f32> {
    let zeros = to.saturating_sub(from);
    let rows = matrix.chunks_exact(from);
    rows.flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0.0, zeros)))
        .collect()
}
