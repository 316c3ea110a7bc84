//! What the opinions of auditors decide together.
//!
//! A contributor is not convicted on the word of one volunteer: two independent ones must differ
//! from the accused, or an auditor whom the operator trusts. Where two volunteers differ from each
//! other a third is asked. Newcomers, who audit only while there is no volunteer, acquit as
//! volunteers do and never convict; as soon as a volunteer has spoken they count for nothing.

use rookery_common::audit::{Finding, Tolerance};

use super::rate::TrackRecord;

/// One auditor's answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opinion {
    pub finding: Finding,
    /// Whose word it is.
    pub auditor: Auditor,
    /// How far the searches may be apart for that.
    pub tolerance: Tolerance,
}

/// Whose word an opinion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Auditor {
    /// A contributor who is on probation, or for whom only others of that kind have vouched.
    Newcomer,
    /// A contributor who has passed enough audits by the word of those who can be believed.
    Volunteer,
    /// One whose token has the scope `audit`.
    Trusted,
}

impl Auditor {
    /// Whose word it is, once the contributor's record is known.
    pub const fn with(self, record: TrackRecord) -> Self {
        match self {
            Self::Trusted => Self::Trusted,
            Self::Newcomer | Self::Volunteer if record.is_vouched_for() => Self::Volunteer,
            Self::Newcomer | Self::Volunteer => Self::Newcomer,
        }
    }
}

/// Contributors past their probation from whom on newcomers are asked no more, and play no gates:
/// with the accused among them, the others are still a quorum.
pub const ENOUGH_VOLUNTEERS: i64 = 1 + QUORUM as i64;

/// Where an audit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Another opinion is needed.
    Open,
    /// The chunk is what it claims to be.
    Passed,
    /// It is not.
    Failed,
}

/// Opinions of volunteers that convict or, against another one, acquit.
const QUORUM: usize = 2;

pub fn verdict(opinions: &[Opinion]) -> Verdict {
    let trusted = opinions
        .iter()
        .find(|opinion| opinion.auditor == Auditor::Trusted);
    if let Some(opinion) = trusted {
        return match opinion.finding {
            Finding::Agrees => Verdict::Passed,
            Finding::Differs => Verdict::Failed,
        };
    }
    match (
        votes(opinions, Auditor::Volunteer),
        votes(opinions, Auditor::Newcomer),
    ) {
        ((_, QUORUM..), _) => Verdict::Failed,
        ((1.., 0) | (QUORUM.., _), _) | ((0, 0), (1.., 0) | (QUORUM.., _)) => Verdict::Passed,
        _ => Verdict::Open,
    }
}

/// How many auditors of this kind agree and differ.
fn votes(opinions: &[Opinion], auditor: Auditor) -> (usize, usize) {
    let count = |finding| {
        opinions
            .iter()
            .filter(|opinion| (opinion.finding, opinion.auditor) == (finding, auditor))
            .count()
    };
    (count(Finding::Agrees), count(Finding::Differs))
}

/// Whether the verdict of these opinions says that one of them was wrong.
///
/// Where a chunk passes by wider limits than those of an auditor who objects, both may be right.
pub fn overrules(opinions: &[Opinion], verdict: Verdict, opinion: Opinion) -> bool {
    match (verdict, opinion.finding) {
        (Verdict::Failed, Finding::Agrees) => true,
        (Verdict::Passed, Finding::Differs) => {
            let own = opinion.tolerance;
            deciding(opinions).all(|tolerance| own.wider(tolerance) == own)
        }
        _ => false,
    }
}

