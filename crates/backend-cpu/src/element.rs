//! The element types in which activations are kept.

/// A number that activations are kept in; sums are always in `f32`.
pub trait Element: Copy + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// As `f32`, exactly.
    fn widen(self) -> f32;

    /// The nearest number of this kind, the even one of two; not a number stays so.
    fn narrow(number: f32) -> Self;

    /// `max(self, 0)`; not a number stays so.
    fn relu(self) -> Self;
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        number
    }

    #[inline(always)]
    fn relu(self) -> Self {
        if self < 0.0 { 0.0 } else { self }
    }
}

/// A bfloat16: the upper half of an `f32`. (The conversions of the crate `half` branch,
/// which keeps loops over them from using vector instructions.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Bf16(u16);

/// The bits of infinity; greater ones are not a number.
const INFINITE: u16 = 0x7f80;
const QUIET: u16 = 0x0040;

impl Element for Bf16 {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(0x3f80);

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        let bits = number.to_bits();
        let even = (bits >> 16) & 1;
        let rounded = (bits.wrapping_add(0x7fff + even) >> 16) as u16;
        let upper = (bits >> 16) as u16 | QUIET;
        Self(if number.is_nan() { upper } else { rounded })
    }

    #[inline(always)]
    fn relu(self) -> Self {
        let negative = self.0.cast_signed() < 0 && self.0 & 0x7fff <= INFINITE;
        Self(if negative { 0 } else { self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_rounded_as_the_crate_half_rounds_it() {
        let patterns = (0..=u32::MAX).step_by(65_521 * 13).map(f32::from_bits);
        let special = [
            0.0,
            -0.0,
            1.0,
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NAN,
            1.003_906_3,
        ];
        for number in patterns.chain(special) {
            let expected = half::bf16::from_f32(number);
            let narrowed = Bf16::narrow(number);
            assert_eq!(narrowed.0, expected.to_bits(), "{number}");
            assert!(narrowed.widen() == expected.to_f32() || number.is_nan());
            let rectified = narrowed.relu().widen();
            assert!(
                rectified.to_bits() == narrowed.widen().relu().to_bits() || rectified == 0.0,
                "{number}"
            );
            assert_eq!(rectified.is_nan(), number.is_nan());
        }
        assert_eq!((Bf16::ONE.widen(), Bf16::ZERO.widen()), (1.0, 0.0));
    }
}
