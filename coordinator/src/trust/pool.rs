//! The last audits of a contributor taken together.
//!
//! The fewer positions an audit has, the more it must let pass. A contributor who sends every short game as a
//! chunk of its own is judged by as many positions as the others, and one who lies less in each chunk than an
//! audit must let pass, by those of several audits.

use std::collections::BTreeSet;

use rookery_common::audit::{Disagreement, Finding, Tolerance};

use super::verdict::Auditor;

/// How many positions are judged together: those of an audit of an ordinary chunk, and those of eight.
const ENOUGH: [u32; 2] = [64, 512];

/// What an auditor found in one chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    pub auditor: i64,
    /// Whose word it is.
    pub weight: Auditor,
    /// How far the searches are apart.
    pub found: Disagreement,
    /// How far they may be.
    pub tolerance: Tolerance,
}

/// What evidence says together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pooled {
    /// The searches are what they claim to be.
    Agrees,
    /// They are not, if volunteers are believed.
    DiffersByVolunteers,
    /// They are not, by the word of the operator's auditors alone.
    Differs,
}

/// What the newest of this evidence says together, as much of it as has the positions of an ordinary
/// audit, and as much as has those of several; given newest first.
pub fn together(evidence: &[Evidence]) -> Pooled {
    let found = ENOUGH.map(|enough| of_newest(evidence, enough));
    found.into_iter().max().unwrap_or(Pooled::Agrees)
}

/// What the newest evidence says, until it has enough positions.
///
/// As in a single audit an auditor whom the operator trusts is believed alone, a volunteer is not:
/// without the word of any one of them the others' must say the same. Newcomers are not asked.
fn of_newest(evidence: &[Evidence], enough: u32) -> Pooled {
    let trusted = newest(evidence, enough, |weight| weight == Auditor::Trusted);
    if judge(trusted.iter().copied()) == Finding::Differs {
        return Pooled::Differs;
    }
    let all = newest(evidence, enough, |weight| weight != Auditor::Newcomer);
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
        Pooled::DiffersByVolunteers
    } else {
        Pooled::Agrees
    }
}

/// The newest evidence of these auditors, until there is enough.
fn newest(evidence: &[Evidence], enough: u32, counts: impl Fn(Auditor) -> bool) -> Vec<&Evidence> {
    let mut plies = 0;
    let mut chosen = Vec::new();
    for one in evidence.iter().filter(|one| counts(one.weight)) {
        if plies >= enough {
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
    use Pooled::{Agrees, Differs, DiffersByVolunteers};

    /// Searches of four positions that are as far apart as those of another network.
    fn lie(auditor: i64, weight: Auditor) -> Evidence {
        let found = Disagreement {
            plies: 4,
            policy: 0.5,
            value: 0.1,
            ..Disagreement::default()
        };
        let tolerance = Tolerance::between(Backend::CpuF32, Backend::CudaBf16);
        assert_eq!(tolerance.judge(&found), Finding::Agrees, "too few to tell");
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
        assert_eq!(
            together(&by(&[1, 2], Auditor::Volunteer)),
            DiffersByVolunteers
        );
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

    /// Evidence of an ordinary audit with this distance of policies.
    fn whole(policy: f64) -> Evidence {
        let found = Disagreement {
            plies: 64,
            policy,
            ..Disagreement::default()
        };
        Evidence {
            found,
            ..lie(1, Auditor::Trusted)
        }
    }

    /// Honest machines of these backends are 0.07 apart, and 0.15 pass where 64 positions are all there is.
    #[test]
    fn lies_that_one_audit_must_let_pass_are_found_by_several() {
        let audits = |policy, count| together(&vec![whole(policy); count]);
        assert_eq!(audits(0.15, 1), Agrees);
        assert_eq!(audits(0.15, 8), Differs);
        assert_eq!(audits(0.085, 64), Agrees);
    }

    #[test]
    fn only_the_newest_are_looked_at() {
        let mut evidence = vec![whole(0.05); 8];
        evidence.extend([lie(1, Auditor::Trusted); 40]);
        assert_eq!(together(&evidence), Agrees);
        evidence.reverse();
        assert_eq!(together(&evidence), Differs);
    }
}
