//! From [`Weights`] to Lc0's layers.
//!
//! Written is what every version of Lc0 since 0.21 reads: LINEAR16, and convolutions with the five
//! layers that Lc0's own training writes. A small variance among large ones loses much in 16 bits
//! that are spread over all of them; the gammas make up for it, and the betas for what gammas and
//! means lose. A network that came from Lc0 goes back with the same numbers.

use prost::Message as _;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::layout::NORM_EPSILON;
use rookery_common::network::{
    Activation, Layers, NetworkSpec, NormalizedConvolution, PolicyHead, PolicyOutput,
    ResidualBlock, Resnet, SqueezeExcitation, Tower, ValueHead,
};

use super::error::{Lc0Error, Lc0Result};
use super::gzip;
use super::layer::{linear16, required};
use super::wire::network_format::{
    DefaultActivation, InputFormat, NetworkStructure, OutputFormat, PolicyFormat, ValueFormat,
};
use super::wire::weights::{ConvBlock, Layer as Lc0Layer, Residual, SEunit};
use super::wire::{
    EngineVersion, Format, MAGIC, Net, NetworkFormat, TrainingParams, Weights as Lc0Weights, format,
};
use crate::error::Result;
use crate::export_weights::{Layer, raw, raw_input};
use crate::weights::Weights;

/// The first Lc0 that knows named heads, and the first that knows mish (their minor version).
const FIRST_LC0: u32 = 21;
const FIRST_LC0_WITH_MISH: u32 = 29;

/// The bytes of a file that Lc0 loads; the same network always gives the same bytes.
///
/// # Errors
///
/// [`ModelError::Lc0`](crate::ModelError::Lc0) for a network with another input than `lc0-112` or
/// another policy than `lc0-1858`, or with normalisations that are not finite in 32 bits.
pub fn to_bytes(weights: &Weights) -> Result<Vec<u8>> {
    let spec = weights.spec();
    check(spec)?;
    let body = spec.body()?;
    let net = Net {
        magic: Some(MAGIC),
        min_version: Some(EngineVersion {
            major: Some(0),
            minor: Some(min_version(body)),
            patch: Some(0),
        }),
        format: Some(Format {
            weights_encoding: Some(format::Encoding::Linear16.into()),
            network_format: Some(network_format(spec, body)),
        }),
        training_params: Some(TrainingParams {
            training_steps: Some(u32::try_from(spec.training_step).unwrap_or(u32::MAX)),
        }),
        weights: Some(lc0_weights(weights)?),
    };
    Ok(gzip::compress(&net.encode_to_vec())?)
}

/// Whether a network of this specification can become one of Lc0.
pub fn holds(spec: &NetworkSpec) -> bool {
    check(spec).is_ok()
}

fn check(spec: &NetworkSpec) -> Lc0Result<()> {
    let (input, policy) = (spec.input, spec.policy.encoding);
    if input != InputEncoding::Lc0112 {
        return Err(Lc0Error::NotInLc0 {
            what: "input",
            found: input.name(),
            supported: InputEncoding::Lc0112.name(),
        });
    }
    if policy != PolicyEncoding::Lc01858 {
        return Err(Lc0Error::NotInLc0 {
            what: "policy",
            found: policy.name(),
            supported: PolicyEncoding::Lc01858.name(),
        });
    }
    Ok(())
}

const fn min_version(body: &Resnet) -> u32 {
    match body.activation {
        Activation::Relu => FIRST_LC0,
        Activation::Mish => FIRST_LC0_WITH_MISH,
    }
}

fn network_format(spec: &NetworkSpec, body: &Resnet) -> NetworkFormat {
    let structure = match body.se_ratio {
        Some(_) => NetworkStructure::NetworkSeWithHeadformat,
        None => NetworkStructure::NetworkClassicalWithHeadformat,
    };
    let policy = match spec.policy.head {
        PolicyHead::Convolution => PolicyFormat::PolicyConvolution,
        PolicyHead::Dense { .. } => PolicyFormat::PolicyClassical,
    };
    let (output, value) = match spec.value {
        ValueHead::Wdl { .. } => (OutputFormat::OutputWdl, ValueFormat::ValueWdl),
        ValueHead::Scalar { .. } => (OutputFormat::OutputClassical, ValueFormat::ValueClassical),
    };
    // Only mish is named: older versions of Lc0 do not know the field.
    let mish = (body.activation == Activation::Mish).then_some(DefaultActivation::Mish.into());
    NetworkFormat {
        input: Some(InputFormat::InputClassical112Plane.into()),
        output: Some(output.into()),
        network: Some(structure.into()),
        policy: Some(policy.into()),
        value: Some(value.into()),
        default_activation: mish,
    }
}

