//! From Lc0's layers to [`Weights`].

use std::collections::BTreeMap;

use prost::Message as _;
use rookery_common::encoding::InputEncoding;
use rookery_common::network::layout::NORM_EPSILON;
use rookery_common::network::{
    Architecture, NetworkSpec, PolicyHead, Resnet, TensorLayout, ValueHead, tensors,
};
use tch::{Kind as Dtype, Tensor};

use super::error::{Lc0Error, Lc0Result};
use super::formats::{self, Kind, PolicyKind, ValueKind};
use super::layer::{Named, optional, required};
use super::wire::weights::{ConvBlock, Layer, Residual, SEunit};
use super::wire::{BEGINNING, Net, TEXT_BEGINNINGS, Weights as Lc0Weights};
use super::{gzip, scan};
use crate::error::Result;
use crate::plain::input_scales;
use crate::tensors::shape_of;
use crate::weights::Weights;

/// Planes of the convolution policy head.
const POLICY_PLANES: u32 = 80;

/// Reads a network from the bytes of Lc0's file. Its moves-left head is dropped.
///
/// # Errors
///
/// [`NnError::Lc0`](crate::NnError::Lc0) with what is wrong or not supported, and
/// [`NnError::Spec`](crate::NnError::Spec) for sizes outside Rookery's bounds.
pub fn from_bytes(bytes: &[u8]) -> Result<Weights> {
    let bytes = gzip::decompress(bytes)?;
    check_beginning(&bytes)?;
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
    let importer = Importer::new(&spec);
    Weights::new(spec.clone(), importer.network(lc0)?)
}

fn check_beginning(bytes: &[u8]) -> Lc0Result<()> {
    if bytes.starts_with(&BEGINNING) {
        Ok(())
    } else if TEXT_BEGINNINGS.iter().any(|text| bytes.starts_with(text)) {
        Err(Lc0Error::Text)
    } else {
        Err(Lc0Error::Magic)
    }
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
    if planes == POLICY_PLANES {
        return Ok(PolicyHead::Convolution);
    }
    Err(Lc0Error::NotSupported {
        what: "a convolution policy head with planes",
        found: planes.to_string(),
        supported: "80",
    })
}

/// Filters for each unit of the squeeze-excitations, which all blocks or none must have.
fn se_ratio(blocks: &[Residual], filters: u32) -> Lc0Result<Option<u32>> {
    let with = blocks.iter().filter(|block| block.se.is_some()).count();
    let Some(se) = blocks.first().and_then(|block| block.se.as_ref()) else {
        return match with {
            0 => Ok(None),
            _ => Err(some_excite(with, blocks.len())),
        };
    };
    if with != blocks.len() {
        return Err(some_excite(with, blocks.len()));
    }
    let units = required(se.b1.as_ref(), "residual.0.se.b1")?.multiple_of(1)?;
    if units == 0 || !filters.is_multiple_of(units) {
        return Err(Lc0Error::NotSupported {
            what: "squeeze-excitation with units",
            found: units.to_string(),
            supported: "a divisor of the filters",
        });
    }
    Ok(Some(filters / units))
}

fn some_excite(with: usize, blocks: usize) -> Lc0Error {
    Lc0Error::NotSupported {
        what: "squeeze-excitation in some blocks only,",
        found: format!("{with} of {blocks},"),
        supported: "all or none",
    }
}

/// Fills in the tensors of a specification.
struct Importer {
    input: InputEncoding,
    sizes: BTreeMap<String, TensorLayout>,
    tensors: BTreeMap<String, Tensor>,
}

impl Importer {
    fn new(spec: &NetworkSpec) -> Self {
        let sizes = tensors(spec).into_iter();
        Self {
            input: spec.input,
            sizes: sizes.map(|layout| (layout.name.clone(), layout)).collect(),
            tensors: BTreeMap::new(),
        }
    }

    fn network(mut self, lc0: &Lc0Weights) -> Result<BTreeMap<String, Tensor>> {
        self.convolution("input", "input", lc0.input.as_ref())?;
        self.undivide_input()?;
        for (index, block) in lc0.residual.iter().enumerate() {
            self.block(index, block)?;
        }
        if self.sizes.contains_key("policy.planes.weight") {
            self.convolution("policy.conv", "policy1", lc0.policy1.as_ref())?;
            self.plain_convolution("policy.planes", "policy", lc0.policy.as_ref())?;
        } else {
            self.convolution("policy.conv", "policy", lc0.policy.as_ref())?;
            self.dense("policy.dense", "ip_pol", [&lc0.ip_pol_w, &lc0.ip_pol_b])?;
        }
        self.convolution("value.conv", "value", lc0.value.as_ref())?;
        self.dense("value.dense1", "ip1_val", [&lc0.ip1_val_w, &lc0.ip1_val_b])?;
        self.dense("value.dense2", "ip2_val", [&lc0.ip2_val_w, &lc0.ip2_val_b])?;
        Ok(self.tensors)
    }

    fn block(&mut self, index: usize, block: &Residual) -> Result<()> {
        let (name, lc0) = (format!("blocks.{index}"), format!("residual.{index}"));
        for (part, convolution) in [("conv1", &block.conv1), ("conv2", &block.conv2)] {
            let (name, lc0) = (format!("{name}.{part}"), format!("{lc0}.{part}"));
            self.convolution(&name, &lc0, convolution.as_ref())?;
        }
        let Some(SEunit { w1, b1, w2, b2 }) = &block.se else {
            return Ok(());
        };
        self.dense(
            &format!("{name}.se.squeeze"),
            &format!("{lc0}.se.1"),
            [w1, b1],
        )?;
        self.dense(
            &format!("{name}.se.excite"),
            &format!("{lc0}.se.2"),
            [w2, b2],
        )
    }

