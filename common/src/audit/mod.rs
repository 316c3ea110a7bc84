//! Whether two searches of one position, made on different machines, can be of the same network
//! with the same seed and parameters.
//!
//! ```text
//! PlyRecord as played ─┐
//!                      ├─ Disagreement of each ply ─ mean ─> Disagreement ─ Tolerance ─> Finding
//! PlyRecord as audited ┘                                                       ^
//!                                              the two backends ───────────────┘
//! ```
//!
//! With one seed both searches have the same noise and the same budget, so that machines which
//! compute with the same numbers agree almost to the visit. Numbers of 16 bits move evaluations a
//! little, and where two moves are nearly equal a search may then go another way; the tolerances
//! are what honest machines showed when they were measured (`docs/results/trust.md`).

mod sample;

use serde::{Deserialize, Serialize};
use shakmaty::Move;
use utoipa::ToSchema;

use crate::chunk::record::PlyRecord;
use crate::names::names;
use crate::protocol::jobs::Backend;

pub use sample::{
    AuditDepth, SampledGame, Span, compare_span, sample, span_distances, task, warm_up,
};

/// How far an audit's searches are from those that were played: means over its positions, or the
/// distances of one position.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Disagreement {
    /// Positions compared.
    pub plies: u32,
    /// Mean total variation distance of the policies that would be learned from, 0 (equal) to 1
    /// (nothing in common): half the sum of absolute differences of probabilities.
    pub policy: f64,
    /// The same of the visits: what moves are chosen by, and not what is learned from where a policy target
    /// stands beside them.
    #[serde(default)]
    pub visits: f64,
    /// Mean of the larger of the differences of the root values (0 to 2) and of the draw probabilities
    /// (0 to 1).
    pub value: f64,
    /// Mean difference of the best moves' values, 0 to 2.
    #[serde(default)]
    pub best: f64,
    /// Share of the positions in which the move that follows from the search made again is not the one that
    /// was played. A move that the seed draws from the visits is compared with these when a chunk comes in,
    /// and counts 0.
    #[serde(default)]
    pub choice: f64,
}

impl Disagreement {
    /// Of a move that was made without a search.
    pub fn of_move(same: bool) -> Self {
        Self {
            plies: 1,
            choice: f64::from(u8::from(!same)),
            ..Self::default()
        }
    }

    /// Of a search as it was played and as it was made again, after which `chosen` would have been
    /// played; both have the same legal moves. Searches of different effort, or with a policy target in
    /// only one of them, have nothing in common: effort and target follow from seed and parameters.
    pub fn between(played: &PlyRecord, again: &PlyRecord, chosen: Move) -> Self {
        let alike = played.effort == again.effort
            && played.target.is_some() == again.target.is_some()
            && played.visits.len() == again.visits.len();
        let difference = |of: fn(&PlyRecord) -> f32| f64::from((of(played) - of(again)).abs());
        let variation = |of: fn(&PlyRecord) -> Vec<f32>| {
            if alike {
                total_variation(&of(played), &of(again))
            } else {
                1.0
            }
        };
        Self {
            plies: 1,
            policy: variation(PlyRecord::policy_weights),
            visits: variation(|ply| ply.visits.iter().map(|n| *n as f32).collect()),
            value: difference(|ply| ply.root_q).max(difference(|ply| ply.root_draw)),
            best: difference(|ply| ply.best_q),
            choice: f64::from(u8::from(chosen != played.played)),
        }
    }

    /// Two parts of an audit together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let plies = self.plies + other.plies;
        let mean = |a: f64, b: f64| {
            let sum = a * f64::from(self.plies) + b * f64::from(other.plies);
            sum / f64::from(plies.max(1))
        };
        Self {
            plies,
            policy: mean(self.policy, other.policy),
            visits: mean(self.visits, other.visits),
            value: mean(self.value, other.value),
            best: mean(self.best, other.best),
            choice: mean(self.choice, other.choice),
        }
    }
}

/// Half the sum of absolute differences of two distributions given by weights.
fn total_variation(a: &[f32], b: &[f32]) -> f64 {
    let sum = |weights: &[f32]| weights.iter().map(|w| f64::from(*w)).sum::<f64>();
    let (all_a, all_b) = (sum(a), sum(b));
    if all_a <= 0.0 || all_b <= 0.0 {
        return 1.0;
    }
    let differences = a
        .iter()
        .zip(b)
        .map(|(a, b)| (f64::from(*a) / all_a - f64::from(*b) / all_b).abs());
    differences.sum::<f64>() / 2.0
}

