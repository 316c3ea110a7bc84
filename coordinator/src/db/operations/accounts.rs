//! Contributors.

use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::people::ContributorDetail;

use crate::db::error::Result;
use crate::db::models::contributors;
use crate::db::sql::Ledger;
use crate::db::sql::transactions::in_read;
use crate::db::types::{ContributorFilter, Contributors};

impl Ledger {
    /// Contributors, and how many there are.
    pub async fn contributors(
        &self,
        filter: ContributorFilter,
        now: Timestamp,
    ) -> Result<Contributors> {
        in_read!(self.readers, contributors::list(&filter, now))
    }

    /// The contributor of this name, in a run or, if it is `None`, in all together.
    pub async fn contributor(
        &self,
        name: &str,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<ContributorDetail> {
        in_read!(self.readers, contributors::one(name, run, now))
    }
}
