//! Matches.

use jiff::Timestamp;
use rookery_common::ids::{MatchId, RunName};
use rookery_common::protocol::matches::{MatchInfo, MatchPurpose};

use crate::db::error::Result;
use crate::db::models::matches;
use crate::db::sql::Ledger;
use crate::db::sql::transactions::{in_read, in_write};
use crate::db::types::MatchDraft;

impl Ledger {
    /// Opens a match that only adds to the ratings.
    pub async fn open_match(&self, m: MatchDraft, actor: &str, now: Timestamp) -> Result<MatchId> {
        let actor = actor.to_owned();
        in_write!(self, matches::open_rating(m, actor, now))
    }

    /// Opens a match that only adds to the ratings, unless one is open in this run already.
    pub async fn open_next_rating(&self, m: MatchDraft, now: Timestamp) -> Result<Option<MatchId>> {
        in_write!(self, matches::open_next_rating(m, now))
    }

    /// Matches of a run, newest first: all, or those that were opened before one.
    pub async fn matches(
        &self,
        run: &RunName,
        before: Option<MatchId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<MatchInfo>> {
        in_read!(self.readers, matches::list(run, before, limit, now))
    }

    /// The newest matches of a run that were opened for one purpose, newest first.
    pub async fn matches_for(
        &self,
        run: &RunName,
        purpose: MatchPurpose,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<MatchInfo>> {
        in_read!(self.readers, matches::newest_for(run, purpose, limit, now))
    }

    /// One match.
    pub async fn match_info(&self, id: MatchId, now: Timestamp) -> Result<MatchInfo> {
        in_read!(self.readers, matches::info(id, now))
    }
}
