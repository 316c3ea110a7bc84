//! Activation functions, without a call or a branch, so that loops over them use vector instructions.

use crate::element::Element;

/// An activation function as a type, for which kernels are compiled.
pub(crate) trait Activate: Copy {
    /// What it makes of a number.
    fn activate(x: f32) -> f32;
}

/// `max(x, 0)`; not a number stays so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relu;

/// `x tanh(softplus(x))` (Misra 2019).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mish;

/// None.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity;

impl Activate for Identity {
    #[inline(always)]
    fn activate(x: f32) -> f32 {
        x
    }
}

impl Activate for Relu {
    #[inline(always)]
    fn activate(x: f32) -> f32 {
        x.relu()
    }
}

impl Activate for Mish {
    /// With `e = exp(x)`, `tanh(ln(1 + e))` is `n / (n + 2)` where `n = e² + 2e`. Beyond 20 it is 1 in 32 bits.
    #[inline(always)]
    fn activate(x: f32) -> f32 {
        let e = exp(if x > 20.0 { 20.0 } else { x });
        let n = e * e + 2.0 * e;
        x * (n / (n + 2.0))
    }
}

/// Calls a generic function with the type of an activation.
macro_rules! with_activation {
    ($activation:expr, $function:ident :: <_ $(, $type:ty)*> ( $($argument:expr),* $(,)? )) => {
        match $activation {
            rookery_common::network::Activation::Relu => {
                $function::<$crate::activation::Relu $(, $type)*>($($argument),*)
            }
            rookery_common::network::Activation::Mish => {
                $function::<$crate::activation::Mish $(, $type)*>($($argument),*)
            }
        }
    };
}
pub(crate) use with_activation;

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
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

    #[test]
    fn mish_is_as_its_definition_has_it() {
        for step in -60_000..=60_000 {
            let x = f64::from(step) / 1000.0;
            let expected = x * x.exp().ln_1p().tanh();
            let apart = f64::from(Mish::activate(x as f32)) - expected;
            assert!(apart.abs() < 1e-6 * (1.0 + x.abs()), "mish({x}): {apart}");
        }
        assert!(Mish::activate(f32::NAN).is_nan());
        assert_eq!(Mish::activate(1e30), 1e30);
        assert_eq!(Mish::activate(0.0), 0.0);
    }
}