fn lc0_weights(weights: &Weights) -> Result<Lc0Weights> {
    let layers = Layers::new(weights.spec())?;
    let Tower::Residual(tower) = &layers.tower;
    let input = raw_input(weights, &tower.input)?;
    let blocks = tower.blocks.iter().map(|layers| block(weights, layers));
    let [ip1_val_w, ip1_val_b] = affine(weights, &layers.value.hidden.name)?;
    let [ip2_val_w, ip2_val_b] = affine(weights, &layers.value.output.name)?;
    let mut lc0 = Lc0Weights {
        input: Some(with_norm(weights, &tower.input, &input)?),
        residual: blocks.collect::<Result<_>>()?,
        value: Some(convolution(weights, &layers.value.convolution)?),
        ip1_val_w,
        ip1_val_b,
        ip2_val_w,
        ip2_val_b,
        ..Lc0Weights::default()
    };
    let first = Some(convolution(weights, &layers.policy.convolution)?);
    match &layers.policy.output {
        PolicyOutput::Planes(planes) => {
            let [weights, biases] = affine(weights, &planes.name)?;
            lc0.policy1 = first;
            lc0.policy = Some(ConvBlock {
                weights,
                biases,
                ..ConvBlock::default()
            });
        }
        PolicyOutput::Dense(dense) => {
            lc0.policy = first;
            [lc0.ip_pol_w, lc0.ip_pol_b] = affine(weights, &dense.name)?;
        }
    }
    Ok(lc0)
}

fn block(weights: &Weights, layers: &ResidualBlock) -> Result<Residual> {
    let excitation = |layers: &SqueezeExcitation| -> Result<SEunit> {
        let [w1, b1] = affine(weights, &layers.squeeze.name)?;
        let [w2, b2] = affine(weights, &layers.excite.name)?;
        Ok(SEunit { w1, b1, w2, b2 })
    };
    Ok(Residual {
        conv1: Some(convolution(weights, &layers.conv1)?),
        conv2: Some(convolution(weights, &layers.conv2)?),
        se: layers.excitation.as_ref().map(excitation).transpose()?,
    })
}

/// Weight and bias of a layer without normalisation.
fn affine(weights: &Weights, name: &str) -> Result<[Option<Lc0Layer>; 2]> {
    let layer = Layer::affine(weights, name)?;
    Ok([layer.weight, layer.bias].map(|tensor| Some(linear16(&tensor.values))))
}

/// A convolution and its normalisation.
fn convolution(weights: &Weights, layer: &NormalizedConvolution) -> Result<ConvBlock> {
    let weight = raw(weights, &format!("{}.weight", layer.name))?;
    with_norm(weights, layer, &weight)
}

/// A convolution of this weight, and its normalisation.
fn with_norm(
    weights: &Weights,
    layer: &NormalizedConvolution,
    weight: &[f32],
) -> Result<ConvBlock> {
    let name = &layer.name;
    let part = |part: &str| raw(weights, &format!("{name}.{part}"));
    let written = |numbers: &[f32]| Written::new(name, numbers);
    let (gammas, betas) = (part("norm.weight")?, part("norm.bias")?);
    let (means, variances) = (part("norm.mean")?, part("norm.variance")?);
    let deviations = |variances: &[f32]| -> Vec<f64> {
        let deviation = |variance: &f32| (f64::from(*variance) + NORM_EPSILON).sqrt();
        variances.iter().map(deviation).collect()
    };
    let (written_means, written_variances) = (written(&means)?, written(&variances)?);
    let (had, has) = (
        deviations(&variances),
        deviations(&written_variances.numbers),
    );

    let gamma = |i: usize| (f64::from(gammas[i]) / had[i] * has[i]) as f32;
    let written_gammas = written(&(0..gammas.len()).map(gamma).collect::<Vec<_>>())?;
    let beta = |i: usize| {
        let was = f64::from(means[i]) * f64::from(gammas[i]) / had[i];
        let mean = f64::from(written_means.numbers[i]);
        let is = mean * f64::from(written_gammas.numbers[i]) / has[i];
        (f64::from(betas[i]) - was + is) as f32
    };
    let written_betas = written(&(0..betas.len()).map(beta).collect::<Vec<_>>())?;
    Ok(ConvBlock {
        weights: Some(linear16(weight)),
        biases: None,
        bn_means: Some(written_means.layer),
        bn_stddivs: Some(written_variances.layer),
        bn_gammas: Some(written_gammas.layer),
        bn_betas: Some(written_betas.layer),
    })
}

/// A layer, and the numbers that will be read from it.
struct Written {
    layer: Lc0Layer,
    numbers: Vec<f32>,
}

impl Written {
    fn new(name: &str, numbers: &[f32]) -> Lc0Result<Self> {
        let layer = linear16(numbers);
        let numbers = required(Some(&layer), name)?.numbers(numbers.len())?;
        Ok(Self { layer, numbers })
    }
}
