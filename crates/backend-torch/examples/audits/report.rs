//! What audits found, as lines of a table.

use rookery_common::audit::{Disagreement, Finding, Tolerance};
use rookery_common::protocol::jobs::Backend;

/// Mean and standard deviation.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Audits, and how many of them say that the searches are another's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Verdicts {
    pub(crate) audits: usize,
    pub(crate) differ: usize,
}

impl Verdicts {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            audits: self.audits + other.audits,
            differ: self.differ + other.differ,
        }
    }

    /// The largest share of audits that differ from which chance gives no more of them than these in one case of
    /// twenty (Clopper and Pearson, 1934).
    pub(crate) fn bound(self) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let share = f64::midpoint(low, high);
            if self.chance_of_no_more(share) > 0.05 {
                low = share;
            } else {
                high = share;
            }
        }
        high
    }

    /// The chance that no more than these differ, if such a share does.
    fn chance_of_no_more(self, share: f64) -> f64 {
        let mut term = (1.0 - share).powf(self.audits as f64);
        let mut sum = term;
        for more in 0..self.differ {
            term *= (self.audits - more) as f64 / (more + 1) as f64 * share / (1.0 - share);
            sum += term;
        }
        sum
    }
}

/// Prints what audits found of one player.
pub(crate) fn report(
    search: &str,
    who: &str,
    audits: &[Vec<Disagreement>],
    backends: (Backend, Backend),
) -> Verdicts {
    let all = || audits.iter().flatten();
    let pooled: Vec<Disagreement> = audits
        .iter()
        .map(|audit| {
            audit
                .iter()
                .copied()
                .fold(Disagreement::default(), Disagreement::and)
        })
        .collect();
    let of = |distance: fn(&Disagreement) -> f64| {
        let (mean, deviation) = moments(all().map(distance));
        format!("{mean:.4} ± {deviation:.4}")
    };
    let most = |of: fn(&Disagreement) -> f64| pooled.iter().map(of).fold(0.0, f64::max);
    let tolerance = Tolerance::between(backends.0, backends.1);
    let differ = pooled
        .iter()
        .filter(|found| tolerance.judge(found) == Finding::Differs)
        .count();
    println!(
        "| {search} | {who} | {} | {} | {} | {} | {} | {} | {:.4}, {:.4}, {:.4}, {:.4}, {:.4} | {differ} of {} |",
        all().count(),
        of(|d| d.policy),
        of(|d| d.visits),
        of(|d| d.value),
        of(|d| d.best),
        of(|d| d.choice),
        most(|found| found.policy),
        most(|found| found.visits),
        most(|found| found.value),
        most(|found| found.best),
        most(|found| found.choice),
        pooled.len(),
    );
    Verdicts {
        audits: pooled.len(),
        differ,
    }
}
