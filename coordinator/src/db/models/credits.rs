//! What contributors are credited with, run by run.

use std::collections::BTreeMap;

use crate::db::error::Result;
use crate::db::sql::statement::Statement;

/// What is added to a contributor's credit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CreditAmounts {
    pub(crate) games: i64,
    /// Positions of these games and of the audits.
    pub(crate) positions: i64,
    /// Games searched again.
    pub(crate) audits: i64,
    /// Positions of these.
    pub(crate) audit_positions: i64,
}

impl CreditAmounts {
    /// The columns of a row, in their order.
    pub(crate) const fn columns(self) -> [i64; 4] {
        [
            self.games,
            self.positions,
            self.audits,
            self.audit_positions,
        ]
    }
}

/// By run and contributor.
pub(crate) type Credits = BTreeMap<(i64, i64), CreditAmounts>;

pub(crate) type Credit = ((i64, i64), CreditAmounts);

/// The statement that gives contributors credit, or takes it from them. None may stand here twice.
pub(crate) fn credit(credits: &[Credit]) -> Result<Statement> {
    let mut query = Statement::new(
        "INSERT INTO credits (run_id, user_id, games, positions, audits, audit_positions)",
    );
    query.rows(credits, |row, ((run, user), given)| {
        row.bind(*run)?.bind(*user)?;
        for column in given.columns() {
            row.bind(column)?;
        }
        Ok(())
    })?;
    query.push(
        " ON CONFLICT (run_id, user_id) DO UPDATE SET games = credits.games + excluded.games,
           positions = credits.positions + excluded.positions,
           audits = credits.audits + excluded.audits,
           audit_positions = credits.audit_positions + excluded.audit_positions",
    );
    Ok(query)
}
