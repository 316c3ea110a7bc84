//! The last audits of a contributor taken together.
//!
//! The fewer positions an audit has, the more it must let pass. Whoever sends every short game as a
//! chunk of its own is judged by as many positions as everybody else.

use std::collections::BTreeSet;

use rookery_common::audit::{Disagreement, Finding, Tolerance};

use super::verdict::Auditor;

/// Positions that an audit of an ordinary chunk compares.
const ENOUGH: u32 = 64;

/// What an auditor found in one chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The auditor's number.
    pub auditor: i64,
    /// Whose word it is.
    pub weight: Auditor,
    /// How far the searches are apart.
    pub found: Disagreement,
    /// How far they may be.
    pub tolerance: Tolerance,
}

/// What the newest of this evidence says together, as much of it as has the positions of an ordinary
/// audit; given newest first.
///
/// As in a single audit an auditor whom the operator trusts is believed alone, a volunteer is not:
/// without the word of any one of them the others' must say the same. Newcomers are not asked.
pub fn together(evidence: &[Evidence]) -> Finding {
    let trusted = newest(evidence, |weight| weight == Auditor::Trusted);
    if judge(trusted.iter().copied()) == Finding::Differs {
        return Finding::Differs;
    }
    let all = newest(evidence, |weight| weight != Auditor::Newcomer);
    let volunteers: BTreeSet<i64> = all
        .iter()
        .filter(|one| one.weight == Auditor::Volunteer)
        .map(|one| one.auditor)
        .collect();
    let convicted = |without: &i64| {
        let others = all.iter().copied().filter(|one| one.auditor != *without);
        judge(others) == Finding::Differs
    };
    if !volunteers.is_empty() && volunteers.iter().all(convicted) {
        Finding::Differs
    } else {
        Finding::Agrees
    }
}

/// The newest evidence of these auditors, until there is enough.
fn newest(evidence: &[Evidence], counts: impl Fn(Auditor) -> bool) -> Vec<&Evidence> {
    let mut plies = 0;
    let mut chosen = Vec::new();
    for one in evidence.iter().filter(|one| counts(one.weight)) {
        if plies >= ENOUGH {
            break;
        }
        plies += one.found.plies;
        chosen.push(one);
    }
    chosen
}

/// What evidence says, by the widest of its tolerances.
fn judge<'a>(evidence: impl Iterator<Item = &'a Evidence>) -> Finding {
    let sum = evidence
        .map(|one| (one.found, one.tolerance))
        .reduce(|(a, s), (b, t)| (a.and(b), s.wider(t)));
    sum.map_or(Finding::Agrees, |(found, tolerance)| {
        tolerance.judge(&found)
    })
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Backend;

    use super::*;
    use Finding::{Agrees, Differs};

    /// Searches of four positions that are as far apart as those of another network.
    fn lie(auditor: i64, weight: Auditor) -> Evidence {
        let found = Disagreement {
            plies: 4,
            policy: 0.5,
            value: 0.1,
            ..Disagreement::default()
        };
        let tolerance = Tolerance::between(Backend::CpuF32, Backend::CudaBf16);
        assert_eq!(tolerance.judge(&found), Agrees, "too few to tell");
        Evidence {
            auditor,
            weight,
            found,
            tolerance,
        }
    }

    #[test]
    fn many_small_lies_are_found_together() {
        let lies = |count| vec![lie(1, Auditor::Trusted); count];
        assert_eq!(together(&lies(1)), Agrees);
        assert_eq!(together(&lies(16)), Differs);
        assert_eq!(together(&[]), Agrees);
    }

    #[test]
    fn no_volunteer_convicts_alone_and_newcomers_do_not_at_all() {
        let by = |auditors: &[i64], weight| -> Vec<Evidence> {
            let auditors = auditors.iter().cycle().take(16);
            auditors.map(|auditor| lie(*auditor, weight)).collect()
        };
        assert_eq!(together(&by(&[1], Auditor::Volunteer)), Agrees);
        assert_eq!(together(&by(&[1, 2], Auditor::Volunteer)), Differs);
        assert_eq!(together(&by(&[1, 2, 3], Auditor::Newcomer)), Agrees);
        // A false accuser among honest auditors.
        let mut mixed = by(&[1], Auditor::Volunteer);
        for (place, one) in mixed.iter_mut().enumerate().filter(|(at, _)| at % 2 == 0) {
            let (policy, value) = (0.01, 0.0);
            one.auditor = 2 + place as i64;
            (one.found.policy, one.found.value) = (policy, value);
        }
        assert_eq!(together(&mixed), Agrees);
    }

    #[test]
    fn only_the_newest_are_looked_at() {
        let mut evidence = vec![lie(1, Auditor::Trusted); 40];
        for one in &mut evidence[..16] {
            (one.found.policy, one.found.value) = (0.05, 0.01);
        }
        assert_eq!(together(&evidence), Agrees);
        evidence.reverse();
        assert_eq!(together(&evidence), Differs);
    }

    #[test]
    fn what_is_enough_alone_is_judged_alone() {
        let mut evidence = vec![lie(1, Auditor::Trusted); 15];
        let found = Disagreement {
            plies: 64,
            policy: 0.1,
            value: 0.01,
            ..Disagreement::default()
        };
        let whole = Evidence {
            found,
            ..evidence[0]
        };
        evidence.insert(0, whole);
        assert_eq!(together(&evidence), Agrees);
    }
}
