//! How much the latest visits have changed the distribution of all visits.

use rookery_common::params::KldStop;

use crate::tree::Tree;

/// What is remembered from one look at the root's visits to the next.
#[derive(Debug, Default)]
pub(crate) struct Divergence {
    /// Visits of each of the root's moves when their distribution was last measured; none yet if
    /// it is empty.
    measured: Vec<u32>,
    /// Their sum, or 0.
    measured_at: u32,
}

impl Divergence {
    /// Begins with another search.
    pub(crate) fn begin(&mut self) {
        self.measured.clear();
        self.measured_at = 0;
    }

    /// From how many visits on the next look is one.
    pub(super) const fn due(&self, stop: &KldStop) -> u32 {
        self.measured_at.saturating_add(stop.interval)
    }

    /// Lc0's `KldGainStopper`: whether the divergence of the distribution of `spent` visits from the one an
    /// interval before, for each visit in between, is below the least gain. None before an interval is over.
    pub(crate) fn look(&mut self, tree: &Tree, spent: u32, stop: &KldStop) -> Option<bool> {
        if spent < self.due(stop) {
            return None;
        }
        let settled = !self.measured.is_empty()
            && self.gain(tree, spent) / f64::from(spent - self.measured_at)
                < f64::from(stop.minimum_gain);
        self.measured.clear();
        self.measured.extend(tree.child_visits());
        self.measured_at = spent;
        Some(settled)
    }

    /// The divergence from the measured distribution to the present one, in nats.
    fn gain(&self, tree: &Tree, spent: u32) -> f64 {
        let pairs = self.measured.iter().zip(tree.child_visits());
        let visited = pairs.filter(|(before, _)| **before > 0);
        visited
            .map(|(before, now)| {
                let before = f64::from(*before) / f64::from(self.measured_at);
                before * (before * f64::from(spent) / f64::from(now)).ln()
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluator::Wdl;
    use crate::search::testing;

    #[test]
    fn the_divergence_is_as_computed_by_hand() {
        let stop = KldStop {
            minimum_gain: 0.001,
            interval: 10,
        };
        let tree = |visits: [u32; 3]| testing::tree(visits.map(|visits| (visits, Wdl::DRAW.q())));
        let begun = || {
            let mut divergence = Divergence::default();
            let early = divergence.look(&tree([5, 4, 0]), 9, &stop);
            assert_eq!(early, None, "too early");
            let first = divergence.look(&tree([6, 4, 0]), 10, &stop);
            assert_eq!(first, Some(false), "nothing to compare with");
            let between = divergence.look(&tree([12, 7, 0]), 19, &stop);
            assert_eq!(between, None, "between two looks");
            divergence
        };
        // 0.6 ln(0.6 / 0.65) + 0.4 ln(0.4 / 0.35) = 0.005387; over ten visits less than 0.001.
        assert_eq!(begun().look(&tree([13, 7, 0]), 20, &stop), Some(true));
        // 0.6 ln(0.6 / 0.5) + 0.4 ln(0.4 / 0.3) = 0.224466; over ten visits more than that.
        let mut divergence = begun();
        assert_eq!(divergence.look(&tree([10, 6, 4]), 20, &stop), Some(false));
        assert_eq!(
            (divergence.measured.as_slice(), divergence.due(&stop)),
            (&[10, 6, 4][..], 30)
        );
    }
}
