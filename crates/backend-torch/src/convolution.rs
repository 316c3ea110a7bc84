//! The convolution of libtorch, on boards.

use tch::Tensor;

use crate::error::TorchResult;

/// How GPUs multiply numbers of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// With all their bits.
    Exact,
    /// As libtorch likes: NVIDIA's GPUs round them to TF32, which has as many digits as f16.
    Fast,
}

/// A convolution that keeps the board's size, in the numbers of `x`.
pub fn convolve(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    products: Products,
) -> TorchResult<Tensor> {
    let kind = x.f_kind()?;
    let weight = weight.f_to_kind(kind)?;
    let bias = bias.map(|bias| bias.f_to_kind(kind)).transpose()?;
    let padding = [weight.size()[2] / 2; 2];
    match products {
        Products::Fast => x.f_conv2d(&weight, bias.as_ref(), [1, 1], padding, [1, 1], 1),
        Products::Exact => exactly(x, &weight, bias.as_ref(), padding),
    }
}

/// The operator behind `conv2d`, which reads the last four settings from the process's own, where tch cannot
/// change that of TF32. cuDNN does not try its algorithms out: batches in play differ in size, and it would for
/// each size anew.
fn exactly(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    padding: [i64; 2],
) -> TorchResult<Tensor> {
    let (ones, none): ([i64; 2], [i64; 2]) = ([1, 1], [0, 0]);
    let (transposed, groups) = (false, 1);
    let (try_out, deterministic, cudnn, tf32) = (false, false, true, false);
    x.f_internal_convolution(
        weight,
        bias,
        ones,
        padding,
        ones,
        transposed,
        none,
        groups,
        try_out,
        deterministic,
        cudnn,
        tf32,
    )
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;

    /// On a processor, in whose libtorch there is no TF32, both are the same to the bit.
    #[test]
    fn exact_and_fast_convolutions_differ_on_gpus_only() {
        crate::use_threads(1);
        let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
        for size in [1, 3] {
            let (weight, bias) = (random(&[7, 5, size, size]), random(&[7]));
            let x = random(&[2, 5, 8, 8]);
            let [exact, fast] = [Products::Exact, Products::Fast]
                .map(|products| convolve(&x, &weight, Some(&bias), products).unwrap());
            assert_eq!(exact.size(), [2, 7, 8, 8]);
            assert_eq!(exact, fast);
        }
    }
}