/// The tolerances of those by whose word a chunk passes.
fn deciding(opinions: &[Opinion]) -> impl Iterator<Item = Tolerance> {
    let highest = opinions.iter().map(|opinion| opinion.auditor).max();
    opinions
        .iter()
        .filter(move |one| one.finding == Finding::Agrees && Some(one.auditor) == highest)
        .map(|one| one.tolerance)
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Backend;

    use super::*;
    use crate::trust::rate::PROBATION;
    use Finding::{Agrees, Differs};

    /// An opinion of somebody who computes with 32 bits.
    fn opinion(finding: Finding, auditor: Auditor) -> Opinion {
        opinion_on(finding, auditor, Backend::CpuF32)
    }

    fn opinion_on(finding: Finding, auditor: Auditor, backend: Backend) -> Opinion {
        Opinion {
            finding,
            auditor,
            tolerance: Tolerance::between(Backend::CpuF32, backend),
        }
    }

    fn of(findings: &[Finding]) -> Verdict {
        let volunteer = |finding: &Finding| opinion(*finding, Auditor::Volunteer);
        verdict(&findings.iter().map(volunteer).collect::<Vec<_>>())
    }

    #[test]
    fn nobody_is_convicted_by_one_volunteer() {
        assert_eq!(of(&[]), Verdict::Open);
        assert_eq!(of(&[Agrees]), Verdict::Passed);
        assert_eq!(of(&[Differs]), Verdict::Open);
        assert_eq!(of(&[Differs, Differs]), Verdict::Failed);
    }

    #[test]
    fn a_tie_is_broken_by_a_third() {
        assert_eq!(of(&[Differs, Agrees]), Verdict::Open);
        assert_eq!(of(&[Differs, Agrees, Agrees]), Verdict::Passed);
        assert_eq!(of(&[Differs, Agrees, Differs]), Verdict::Failed);
    }

    #[test]
    fn newcomers_acquit_and_convict_nobody() {
        let newcomers = |findings: &[Finding]| -> Vec<Opinion> {
            let all = findings.iter();
            all.map(|finding| opinion(*finding, Auditor::Newcomer))
                .collect()
        };
        assert_eq!(verdict(&newcomers(&[Agrees])), Verdict::Passed);
        assert_eq!(verdict(&newcomers(&[Differs; 5])), Verdict::Open);
        let mut split = newcomers(&[Differs, Agrees]);
        assert_eq!(verdict(&split), Verdict::Open);
        split.push(opinion(Differs, Auditor::Volunteer));
        split.extend(newcomers(&[Agrees, Agrees]));
        assert_eq!(verdict(&split), Verdict::Open, "a volunteer has spoken");
        split.push(opinion(Differs, Auditor::Volunteer));
        assert_eq!(verdict(&split), Verdict::Failed);
    }

    #[test]
    fn a_record_makes_a_volunteer_of_a_newcomer() {
        let record = |passed, vouched| TrackRecord {
            passed,
            vouched,
            failed: 0,
        };
        let after = |passed| Auditor::Volunteer.with(record(passed, passed));
        let by_newcomers = Auditor::Volunteer.with(record(1000, 0));
        assert_eq!(by_newcomers, Auditor::Newcomer);
        assert_eq!(after(PROBATION - 1), Auditor::Newcomer);
        assert_eq!(after(PROBATION), Auditor::Volunteer);
        assert_eq!(
            Auditor::Trusted.with(TrackRecord::default()),
            Auditor::Trusted
        );
    }

    #[test]
    fn a_trusted_auditor_decides_alone_and_overrules() {
        let volunteer = opinion(Differs, Auditor::Volunteer);
        let trusted = opinion(Agrees, Auditor::Trusted);
        let all = [volunteer, volunteer, trusted];
        let passed = verdict(&all);
        assert_eq!(passed, Verdict::Passed);
        assert!(overrules(&all, passed, volunteer) && !overrules(&all, passed, trusted));
        assert_eq!(
            verdict(&[opinion(Differs, Auditor::Trusted)]),
            Verdict::Failed
        );
    }

    #[test]
    fn who_objects_by_narrow_limits_is_not_overruled_by_wide_ones() {
        use Auditor::{Newcomer, Volunteer};
        use Backend::{CpuF32, CudaBf16};
        let overruled = |objector, by: [Backend; 2]| {
            let own = opinion_on(Differs, Volunteer, objector);
            let [one, other] = by.map(|backend| opinion_on(Agrees, Volunteer, backend));
            // The word of newcomers counts for nothing here.
            let newcomer = opinion_on(Agrees, Newcomer, CudaBf16);
            let all = [newcomer, own, one, other];
            let verdict = verdict(&all);
            assert_eq!(verdict, Verdict::Passed);
            overrules(&all, verdict, own)
        };
        assert!(!overruled(CpuF32, [CudaBf16; 2]));
        assert!(!overruled(CpuF32, [CpuF32, CudaBf16]));
        assert!(overruled(CpuF32, [CpuF32; 2]));
        assert!(overruled(CudaBf16, [CudaBf16; 2]));
        assert!(overruled(CudaBf16, [CpuF32; 2]));
    }

    #[test]
    fn who_lets_pass_what_others_refuse_is_overruled_whatever_its_limits() {
        for backend in [Backend::CpuF32, Backend::CudaBf16] {
            let own = opinion_on(Agrees, Auditor::Volunteer, backend);
            let others = opinion(Differs, Auditor::Volunteer);
            let all = [own, others, others];
            assert!(overrules(&all, verdict(&all), own), "{backend:?}");
        }
    }
}
