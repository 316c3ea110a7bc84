//! The passes over activations, as plain loops that the compiler turns into vector instructions
//! for each family of processors.

use multiversion::multiversion;

use super::number::Number;

/// The two dense layers of a squeeze-excitation, weights transposed: a row for each input.
#[derive(Debug)]
pub(crate) struct Gate {
    /// `[channels][units]`.
    pub(super) squeeze: Vec<f32>,
    /// `[units]`.
    pub(super) squeeze_bias: Vec<f32>,
    /// `[units][2 * channels]`.
    pub(super) excite: Vec<f32>,
    /// `[2 * channels]`: for gamma, then for beta.
    pub(super) excite_bias: Vec<f32>,
}

/// `max(x, 0)` for every number.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
pub(super) fn rectify<N: Number>(numbers: &mut [N]) {
    for number in numbers {
        *number = number.rectified();
    }
}

/// `max(x + y, 0)` into both.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
pub(super) fn close<N: Number>(y: &mut [N], x: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *x = (*x + y.widen()).rectified();
        *y = N::narrow(*x);
    }
}

/// `max(x + sigmoid(gamma) * y + beta, 0)` into `x` and `y`, with gamma and beta of each position and
/// channel from the gate; `x` and `y` are `[positions][64][channels]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
pub(super) fn close_excited<N: Number>(y: &mut [N], x: &mut [f32], gate: &Gate) {
    let channels = gate.excite_bias.len() / 2;
    let mut means = vec![0.0; channels];
    let mut units = vec![0.0; gate.squeeze_bias.len()];
    let mut both = vec![0.0; 2 * channels];
    let boards = y.chunks_exact_mut(64 * channels);
    for (y, x) in boards.zip(x.chunks_exact_mut(64 * channels)) {
        mean(y, &mut means);
        dense(&means, &gate.squeeze, &gate.squeeze_bias, &mut units);
        units.iter_mut().for_each(|unit| *unit = unit.rectified());
        dense(&units, &gate.excite, &gate.excite_bias, &mut both);
        let (gamma, beta) = both.split_at_mut(channels);
        gamma.iter_mut().for_each(|gamma| *gamma = sigmoid(*gamma));
        let squares = y.chunks_exact_mut(channels);
        for (y, x) in squares.zip(x.chunks_exact_mut(channels)) {
            for (((y, x), gamma), beta) in y.iter_mut().zip(x).zip(&*gamma).zip(&*beta) {
                *x = (*x + gamma * y.widen() + beta).rectified();
                *y = N::narrow(*x);
            }
        }
    }
}

/// The mean over the 64 squares of each channel.
#[inline(always)]
fn mean<N: Number>(board: &[N], means: &mut [f32]) {
    means.fill(0.0);
    for square in board.chunks_exact(means.len()) {
        for (mean, number) in means.iter_mut().zip(square) {
            *mean += number.widen();
        }
    }
    means.iter_mut().for_each(|mean| *mean *= 1.0 / 64.0);
}

/// `bias + input * weight`, the weight being `[input][output]`.
#[inline(always)]
fn dense(input: &[f32], weight: &[f32], bias: &[f32], output: &mut [f32]) {
    output.copy_from_slice(bias);
    for (input, row) in input.iter().zip(weight.chunks_exact(bias.len())) {
        for (output, weight) in output.iter_mut().zip(row) {
            *output += input * weight;
        }
    }
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// e to the power of x to about two units in the last place, without a call or a branch: Cephes's
/// `expf`. Beyond ±87 it stays at the end of that range; not a number stays so.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding and taking it away rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first exact in few bits.
    const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let clamped = if x > 87.0 { 87.0 } else { x };
    let clamped = if clamped < -87.0 { -87.0 } else { clamped };
    let whole = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let rest = clamped - whole * LN2[0] - whole * LN2[1];
    let mut sum = 1.987_569_1e-4;
    for factor in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        0.166_666_65,
        0.5,
    ] {
        sum = sum * rest + factor;
    }
    let power = f32::from_bits(((whole as i32 + 127) << 23).cast_unsigned());
    (sum * rest * rest + rest + 1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_as_the_standard_library_has_it() {
        for step in -87_000..=87_000 {
            let x = step as f32 / 1000.0;
            let (ours, theirs) = (exp(x), x.exp());
            assert!(
                (ours / theirs - 1.0).abs() < 4e-7,
                "exp({x}): {ours} {theirs}"
            );
        }
        assert!(exp(-1000.0) < 1e-37 && exp(1000.0) > 1e37 && exp(f32::NAN).is_nan());
    }
}
