//! Sets of vector instructions: a kernel is compiled for each of them, and run by the best that the processor has.
//!
//! A [`Kernel`] is generic over an [`InstructionSet`], whose operations on [`LANES`] numbers in registers are intrinsics of
//! AVX-512 or of AVX2 with FMA, or plain loops for the instructions that every processor of the target has. All `unsafe` of
//! this crate is here: an [`Instructions`] exists only where the processor has them.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

/// Channels that are computed side by side: a register of AVX-512, two of AVX2, four of NEON.
pub const LANES: usize = 16;

/// Numbers of the channels that are computed side by side.
pub(crate) type Lanes = [f32; LANES];

/// Vector instructions that this processor has.
///
/// [`best`](Self::best) is what kernels are run with. The others are for tests and benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instructions(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Target,
}

impl Default for Instructions {
    fn default() -> Self {
        Self::best()
    }
}

impl Instructions {
    /// All that kernels are compiled for, whether this processor has them or not, by their names.
    pub const NAMES: &[&str] = &["avx512", "avx2", "target"];

    /// The fastest that this processor has.
    pub fn best() -> Self {
        let named = Self::NAMES.iter().find_map(|name| Self::named(name));
        named.unwrap_or(Self(Set::Target))
    }

    /// Those of a name of [`NAMES`](Self::NAMES), if this processor has them. `target` are those that every processor of the
    /// target has, NEON on aarch64.
    pub fn named(name: &str) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            if name == "avx512" {
                let has = avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512vl");
                return has.then_some(Self(Set::Avx512));
            }
            if name == "avx2" {
                return avx2.then_some(Self(Set::Avx2));
            }
        }
        (name == "target").then_some(Self(Set::Target))
    }

    /// Its name of [`NAMES`](Self::NAMES).
    pub const fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            Set::Target => "target",
        }
    }

    /// Multiplies and adds numbers that stay in registers, `16 * LANES` a round: the limit of all kernels' speed is how long
    /// this takes.
    pub fn multiply_in_registers(self, rounds: usize) -> f32 {
        let mut sum = 0.0;
        let result = &mut sum;
        self.run(InRegisters { rounds, result });
        sum
    }

    /// Runs a kernel, compiled for these instructions.
    #[inline]
    pub(crate) fn run(self, kernel: impl Kernel) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => Avx512::run(kernel),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => Avx2::run(kernel),
            Set::Target => Target::run(kernel),
        }
    }
}

/// A loop that is compiled for each set of instructions.
pub(crate) trait Kernel {
    /// Must be `#[inline(always)]`, as everything that it calls: what is not inlined is compiled without the instructions.
    fn run<I: InstructionSet>(self);
}

struct InRegisters<'a> {
    rounds: usize,
    result: &'a mut f32,
}

impl Kernel for InRegisters<'_> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let (less, more) = (I::splat(0.999), I::splat(1e-3));
        let count = if I::VECTORS >= 32 { 16 } else { 4 };
        for _ in 0..16 / count {
            let mut sums = [more; 16];
            for _ in 0..self.rounds {
                for sum in sums.iter_mut().take(count) {
                    *sum = I::multiply_add(*sum, less, more);
                }
            }
            let mut numbers = [0.0; LANES];
            for sum in sums {
                I::store(sum, &mut numbers);
                *self.result += numbers[0];
            }
        }
    }
}

/// Instructions that kernels are compiled for, and operations on [`LANES`] numbers in registers.
pub(crate) trait InstructionSet {
    /// Vectors that all registers hold.
    const VECTORS: usize;
    /// Registers that hold [`LANES`] numbers.
    type Vector: Copy;

    /// Runs a kernel as a function of its own, which the compiler optimises better than a part of a larger one.
    fn run(kernel: impl Kernel);

