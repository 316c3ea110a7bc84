//! What the opinions of auditors decide together.
//!
//! A contributor is not convicted on the word of one volunteer: two independent ones must differ
//! from the accused, or an auditor whom the operator trusts. Where two volunteers differ from each
//! other a third is asked.

use rookery_common::audit::Finding;

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
    /// Any contributor.
    Volunteer,
    /// One whose token has the scope `audit`.
    Trusted,
}

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
    let differ = opinions
        .iter()
        .filter(|opinion| opinion.finding == Finding::Differs)
        .count();
    let agree = opinions.len() - differ;
    match (agree, differ) {
        (_, QUORUM..) => Verdict::Failed,
        (1.., 0) | (QUORUM.., _) => Verdict::Passed,
        _ => Verdict::Open,
    }
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