names! {
    /// What an auditor's searches say of a contributor's.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Finding {
        /// They can be of the same network.
        Agrees = "agrees",
        /// They are not.
        Differs = "differs",
    }
}

/// How much one kind of distance may be: honest machines' mean and standard deviation of a single
/// position, the largest of all that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Honest {
    mean: f64,
    deviation: f64,
}

/// Standard errors above the honest mean from which machines differ.
const SIGMAS: f64 = 6.0;

impl Honest {
    const fn wider(self, other: Self) -> Self {
        Self {
            mean: self.mean.max(other.mean),
            deviation: self.deviation.max(other.deviation),
        }
    }

    /// The largest mean of `plies` positions that is still honest.
    fn limit(self, plies: u32) -> f64 {
        self.mean + SIGMAS * self.deviation / f64::from(plies.max(1)).sqrt()
    }
}

/// How far honest machines with these backends may be apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    policy: Honest,
    visits: Honest,
    value: Honest,
    best: Honest,
    choice: Honest,
}

/// In what numbers a backend computes, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// 32 bits, or no network at all.
    Long,
    /// 16 bits: bfloat16 has 8 of mantissa, half precision 11.
    Short,
}

const fn numbers(backend: Backend) -> Numbers {
    match backend {
        Backend::CpuF32 | Backend::CudaF32 | Backend::GpuF32 | Backend::Mps | Backend::Uniform => {
            Numbers::Long
        }
        Backend::CpuBf16 | Backend::CudaF16 | Backend::CudaBf16 | Backend::GpuF16 => Numbers::Short,
    }
}

const fn honest(mean: f64, deviation: f64) -> Honest {
    Honest { mean, deviation }
}

impl Tolerance {
    /// Both compute with 32 bits: sums are only added up in another order.
    const LONG: Self = Self {
        policy: honest(0.01, 0.05),
        visits: honest(0.01, 0.05),
        value: honest(0.005, 0.02),
        best: honest(0.005, 0.03),
        choice: honest(0.01, 0.1),
    };

    /// At least one computes with 16 bits.
    const SHORT: Self = Self {
        policy: honest(0.085, 0.15),
        visits: honest(0.12, 0.18),
        value: honest(0.03, 0.05),
        best: honest(0.04, 0.08),
        choice: honest(0.12, 0.33),
    };

    /// The tolerance between two backends.
    pub const fn between(a: Backend, b: Backend) -> Self {
        match (numbers(a), numbers(b)) {
            (Numbers::Long, Numbers::Long) => Self::LONG,
            (Numbers::Short, _) | (_, Numbers::Short) => Self::SHORT,
        }
    }

    /// One that lets pass what either does.
    #[must_use]
    pub const fn wider(self, other: Self) -> Self {
        Self {
            policy: self.policy.wider(other.policy),
            visits: self.visits.wider(other.visits),
            value: self.value.wider(other.value),
            best: self.best.wider(other.best),
            choice: self.choice.wider(other.choice),
        }
    }

    /// The largest means that are still honest, for this number of positions.
    pub fn limits(&self, plies: u32) -> Disagreement {
        Disagreement {
            plies,
            policy: self.policy.limit(plies),
            visits: self.visits.limit(plies),
            value: self.value.limit(plies),
            best: self.best.limit(plies),
            choice: self.choice.limit(plies),
        }
    }

