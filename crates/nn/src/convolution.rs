//! The convolution of libtorch, on boards.

use std::time::{Duration, Instant};

use tch::{Device, Kind, Tensor};

use crate::error::TorchResult;

/// How GPUs multiply numbers of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Products {
    /// With all their bits.
    Exact,
    /// As libtorch likes: NVIDIA's GPUs round them to TF32, which has as many digits as f16.
    Fast,
}

/// A convolution that keeps the board's size, in the numbers of `x`.
pub(crate) fn convolve(
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

/// How much longer than f32 numbers may take in training that are to be faster.
const TOLERATED: u32 = 2;

/// Whether a device trains in such numbers not much slower than in f32, which is tried: for NVIDIA's GPUs before Ampere
/// (2020) cuDNN has nothing in bf16, and libtorch then computes one position after the other.
pub(crate) fn trains_in(device: Device, kind: Kind) -> bool {
    let times = [kind, Kind::Float].map(|kind| time_gradients(device, kind));
    matches!(times, [Ok(own), Ok(exact)] if own < TOLERATED * exact)
}

/// The shortest of a few convolutions of 64 boards with their gradients.
fn time_gradients(device: Device, kind: Kind) -> TorchResult<Duration> {
    let ones = |shape: [i64; 4]| {
        let ones = Tensor::f_ones(shape, (kind, device))?.f_permute([0, 3, 1, 2])?;
        ones.f_set_requires_grad(true)
    };
    let (x, weight) = (ones([64, 8, 8, 64])?, ones([64, 3, 3, 64])?);
    let mut fastest = Duration::MAX;
    for _ in 0..4 {
        let start = Instant::now();
        let sum = convolve(&x, &weight, None, Products::Fast)?.f_sum(Kind::Float)?;
        let gradients = Tensor::f_run_backward(&[sum], &[&x, &weight], false, false)?;
        for gradient in gradients {
            // Who reads waits for a GPU.
            gradient.f_sum(Kind::Float)?.f_double_value(&[])?;
        }
        fastest = fastest.min(start.elapsed());
    }
    Ok(fastest)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn numbers_in_which_nothing_can_be_trained_are_found_out() {
        crate::use_threads(1);
        for kind in [Kind::Float, Kind::BFloat16] {
            assert!(time_gradients(Device::Cpu, kind).is_ok(), "{kind:?}");
        }
        assert!(!trains_in(Device::Cpu, Kind::Int64));
    }
}
