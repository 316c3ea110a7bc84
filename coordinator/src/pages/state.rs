//! What every page reads from.

use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::protocol::server::Presentation;

use crate::blobs::SharedBlobs;
use crate::clock::Clock;
use crate::concurrency::ConcurrencyLimit;
use crate::config::{PageUrl, Registration, SiteUrl};
use crate::db::SharedDatabase;
use crate::live_boards::LiveBoards;

use super::digests::Digests;

/// What pages read from.
#[derive(Clone)]
pub struct PagesState {
    /// The ledger.
    pub db: SharedDatabase,
    /// Chunks, from which games are shown.
    pub blobs: SharedBlobs,
    /// The time, for "3 min ago".
    pub clock: Arc<dyn Clock>,
    /// Chunks of which a game is shown at the same time.
    pub viewing: ConcurrencyLimit,
    /// Lists of games or contributors that are looked for at the same time.
    pub listing: ConcurrencyLimit,
    /// Who may register.
    pub registration: Registration,
    /// Where volunteers get the worker, if the operator says so.
    pub worker_source: Option<PageUrl>,
    /// Where people get Rookery's source code, if the operator says so.
    pub source: Option<PageUrl>,
    /// What the coordinator is called, whom to write to, where else to look.
    pub presentation: Presentation,
    /// Where the coordinator is reached, if the operator says so.
    pub site: Option<SiteUrl>,
    /// Games that people watch while they are played.
    pub live_boards: Arc<LiveBoards>,
    /// What is told of games, kept for the next page.
    pub(crate) digests: Digests,
}

impl PagesState {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