    /// A convolution and its normalisation; a missing one becomes one that only adds the biases.
    fn convolution(&mut self, name: &str, lc0: &str, block: Option<&ConvBlock>) -> Result<()> {
        let missing = || Lc0Error::Missing(lc0.to_owned());
        let block = block.ok_or_else(missing)?;
        let parts = self.normed(name, lc0, block)?;
        self.put(&format!("{name}.weight"), &parts.weight)?;
        self.put(&format!("{name}.norm.weight"), &parts.gamma)?;
        self.put(&format!("{name}.norm.bias"), &parts.beta)?;
        self.put(&format!("{name}.norm.mean"), &parts.mean)?;
        self.put(&format!("{name}.norm.variance"), &parts.variance)
    }

    fn normed(&self, name: &str, lc0: &str, block: &ConvBlock) -> Lc0Result<Normed> {
        let weight = self.count(&format!("{name}.weight"));
        let outputs = self.count(&format!("{name}.norm.weight"));
        let label = |part: &str| format!("{lc0}.{part}");
        let vector = |layer: &Option<Layer>, part: &str| {
            let label = label(part);
            let found = optional(layer.as_ref(), &label)?;
            found.map(|layer| layer.numbers(outputs)).transpose()
        };
        let weight = required(block.weights.as_ref(), &label("weights"))?.numbers(weight)?;
        let biases = vector(&block.biases, "biases")?;
        let Some(mut mean) = vector(&block.bn_means, "bn_means")? else {
            let missing = || Lc0Error::Missing(label("biases"));
            return Ok(Normed::biased(weight, biases.ok_or_else(missing)?));
        };
        for (mean, bias) in mean.iter_mut().zip(biases.unwrap_or_default()) {
            *mean -= bias;
        }
        let label = label("bn_stddivs");
        let layer = required(block.bn_stddivs.as_ref(), &label)?;
        Ok(Normed {
            weight,
            gamma: vector(&block.bn_gammas, "bn_gammas")?.unwrap_or_else(|| vec![1.0; outputs]),
            beta: vector(&block.bn_betas, "bn_betas")?.unwrap_or_else(|| vec![0.0; outputs]),
            mean,
            variance: variances(layer, outputs)?,
        })
    }

    /// A convolution without normalisation; one that the file has is multiplied in.
    fn plain_convolution(
        &mut self,
        name: &str,
        lc0: &str,
        block: Option<&ConvBlock>,
    ) -> Result<()> {
        let block = block.ok_or_else(|| Lc0Error::Missing(lc0.to_owned()))?;
        if optional(block.bn_means.as_ref(), lc0)?.is_some() {
            let found = "with a normalisation".to_owned();
            return Err(Lc0Error::NotSupported {
                what: "the last convolution of the policy head",
                found,
                supported: "one with biases",
            }
            .into());
        }
        for (part, layer) in [("weight", &block.weights), ("bias", &block.biases)] {
            let (name, label) = (format!("{name}.{part}"), format!("{lc0}.{part}"));
            let numbers = required(layer.as_ref(), &label)?.numbers(self.count(&name))?;
            self.put(&name, &numbers)?;
        }
        Ok(())
    }

    fn dense(&mut self, name: &str, lc0: &str, layers: [&Option<Layer>; 2]) -> Result<()> {
        for (part, lc0_part, layer) in [("weight", "w", layers[0]), ("bias", "b", layers[1])] {
            let (name, label) = (format!("{name}.{part}"), format!("{lc0}_{lc0_part}"));
            let numbers = required(layer.as_ref(), &label)?.numbers(self.count(&name))?;
            self.put(&name, &numbers)?;
        }
        Ok(())
    }

    /// Lc0's weights are for counts that are not divided, Rookery's for divided ones.
    fn undivide_input(&mut self) -> Result<()> {
        if let Some(weight) = self.tensors.get_mut("input.weight") {
            let scaled = weight
                .f_to_kind(Dtype::Double)?
                .f_mul(&input_scales(self.input)?)?;
            *weight = scaled.f_to_kind(Dtype::Float)?;
        }
        Ok(())
    }

    /// Numbers of a tensor; 0 if the network has no such tensor.
    fn count(&self, name: &str) -> usize {
        self.sizes
            .get(name)
            .map_or(0, |layout| layout.elements() as usize)
    }

    fn put(&mut self, name: &str, numbers: &[f32]) -> Result<()> {
        let tensor = Tensor::f_from_slice(numbers)?;
        let shape = self.sizes.get(name).map(shape_of).unwrap_or_default();
        self.tensors
            .insert(name.to_owned(), tensor.f_reshape(shape)?);
        Ok(())
    }
}

/// A convolution and its normalisation.
struct Normed {
    weight: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl Normed {
    fn biased(weight: Vec<f32>, biases: Vec<f32>) -> Self {
        let outputs = biases.len();
        Self {
            weight,
            gamma: vec![1.0; outputs],
            beta: biases,
            mean: vec![0.0; outputs],
            variance: vec![(1.0 - NORM_EPSILON) as f32; outputs],
        }
    }
}

fn variances(layer: Named<'_>, count: usize) -> Lc0Result<Vec<f32>> {
    let variances = layer.numbers(count)?;
    if variances.iter().any(|variance| *variance < 0.0) {
        return Err(layer.holds("a negative variance"));
    }
    Ok(variances)
}
