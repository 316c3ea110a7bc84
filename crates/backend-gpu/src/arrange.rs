//! Weights in the order in which kernels read them.

use half::f16;
use rookery_common::network::{NormalizedConvolution, SqueezeExcitation};
use rookery_model::{FoldedConvolution, ModelError, Weights};

use crate::kernel::Storage;

/// A convolution for kernels: four outputs side by side.
#[derive(Debug)]
pub(crate) struct Arranged {
    /// `[inputs][kernel * kernel][quads][4]`.
    pub(crate) weight: Vec<f32>,
    /// `[quads][4]`.
    pub(crate) bias: Vec<f32>,
    /// Groups of four outputs.
    pub(crate) quads: usize,
    /// Inputs.
    pub(crate) inputs: usize,
    /// Squares of the kernel in a row: 1 or 3.
    pub(crate) kernel: usize,
}

impl Arranged {
    /// A convolution of a network, folded. Input `n` is divided by `scales[n]`, if there is such.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotComputable`] for numbers that are not finite in 32 bits.
    pub(crate) fn new(
        weights: &Weights,
        layer: &NormalizedConvolution,
        scales: &[f32],
    ) -> Result<Self, ModelError> {
        let folded = FoldedConvolution::new(weights, layer)?;
        let FoldedConvolution {
            outputs,
            inputs,
            kernel,
            ..
        } = folded;
        let (quads, taps) = (outputs.div_ceil(4), kernel * kernel);
        let mut weight = vec![0.0; inputs * taps * quads * 4];
        for (index, number) in folded.weight.iter().enumerate() {
            let (output, input, tap) = (index / taps / inputs, index / taps % inputs, index % taps);
            let scale = scales.get(input).copied().unwrap_or(1.0);
            weight[(input * taps + tap) * quads * 4 + output] = (number / f64::from(scale)) as f32;
        }
        let mut bias: Vec<f32> = folded.bias.iter().map(|bias| *bias as f32).collect();
        bias.resize(quads * 4, 0.0);
        finite(&layer.name, "weight", &weight)?;
        finite(&layer.name, "norm.bias", &bias)?;
        Ok(Self {
            weight,
            bias,
            quads,
            inputs,
            kernel,
        })
    }

    /// Outputs with those that are zeros: a multiple of four.
    pub(crate) const fn channels(&self) -> usize {
        4 * self.quads
    }
}

/// The numbers of a tensor.
///
/// # Errors
///
/// [`ModelError`] if the network has no such tensor, or one that is not finite.
pub(crate) fn tensor<'a>(
    weights: &'a Weights,
    name: &str,
    part: &str,
) -> Result<&'a [f32], ModelError> {
    let values = weights.get(&format!("{name}.{part}"))?.values();
    finite(name, part, values)?;
    Ok(values)
}

/// A squeeze-excitation as kernels read it: `[channels][units]`, `[units]`, `[units][2 * channels]`, `[2 * channels]`.
///
/// # Errors
///
/// As [`tensor`].
pub(crate) fn excitation(
    weights: &Weights,
    layers: &SqueezeExcitation,
) -> Result<Vec<f32>, ModelError> {
    let (squeeze, excite) = (&layers.squeeze, &layers.excite);
    let units = squeeze.outputs as usize;
    let mut numbers = transposed(tensor(weights, &squeeze.name, "weight")?, units);
    numbers.extend_from_slice(tensor(weights, &squeeze.name, "bias")?);
    let outputs = excite.outputs as usize;
    numbers.extend(transposed(
        tensor(weights, &excite.name, "weight")?,
        outputs,
    ));
    numbers.extend_from_slice(tensor(weights, &excite.name, "bias")?);
    Ok(numbers)
}

/// `[rows][columns]` as `[columns][rows]`.
fn transposed(numbers: &[f32], rows: usize) -> Vec<f32> {
    let columns = numbers.len() / rows;
    let places = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
    places.map(|place| numbers[place]).collect()
}

/// `[units][inputs]` as `[inputs / 4][units][4]`.
pub(crate) fn by_fours(numbers: &[f32], units: usize) -> Vec<f32> {
    let inputs = numbers.len() / units;
    let fours =
        (0..inputs / 4).flat_map(|four| (0..units).map(move |unit| unit * inputs + 4 * four));
    fours
        .flat_map(|place| numbers[place..place + 4].iter().copied())
        .collect()
}

/// Bytes of numbers as they are stored.
///
/// # Errors
///
/// [`ModelError::NotComputable`] for a number beyond the range of 16 bits where those are stored.
pub(crate) fn stored(name: &str, numbers: &[f32], storage: Storage) -> Result<Vec<u8>, ModelError> {
    match storage {
        Storage::F32 => Ok(bytemuck::cast_slice(numbers).to_vec()),
        Storage::F16 => {
            let short: Vec<f16> = numbers.iter().map(|x| f16::from_f32(*x)).collect();
            if !short.iter().all(|number| number.is_finite()) {
                return Err(ModelError::NotComputable(name.to_owned()));
            }
            let bits = short.iter().flat_map(|number| number.to_le_bytes());
            Ok(bits.collect())
        }
    }
}

fn finite(name: &str, part: &str, numbers: &[f32]) -> Result<(), ModelError> {
    if numbers.iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    Err(ModelError::NotComputable(format!("{name}.{part}")))
}
