//! Conditions and values that several statements have in common. They are pieces of SQL and no parameters, because partial
//! indexes match only literals.

/// The condition under which the work of a lease goes to others: the lease expired, and as much time
/// again has passed. `is_over!(now)`, or `is_over!(alias, now)` for a table with an alias.
macro_rules! is_over {
    ($now:literal) => {
        concat!("(", $now, " > expires_at + lease_ms)")
    };
    ($jobs:literal, $now:literal) => {
        concat!(
            "(",
            $now,
            " > ",
            $jobs,
            ".expires_at + ",
            $jobs,
            ".lease_ms)"
        )
    };
}

/// Whether no job makes an audit: it never had one, that was given back, or its lease is over. A LEFT JOIN leads to the
/// job.
macro_rules! is_unassigned {
    ($jobs:literal, $now:literal) => {
        concat!(
            "(",
            $jobs,
            ".id IS NULL OR ",
            $jobs,
            ".state = 'returned' OR ",
            $crate::db::models::conditions::is_over!($jobs, $now),
            ")"
        )
    };
}

/// Whether a score of a pair is missing.
macro_rules! is_unfinished {
    ($pairs:literal) => {
        concat!(
            "(",
            $pairs,
            ".white_score IS NULL OR ",
            $pairs,
            ".black_score IS NULL)"
        )
    };
}

/// Whether no built-in program plays in the match of a job, or it has no match.
macro_rules! plays_no_program {
    ($jobs:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM matches m
             JOIN networks n ON n.run_id = m.run_id AND n.number IN (m.candidate, m.opponent)
             WHERE m.id = ",
            $jobs,
            ".match_id AND n.program IS NOT NULL)"
        )
    };
}

/// Whether games of a kind are for training, as `WorkKind::is_training` says.
macro_rules! is_training {
    ($kind:literal) => {
        concat!($kind, " IN ('self-play', 'puzzles')")
    };
}

/// Since when the network `n`, which was best or is, was so: since its gate match `m` was decided or, without one, since it
/// was submitted.
macro_rules! best_since {
    () => {
        "coalesce(m.decided_at, n.submitted_at)"
    };
}

/// Whether the last order on a user was a quarantine: 0 or 1.
macro_rules! quarantined {
    ($user:literal) => {
        concat!(
            "COALESCE((SELECT q.quarantined FROM quarantines q WHERE q.user_id = ",
            $user,
            " ORDER BY q.id DESC LIMIT 1), 0)"
        )
    };
}

/// Whether a token makes its user an auditor of the operator's: the condition of the index `tokens_of_auditors`.
macro_rules! is_audit_token {
    ($tokens:literal) => {
        concat!(
            $tokens,
            ".revoked_at IS NULL AND ",
            $tokens,
            ".scopes LIKE '%audit%'"
        )
    };
}

/// A query of the open audits of a run's open gates: of chunks with pairs of such a match. Gates wait for them, so they come
/// before others.
macro_rules! gate_audits {
    ($run:literal) => {
        concat!(
            "SELECT ga.id FROM matches gm JOIN match_pairs gp ON gp.match_id = gm.id
             JOIN chunks gc ON gc.job_id = gp.job_id
             JOIN audits ga ON ga.chunk = gc.sequence AND ga.state = 'open'
             WHERE gm.status = 'open' AND gm.purpose = 'gate' AND gm.run_id = ",
            $run
        )
    };
}

/// The order of audits by which those that open gates wait for come first: 0 for them, and 1 for others.
macro_rules! gates_first {
    ($audits:literal, $run:literal) => {
        concat!(
            "CASE WHEN ",
            $audits,
            ".id IN (",
            $crate::db::models::conditions::gate_audits!($run),
            ") THEN 0 ELSE 1 END"
        )
    };
}

pub(crate) use {
    best_since, gate_audits, gates_first, is_audit_token, is_over, is_training, is_unassigned,
    is_unfinished, plays_no_program, quarantined,
};

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::WorkKind;
    use rookery_common::protocol::people::Scope;

    #[test]
    fn training_is_of_the_kinds_that_the_enum_says() {
        let kinds = WorkKind::ALL.into_iter().filter(|kind| kind.is_training());
        let kinds: Vec<String> = kinds.map(|kind| format!("'{}'", kind.name())).collect();
        let expected = format!("g.kind IN ({})", kinds.join(", "));
        assert_eq!(is_training!("g.kind"), expected);
    }

    #[test]
    fn no_other_scope_is_taken_for_that_of_auditors() {
        let found = Scope::ALL
            .into_iter()
            .filter(|scope| scope.name().contains("audit"));
        assert_eq!(found.collect::<Vec<_>>(), [Scope::Audit]);
    }
}
