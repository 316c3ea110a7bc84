//! What every request can reach.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use rookery_common::chess::EndgameTables;
use rookery_common::ids::{ContentHash, UserId};
use rookery_common::openings::OpeningBook;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::alerts::Alerts;
use crate::archives::{ArchiveError, read_chunk};
use crate::blobs::SharedBlobs;
use crate::clock::Clock;
use crate::concurrency::{ConcurrencyLimit, FairLimit};
use crate::config::AccessConfig;
use crate::db::{DbError, SharedDatabase};
use crate::events::EventBus;
use crate::fleet::Fleet;
use crate::live_boards::LiveBoards;
use crate::signing::JobMetadataCache;
use crate::worker_names::WorkerNames;

/// Chunks of one contributor for each core: one is verified while the next is looked up.
const OWN_CHUNKS: usize = 2;

/// Games that are looked at for each core: they wait for the store most of the time.
const VIEWS: usize = 4;

/// Lists that are looked for: half as many as there are connections that read.
const LISTS: usize = 4;

/// The parts of a running coordinator; cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub db: SharedDatabase,
    pub blobs: SharedBlobs,
    pub clock: Arc<dyn Clock>,
    pub events: EventBus,
    /// What the operator must act on.
    pub alerts: Alerts,
    /// The openings of runs that have no book of their own.
    pub book: Arc<OpeningBook>,
    /// Endgame tables, if the operator has some: games that tables have ended are checked by them.
    pub tables: OnceLock<Box<dyn EndgameTables>>,
    /// What the operator says of who may come in, and by what.
    pub access: AccessConfig,
    /// Cancelled when the coordinator is about to stop: load balancers should send no
    /// more, but those that come are served.
    pub leaving: CancellationToken,
    /// What jobs say besides their work.
    pub job_metadata: JobMetadataCache,
    /// How many workers there are, and when those ask again for which there is nothing.
    pub fleet: Fleet,
    /// Which names of workers two machines use at once.
    pub worker_names: WorkerNames,
    /// Games that people watch while they are played.
    pub live_boards: LiveBoards,
    /// Cancelled when the coordinator stops: streams that never end must end then.
    pub stopping: CancellationToken,
    /// Chunks and networks that are verified at the same time: as many as there are cores.
    pub verifying: ConcurrencyLimit,
    /// Chunks of one contributor that are verified or wait for it: others' need not wait behind hundreds of its own.
    pub verifying_of: FairLimit<UserId>,
    /// Concurrency limit of reading chunks to show a game. Anybody may look at games: they neither
    /// hold up what comes in nor wait for it.
    pub viewing: ConcurrencyLimit,
    /// Lists that are looked for at the same time. Anybody may ask for any, and one that holds little may take long:
    /// most of what else is asked must find a connection to the ledger.
    pub listing: ConcurrencyLimit,
    /// Held while ratings are fitted: one fit at a time is enough.
    pub fitting: Mutex<()>,
}

impl App {
    /// An application on this ledger and these files, with these openings and without tables.
    pub fn new(
        db: SharedDatabase,
        blobs: SharedBlobs,
        clock: Arc<dyn Clock>,
        book: OpeningBook,
        access: impl Into<AccessConfig>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self(Arc::new(Parts {
            db,
            blobs,
            clock,
            events: EventBus::default(),
            alerts: Alerts::default(),
            book: Arc::new(book),
            tables: OnceLock::new(),
            access: access.into(),
            leaving: CancellationToken::new(),
            job_metadata: JobMetadataCache::default(),
            fleet: Fleet::default(),
            worker_names: WorkerNames::default(),
            live_boards: LiveBoards::default(),
            stopping: CancellationToken::new(),
            verifying: ConcurrencyLimit::new(cores),
            verifying_of: FairLimit::new(cores * OWN_CHUNKS),
            viewing: ConcurrencyLimit::new(cores * VIEWS),
            listing: ConcurrencyLimit::new(LISTS),
            fitting: Mutex::new(()),
        }))
    }

    /// Asks the ledger for a list. Anybody may ask for any, so a few are looked for at a time.
    pub async fn list<T, F>(&self, ask: impl FnOnce(SharedDatabase) -> F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DbError>> + Send + 'static,
    {
        self.listing.ask(ask(self.db.clone())).await
    }

    /// Reads a chunk to show its games. The place is taken before the chunk is in memory: any number of people may ask
    /// at the same time.
    pub async fn view_chunk<T: Send + 'static>(
        &self,
        hash: &ContentHash,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let turn = self.viewing.next().await;
        let bytes = read_chunk(&self.db, &*self.blobs, hash).await?;
        Ok(turn.work(move || read(&bytes)).await?)
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Deref for Parts {
    type Target = AccessConfig;

    fn deref(&self) -> &AccessConfig {
        &self.access
    }
}
