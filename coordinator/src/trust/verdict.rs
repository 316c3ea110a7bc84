//! What the opinions of auditors decide together.
//!
//! A contributor is not convicted on the word of one volunteer: two independent ones must differ
//! from the accused, or an auditor whom the operator trusts. Where two volunteers differ from each
//! other a third is asked. Newcomers, who audit only while there is no volunteer, acquit as
//! volunteers do and never convict; as soon as a volunteer has spoken they count for nothing.

use rookery_common::audit::Finding;

use super::rate::{PROBATION, TrackRecord};

/// One auditor's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opinion {
    /// What it found.
    pub finding: Finding,
    /// Whose word it is.
    pub auditor: Auditor,
}

/// Whose word an opinion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Self::Newcomer | Self::Volunteer
                if record.passed < PROBATION || record.vouched < PROBATION =>
            {
                Self::Newcomer
            }
            Self::Newcomer | Self::Volunteer => Self::Volunteer,
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

/// What these opinions decide.
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
        voices(opinions, Auditor::Volunteer),
        voices(opinions, Auditor::Newcomer),
    ) {
        ((_, QUORUM..), _) => Verdict::Failed,
        ((1.., 0) | (QUORUM.., _), _) | ((0, 0), (1.., 0) | (QUORUM.., _)) => Verdict::Passed,
        _ => Verdict::Open,
    }
}

/// How many auditors of this kind agree and differ.
fn voices(opinions: &[Opinion], auditor: Auditor) -> (usize, usize) {
    let count = |finding| {
        let wanted = Opinion { finding, auditor };
        opinions
            .iter()
            .filter(|opinion| **opinion == wanted)
            .count()
    };
    (count(Finding::Agrees), count(Finding::Differs))
}

/// Whether a verdict says that this opinion was wrong.
pub fn overrules(verdict: Verdict, opinion: Opinion) -> bool {
    matches!(
        (verdict, opinion.finding),
        (Verdict::Passed, Finding::Differs) | (Verdict::Failed, Finding::Agrees)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use Finding::{Agrees, Differs};

    fn of(findings: &[Finding]) -> Verdict {
        let volunteer = |finding: &Finding| Opinion {
            finding: *finding,
            auditor: Auditor::Volunteer,
        };
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
        let opinion = |finding, auditor| Opinion { finding, auditor };
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
        let opinion = |finding, auditor| Opinion { finding, auditor };
        let volunteer = opinion(Differs, Auditor::Volunteer);
        let trusted = opinion(Agrees, Auditor::Trusted);
        let passed = verdict(&[volunteer, volunteer, trusted]);
        assert_eq!(passed, Verdict::Passed);
        assert!(overrules(passed, volunteer) && !overrules(passed, trusted));
        assert_eq!(
            verdict(&[opinion(Differs, Auditor::Trusted)]),
            Verdict::Failed
        );
    }
}