    fn load(numbers: &Lanes) -> Self::Vector;
    fn store(vector: Self::Vector, numbers: &mut Lanes);
    fn splat(number: f32) -> Self::Vector;
    fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn subtract(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + c`, rounded once where that is one instruction.
    fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

/// Implements an [`InstructionSet`] of x86-64 by its intrinsics, whose registers hold a part of [`LANES`] each.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_set {
    (
        $set:ident, $features:literal, vectors: $vectors:literal, $register:ident,
        $load:ident, $store:ident, $splat:ident, $add:ident, $subtract:ident, $multiply_add:ident
    ) => {
        /// Private: only [`Instructions`] tells that the processor has them.
        struct $set;

        // SAFETY of all: only `run` leads here, from `Instructions::run`, whose value `Instructions::named` makes only where
        // the processor has the instructions. Loads and stores need no alignment and stay within `Lanes`.
        #[expect(unsafe_code, reason = "only some processors have the instructions")]
        impl InstructionSet for $set {
            const VECTORS: usize = $vectors;
            type Vector = [x86::$register; LANES * size_of::<f32>() / size_of::<x86::$register>()];

            #[inline(always)]
            fn run(kernel: impl Kernel) {
                #[inline(never)]
                #[target_feature(enable = $features)]
                fn run(kernel: impl Kernel) {
                    kernel.run::<$set>();
                }
                unsafe { run(kernel) }
            }

            #[inline(always)]
            fn load(numbers: &Lanes) -> Self::Vector {
                let mut vector = Self::splat(0.0);
                let parts = numbers.chunks_exact(LANES / vector.len());
                for (register, part) in vector.iter_mut().zip(parts) {
                    *register = unsafe { x86::$load(part.as_ptr()) };
                }
                vector
            }

            #[inline(always)]
            fn store(vector: Self::Vector, numbers: &mut Lanes) {
                let parts = numbers.chunks_exact_mut(LANES / vector.len());
                for (register, part) in vector.into_iter().zip(parts) {
                    unsafe { x86::$store(part.as_mut_ptr(), register) };
                }
            }

            #[inline(always)]
            fn splat(number: f32) -> Self::Vector {
                [unsafe { x86::$splat(number) }; _]
            }

            #[inline(always)]
            fn add(mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = unsafe { x86::$add(*a, b) };
                }
                a
            }

            #[inline(always)]
            fn subtract(mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = unsafe { x86::$subtract(*a, b) };
                }
                a
            }

            #[inline(always)]
            fn multiply_add(a: Self::Vector, b: Self::Vector, mut c: Self::Vector) -> Self::Vector {
                for ((a, b), c) in a.into_iter().zip(b).zip(&mut c) {
                    *c = unsafe { x86::$multiply_add(a, b, *c) };
                }
                c
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_set!(
    Avx512,
    "avx512f,avx512bw,avx512vl,avx2,fma",
    vectors: 32,
    __m512,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_fmadd_ps
);

#[cfg(target_arch = "x86_64")]
x86_set!(
    Avx2,
    "avx2,fma",
    vectors: 8,
    __m256,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_fmadd_ps
);

/// What every processor of the target has, by loops that the compiler turns into vector instructions.
struct Target;

impl InstructionSet for Target {
    const VECTORS: usize = 4;
    type Vector = Lanes;

    #[inline(never)]
    fn run(kernel: impl Kernel) {
        kernel.run::<Self>();
    }

    #[inline(always)]
    fn load(numbers: &Lanes) -> Lanes {
        *numbers
    }

    #[inline(always)]
    fn store(vector: Lanes, numbers: &mut Lanes) {
        *numbers = vector;
    }

    #[inline(always)]
    fn splat(number: f32) -> Lanes {
        [number; LANES]
    }

    #[inline(always)]
    fn add(mut a: Lanes, b: Lanes) -> Lanes {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    }

    #[inline(always)]
    fn subtract(mut a: Lanes, b: Lanes) -> Lanes {
        a.iter_mut().zip(b).for_each(|(a, b)| *a -= b);
        a
    }

    #[inline(always)]
    fn multiply_add(a: Lanes, b: Lanes, mut c: Lanes) -> Lanes {
        for ((a, b), c) in a.iter().zip(b).zip(&mut c) {
            // Without the instruction `mul_add` is a call.
            *c = if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
                a.mul_add(b, *c)
            } else {
                a * b + *c
            };
        }
        c
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every set that this processor has.
    pub(crate) fn every_set() -> Vec<Instructions> {
        let named = |name: &&str| {
            let set = Instructions::named(name);
            if set.is_none() {
                eprintln!("not run: this processor does not have {name}");
            }
            set
        };
        Instructions::NAMES.iter().filter_map(named).collect()
    }

    #[test]
    fn the_best_instructions_are_the_first_that_the_processor_has() {
        assert_eq!(every_set().first(), Some(&Instructions::best()));
        let names = every_set().into_iter().map(Instructions::name);
        assert!(names.is_sorted_by_key(|name| Instructions::NAMES.iter().position(|n| *n == name)));
        assert_eq!(Instructions::named("sse9"), None);
    }
}