    /// What an audit's positions say. Without any there is nothing to object to.
    pub fn judge(&self, found: &Disagreement) -> Finding {
        let limits = self.limits(found.plies);
        let beyond = [
            found.policy > limits.policy,
            found.visits > limits.visits,
            found.value > limits.value,
            found.best > limits.best,
            found.choice > limits.choice,
        ];
        if found.plies > 0 && beyond.contains(&true) {
            Finding::Differs
        } else {
            Finding::Agrees
        }
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;
    use crate::chunk::record::Effort;

    fn ply(visits: &[u32], root_q: f32) -> PlyRecord {
        let mut all = vec![0; 20];
        all[..visits.len()].copy_from_slice(visits);
        PlyRecord {
            visits: all,
            root_q,
            root_draw: 0.2,
            best_q: root_q,
            ..PlyRecord::new(shakmaty::Chess::default().legal_moves()[0])
        }
    }

    /// The distance where the same move follows from both searches.
    fn between(played: &PlyRecord, again: &PlyRecord) -> Disagreement {
        Disagreement::between(played, again, played.played)
    }

    /// What is learned from may be right where what the move is chosen by is not.
    #[test]
    fn visits_best_values_and_choices_are_compared_too() {
        let honest = PlyRecord {
            target: Some(vec![1; 20]),
            ..ply(&[30, 10], 0.1)
        };
        let wished = PlyRecord {
            best_q: 0.9,
            ..ply(&[0, 40], 0.1)
        };
        let wished = PlyRecord {
            target: honest.target.clone(),
            ..wished
        };
        let other = shakmaty::Chess::default().legal_moves()[1];
        let found = Disagreement::between(&wished, &honest, other);
        assert_eq!((found.policy, found.value, found.choice), (0.0, 0.0, 1.0));
        assert!((found.visits - 0.75).abs() < 1e-9 && (found.best - 0.8).abs() < 1e-6);
        let tolerance = Tolerance::between(Backend::CpuF32, Backend::CpuF32);
        let all = |found: Disagreement| {
            let sum = (0..64).fold(Disagreement::default(), |sum, _| sum.and(found));
            tolerance.judge(&sum)
        };
        let none = between(&honest, &honest);
        assert_eq!(all(none), Finding::Agrees);
        for one in [
            Disagreement {
                visits: found.visits,
                ..none
            },
            Disagreement {
                best: found.best,
                ..none
            },
            Disagreement {
                choice: found.choice,
                ..none
            },
        ] {
            assert_eq!(all(one), Finding::Differs, "{one:?}");
        }
    }

    #[test]
    fn distances_are_of_distributions_not_of_counts() {
        let near = between(&ply(&[30, 10], 0.1), &ply(&[60, 20], 0.1));
        assert!(near.policy < 1e-9 && near.value < 1e-6);
        let apart = between(&ply(&[30, 10], 0.5), &ply(&[0, 0, 7], -0.5));
        assert!((apart.policy - 1.0).abs() < 1e-9 && (apart.value - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_target_is_compared_where_there_is_one() {
        let with = |target: Option<Vec<u16>>| PlyRecord {
            target,
            ..ply(&[30, 10], 0.0)
        };
        let (mut a, mut b) = (vec![0; 20], vec![0; 20]);
        (a[0], b[1]) = (500, 500);
        let apart = between(&with(Some(a.clone())), &with(Some(b)));
        assert_eq!(apart.policy, 1.0);
        assert_eq!(between(&with(Some(a)), &with(None)).policy, 1.0);
    }

    #[test]
    fn another_effort_is_another_search() {
        let fast = PlyRecord {
            effort: Effort::Fast,
            ..ply(&[4, 4], 0.0)
        };
        assert_eq!(between(&fast, &ply(&[4, 4], 0.0)).policy, 1.0);
    }

    #[test]
    fn parts_of_an_audit_are_weighted_by_their_positions() {
        let part = |plies, policy| Disagreement {
            plies,
            policy,
            ..Disagreement::default()
        };
        let whole = part(1, 0.4).and(part(3, 0.0));
        assert_eq!((whole.plies, whole.policy), (4, 0.1));
        assert_eq!(
            Disagreement::default().and(Disagreement::default()).plies,
            0
        );
    }

    /// The table of docs/protocol.md.
    #[test]
    fn each_pair_of_backends_has_the_tolerance_of_the_less_exact() {
        let exact = ["cpu-f32", "cuda-f32", "gpu-f32", "mps", "uniform"];
        let inexact = ["cpu-bf16", "cuda-f16", "cuda-bf16", "gpu-f16"];
        assert_eq!(Backend::ALL.len(), exact.len() + inexact.len());
        for a in Backend::ALL {
            for b in Backend::ALL {
                let both_exact = [a, b].iter().all(|one| exact.contains(&one.name()));
                let either_inexact = [a, b].iter().any(|one| inexact.contains(&one.name()));
                assert_ne!(both_exact, either_inexact, "{a:?} {b:?}");
                let expected = if both_exact {
                    Tolerance::LONG
                } else {
                    Tolerance::SHORT
                };
                assert_eq!(Tolerance::between(a, b), expected, "{a:?} {b:?}");
            }
        }
        assert_eq!(Tolerance::LONG.wider(Tolerance::SHORT), Tolerance::SHORT);
    }

    #[test]
    fn more_positions_make_a_finer_judgement() {
        let tolerance = Tolerance::between(Backend::CpuF32, Backend::CudaF16);
        let found = |plies| Disagreement {
            plies,
            policy: 0.2,
            ..Disagreement::default()
        };
        assert_eq!(tolerance.judge(&found(4)), Finding::Agrees);
        assert_eq!(tolerance.judge(&found(400)), Finding::Differs);
        let exact = Tolerance::between(Backend::CpuF32, Backend::CpuF32);
        assert_eq!(exact.judge(&found(64)), Finding::Differs);
        assert_eq!(exact.judge(&Disagreement::default()), Finding::Agrees);
    }
}
