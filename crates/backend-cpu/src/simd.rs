//! How wide kernels are.

/// Channels that are computed side by side: a register of AVX-512, two of AVX2, four of NEON.
pub const LANES: usize = 16;

/// Numbers of the channels that are computed side by side.
pub(crate) type Lanes = [f32; LANES];

/// Whether [`multiply_add`] is one instruction in the function that is being compiled by `multiversion`.
macro_rules! has_fma {
    () => {
        // AVX-512 has it as well, and `multiversion` does not know that one implies the other.
        multiversion::target::target_cfg_f!(any(target_feature = "fma", target_feature = "avx512f"))
            || cfg!(target_arch = "aarch64")
    };
}
pub(crate) use has_fma;

/// `a * b + c`, rounded once if `FUSED`, which only pays where it is an instruction.
#[inline(always)]
pub(crate) fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Adds `x * weights` to `sums` for each of `ROWS` rows of `x` and [`LANES`] outputs; `weights` is
/// `[inputs][LANES]`. The sums stay in registers.
#[inline(always)]
pub(crate) fn multiply_rows<const ROWS: usize, const FUSED: bool>(
    rows: [&[f32]; ROWS],
    weights: &[Lanes],
    sums: &mut [Lanes; ROWS],
) {
    let rows = rows.map(|row| &row[..weights.len()]);
    for (input, weights) in weights.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let number = row[input];
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum = multiply_add::<FUSED>(number, *weight, *sum);
            }
        }
    }
}
