//! Whether two searches of one position, made on different machines, can be of the same network
//! with the same seed and parameters.
//!
//! ```text
//! PlyRecord as played ─┐
//!                      ├─ distance ─> PlyDistance ─ sum ─> Disagreement ─ Tolerance ─> Finding
//! PlyRecord as audited ┘                                                     ^
//!                                            the two backends ───────────────┘
//! ```
//!
//! With one seed both searches have the same noise and the same budget, so that machines which
//! compute with the same numbers agree almost to the visit. Numbers of 16 bits move evaluations a
//! little, and where two moves are nearly equal a search may then go another way; the tolerances
//! are what honest machines showed when they were measured (`docs/results/trust.md`).

mod sample;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::chunk::record::PlyRecord;
use crate::names::names;
use crate::protocol::jobs::Backend;

pub use sample::{Span, compare_span, sample, task, warm_up};

/// How far two searches of one position are from each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlyDistance {
    /// Total variation distance of the policies that would be learned from, 0 (equal) to 1
    /// (nothing in common): half the sum of absolute differences of probabilities.
    pub policy: f64,
    /// The larger of the differences of the root values (0 to 2) and of the draw probabilities
    /// (0 to 1).
    pub value: f64,
}

impl PlyDistance {
    /// The distance between a search as it was played and as it was made again; both have the same
    /// legal moves. Searches of different effort, or of which only one has a policy target, have
    /// nothing in common: effort and target follow from seed and parameters.
    pub fn between(played: &PlyRecord, again: &PlyRecord) -> Self {
        let alike = played.effort == again.effort
            && played.target.is_some() == again.target.is_some()
            && played.visits.len() == again.visits.len();
        let policy = if alike {
            total_variation(&played.policy_weights(), &again.policy_weights())
        } else {
            1.0
        };
        let q = f64::from((played.root_q - again.root_q).abs());
        let draw = f64::from((played.root_draw - again.root_draw).abs());
        Self {
            policy,
            value: q.max(draw),
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

/// What an audit found, pooled over its positions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Disagreement {
    /// Positions compared.
    pub plies: u32,
    /// Mean total variation distance of the policies, 0 to 1.
    pub policy: f64,
    /// Mean difference of the values, 0 to 2.
    pub value: f64,
}

impl Disagreement {
    /// What the audit found, with one more position.
    #[must_use]
    pub fn with(self, distance: PlyDistance) -> Self {
        self.and(Self {
            plies: 1,
            policy: distance.policy,
            value: distance.value,
        })
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
            value: mean(self.value, other.value),
        }
    }
}

/// What an auditor's searches say of a contributor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// They can be of the same network.
    Agrees,
    /// They are not.
    Differs,
}

names! {
    /// The name used in the API and the ledger.
    Finding {
        Agrees = "agrees",
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
    value: Honest,
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
        Backend::CpuF32 | Backend::CudaF32 | Backend::Mps | Backend::Uniform => Numbers::Long,
        Backend::CpuBf16 | Backend::CudaF16 | Backend::CudaBf16 => Numbers::Short,
    }
}

impl Tolerance {
    /// Both compute with 32 bits: sums are only added up in another order.
    const LONG: Self = Self {
        policy: Honest {
            mean: 0.01,
            deviation: 0.05,
        },
        value: Honest {
            mean: 0.005,
            deviation: 0.02,
        },
    };

    /// At least one computes with 16 bits.
    const SHORT: Self = Self {
        policy: Honest {
            mean: 0.085,
            deviation: 0.15,
        },
        value: Honest {
            mean: 0.03,
            deviation: 0.05,
        },
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
            value: self.value.wider(other.value),
        }
    }

    /// The largest mean distances of so many positions, policy and value, that are still honest.
    pub fn limits(&self, plies: u32) -> (f64, f64) {
        (self.policy.limit(plies), self.value.limit(plies))
    }

    /// What an audit's positions say. Without any there is nothing to object to.
    pub fn judge(&self, found: &Disagreement) -> Finding {
        let (policy, value) = self.limits(found.plies);
        if found.plies > 0 && (found.policy > policy || found.value > value) {
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
            played: shakmaty::Chess::default().legal_moves()[0],
            effort: Effort::Full,
            visits: all,
            target: None,
            root_q,
            root_draw: 0.2,
            best_q: root_q,
        }
    }

    #[test]
    fn distances_are_of_distributions_not_of_counts() {
        let near = PlyDistance::between(&ply(&[30, 10], 0.1), &ply(&[60, 20], 0.1));
        assert!(near.policy < 1e-9 && near.value < 1e-6);
        let apart = PlyDistance::between(&ply(&[30, 10], 0.5), &ply(&[0, 0, 7], -0.5));
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
        let apart = PlyDistance::between(&with(Some(a.clone())), &with(Some(b)));
        assert_eq!(apart.policy, 1.0);
        assert_eq!(
            PlyDistance::between(&with(Some(a)), &with(None)).policy,
            1.0
        );
    }

    #[test]
    fn another_effort_is_another_search() {
        let fast = PlyRecord {
            effort: Effort::Fast,
            ..ply(&[4, 4], 0.0)
        };
        assert_eq!(PlyDistance::between(&fast, &ply(&[4, 4], 0.0)).policy, 1.0);
    }

    #[test]
    fn parts_of_an_audit_are_weighted_by_their_positions() {
        let part = |plies, policy| Disagreement {
            plies,
            policy,
            value: 0.0,
        };
        let whole = part(1, 0.4).and(part(3, 0.0));
        assert_eq!((whole.plies, whole.policy), (4, 0.1));
        assert_eq!(
            Disagreement::default().and(Disagreement::default()).plies,
            0
        );
    }

    #[test]
    fn more_positions_make_a_finer_judgement() {
        let tolerance = Tolerance::between(Backend::CpuF32, Backend::CudaF16);
        let found = |plies| Disagreement {
            plies,
            policy: 0.2,
            value: 0.0,
        };
        assert_eq!(tolerance.judge(&found(4)), Finding::Agrees);
        assert_eq!(tolerance.judge(&found(400)), Finding::Differs);
        let exact = Tolerance::between(Backend::CpuF32, Backend::CpuF32);
        assert_eq!(exact.judge(&found(64)), Finding::Differs);
        assert_eq!(exact.judge(&Disagreement::default()), Finding::Agrees);
    }
}
