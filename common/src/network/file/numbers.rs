//! The tensors of a network file: shapes, types, and numbers that can be computed with.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::NetworkFileError;
use crate::network::layers::NormalizedConvolution;
use crate::network::layout::{NORM_EPSILON, Role, TensorLayout};

/// Most dimensions of a tensor that an error shows: a header may give it as many as it likes.
const SHOWN_DIMENSIONS: usize = 8;

/// Checks a tensor's shape, type and numbers.
pub(super) fn check_tensor(
    file: &SafeTensors<'_>,
    expected: &TensorLayout,
) -> Result<(), NetworkFileError> {
    let name = || expected.name.clone();
    let view = view(file, &expected.name)?;
    let same = view
        .shape()
        .iter()
        .copied()
        .eq(expected.shape.iter().map(|n| *n as usize));
    if !same {
        let found = view.shape().iter().copied().take(SHOWN_DIMENSIONS);
        let (found, expected) = (found.collect(), expected.shape.clone());
        return Err(NetworkFileError::Shape {
            name: name(),
            found,
            expected,
        });
    }
    match first_unusable(numbers(&view, &expected.name)?, expected) {
        Some((index, what)) => Err(NetworkFileError::Value {
            name: name(),
            what,
            index,
        }),
        None => Ok(()),
    }
}

fn view<'a>(file: &SafeTensors<'a>, name: &str) -> Result<TensorView<'a>, NetworkFileError> {
    file.tensor(name)
        .map_err(|_| NetworkFileError::Missing(name.to_owned()))
}

/// The numbers of a tensor, one after the other.
fn numbers<'a>(
    view: &TensorView<'a>,
    name: &str,
) -> Result<impl Iterator<Item = f32> + use<'a>, NetworkFileError> {
    let (singles, halves): (&'a [u8], &'a [u8]) = match view.dtype() {
        Dtype::F32 => (view.data(), &[]),
        Dtype::F16 => (&[], view.data()),
        dtype => {
            return Err(NetworkFileError::Type {
                name: name.to_owned(),
                dtype: format!("{dtype:?}"),
            });
        }
    };
    let singles = singles.as_chunks::<4>().0.iter();
    let halves = halves.as_chunks::<2>().0.iter();
    Ok(singles
        .map(|bits| f32::from_le_bytes(*bits))
        .chain(halves.map(|bits| half::f16::from_le_bytes(*bits).to_f32())))
}

/// The first number that is not finite, or is negative where the tensor holds variances.
fn first_unusable(
    numbers: impl Iterator<Item = f32>,
    tensor: &TensorLayout,
) -> Option<(usize, &'static str)> {
    let variance = tensor.role == Role::RunningVariance;
    numbers.enumerate().find_map(|(index, number)| {
        if number.is_nan() {
            Some((index, "a value that is not a number"))
        } else if number.is_infinite() {
            Some((index, "an infinite value"))
        } else if variance && number < 0.0 {
            Some((index, "a negative variance"))
        } else {
            None
        }
    })
}

/// Checks that a convolution stays finite in 32 bits where its normalisation is multiplied into
/// it, as evaluation does: `weight * gamma / sqrt(variance + epsilon)` and
/// `beta - mean * gamma / sqrt(...)`.
pub(super) fn check_folded(
    file: &SafeTensors<'_>,
    convolution: &NormalizedConvolution,
) -> Result<(), NetworkFileError> {
    let named = |part: &str| format!("{}.{part}", convolution.name);
    let part = |part: &str| {
        let name = named(part);
        let numbers = numbers(&view(file, &name)?, &name)?;
        Ok::<_, NetworkFileError>(numbers.map(f64::from))
    };
    let scales: Vec<f64> = part("norm.weight")?
        .zip(part("norm.variance")?)
        .map(|(gamma, variance)| gamma / (variance + NORM_EPSILON).sqrt())
        .collect();
    let row = (convolution.inputs * convolution.kernel * convolution.kernel) as usize;
    let of_weights = scales
        .iter()
        .flat_map(|scale| std::iter::repeat_n(scale, row));
    let weights = part("weight")?
        .zip(of_weights)
        .map(|(weight, scale)| weight * scale);
    let means = part("norm.mean")?.zip(&scales);
    let biases = part("norm.bias")?
        .zip(means)
        .map(|(bias, (mean, scale))| bias - mean * scale);
    all_finite(weights, named("weight"))?;
    all_finite(biases, named("norm.bias"))
}

fn all_finite(
    mut numbers: impl Iterator<Item = f64>,
    name: String,
) -> Result<(), NetworkFileError> {
    match numbers.position(|number| !(number as f32).is_finite()) {
        Some(index) => Err(NetworkFileError::Folded { name, index }),
        None => Ok(()),
    }
}
