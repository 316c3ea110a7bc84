//! Following the coordinator's ledger: new rows, missing chunks, and the buffers after a restart.
//!
//! A coordinator whose ledger was restored from a backup gives the same numbers to other chunks. So
//! every question begins with the last known row: if that is not the coordinator's too, the copy
//! is cut after the last row that is.

use std::collections::{BTreeSet, HashSet};
use std::slice::SliceIndex;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rookery_common::chunk::Caps;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::ChunkRow;
use rookery_common::text::quantity;

use super::chunk_ingest::{ChunkGames, ChunkIngest, HELD_OUT_CAPACITY};
use super::chunks::ChunkFolder;
use super::excluded_chunks::ExcludedChunks;
use super::ledger::{Ledger, is_training};
use crate::api::{CallError, Client};

/// Chunks are kept for this many times the positions that the buffers hold: a chunk that is lost, damaged or held out of
/// training later makes room for an older one.
const KEPT_TIMES: f64 = 1.5;

/// The ledger's copy, the chunks, and how far they have been taken into the buffers.
#[derive(Debug)]
pub struct LedgerSync {
    ledger: Ledger,
    chunks: ChunkFolder,
    /// Rows that are in the buffers, or older than these need.
    taken: usize,
    /// How long chunks wait for audits before they are taken.
    delay: Duration,
    /// Chunks that the coordinator holds out of training at present.
    holds: ExcludedChunks,
    /// Whether a chunk that was taken has been held since, or one that was passed over let go.
    stale: bool,
    /// The place in the ledger up to which a restored one has left rows, until the session takes it.
    restored: Option<i64>,
    /// Chunks that are not asked for again.
    lost: Mutex<BTreeSet<ContentHash>>,
}

/// Whether two rows are of the same chunk in the same place.
fn is_same(one: &ChunkRow, other: &ChunkRow) -> bool {
    (one.sequence, one.hash) == (other.sequence, other.hash)
}

/// Whether the coordinator had a chunk at this time; one whose time cannot be read waits for nothing.
fn has_come_by(row: &ChunkRow, time: Timestamp) -> bool {
    row.accepted_at
        .parse::<Timestamp>()
        .map_or(true, |accepted| accepted <= time)
}

impl LedgerSync {
    /// Nothing is in the buffers yet. Chunks are taken once the coordinator has had them for `delay`, by this machine's
    /// clock: what audits find meanwhile is never trained on.
    pub const fn new(
        ledger: Ledger,
        chunks: ChunkFolder,
        holds: ExcludedChunks,
        delay: Duration,
    ) -> Self {
        Self {
            ledger,
            chunks,
            taken: 0,
            delay,
            holds,
            stale: false,
            restored: None,
            lost: Mutex::new(BTreeSet::new()),
        }
    }

    /// The ledger's copy.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Positions for training in the rows that were taken; as all counts here, with validation and without chunks that
    /// are held: what is never trained on does not count as new.
    pub fn taken_positions(&self) -> u64 {
        self.positions_in(..self.taken)
    }

    /// Positions for training in the rows that wait until they are old enough.
    pub fn waiting_positions(&self) -> u64 {
        self.positions_in(self.taken..)
    }

    /// Positions for training up to the place in the ledger with which the last candidate's training began. Chunks that were
    /// held then are not among them: once they are let go, they are new.
    pub fn positions_until(&self, sequence: i64) -> u64 {
        let rows = self.ledger.rows()[..self.ledger.rows_until(sequence)].iter();
        self.positions_of(rows.filter(|row| !self.holds.is_left_out(row.hash)))
    }

    /// Remembers that a candidate is trained without the chunks that are held.
    ///
    /// # Errors
    ///
    /// If that cannot be written.
    pub fn begin_candidate(&mut self) -> anyhow::Result<()> {
        self.holds.begin_candidate()
    }

    fn positions_in(&self, rows: impl SliceIndex<[ChunkRow], Output = [ChunkRow]>) -> u64 {
        self.positions_of(self.ledger.rows()[rows].iter())
    }

    fn positions_of<'a>(&self, rows: impl Iterator<Item = &'a ChunkRow>) -> u64 {
        rows.filter(|row| is_training(row) && !self.holds.has(row.hash))
            .map(|row| u64::from(row.positions))
            .sum()
    }

    /// The place in the ledger up to which rows were taken.
    pub fn taken_until(&self) -> i64 {
        let last = self
            .taken
            .checked_sub(1)
            .and_then(|last| self.ledger.rows().get(last));
        last.map_or(0, |row| row.sequence)
    }

    /// The place in the ledger up to which rows were taken, or are old enough for it.
    pub fn ready_until(&self) -> i64 {
        let newest = Timestamp::now().checked_sub(self.delay);
        let newest = newest.unwrap_or(Timestamp::MIN);
        let is_ready = |row: &&ChunkRow| self.delay.is_zero() || has_come_by(row, newest);
        let waiting = self.ledger.rows()[self.taken..].iter();
        let last = waiting.take_while(is_ready).last();
        last.map_or_else(|| self.taken_until(), |row| row.sequence)
    }

    /// Asks for rows, and holds, after the last known ones until there are no more.
    ///
    /// # Errors
    ///
    /// If the coordinator refuses, the user stops, or the copy cannot be written.
    pub async fn update(&mut self, client: &Client) -> anyhow::Result<()> {
        let mut after = (self.ledger.cursor() - 1).max(0);
        loop {
            let mut page = client.chunks(after).await?;
            if let Some(last) = self.ledger.rows().last()
                && after < last.sequence
            {
                if page.chunks.first().is_none_or(|row| !is_same(row, last)) {
                    self.forget_unknown(client).await?;
                    after = self.ledger.cursor();
                    continue;
                }
                page.chunks.remove(0);
            }
            self.ledger.append(page.chunks)?;
            if !page.more || page.next <= after {
                break;
            }
            after = page.next;
        }
        self.follow_holds(client).await
    }

    /// Cuts the copy after the last row that the coordinator has, too. Holds have numbers that were
    /// given anew as well: all are asked for again.
    async fn forget_unknown(&mut self, client: &Client) -> anyhow::Result<()> {
        let common = self.common_rows(client).await?;
        tracing::warn!(
            "RK-0717: the coordinator's ledger was restored from a backup; dropped, as it no longer knows \
             them: {}",
            quantity(self.ledger.rows().len() - common, "chunk")
        );
        self.holds.forget()?;
        self.ledger.cut(common)?;
        self.taken = self.taken.min(common);
        self.stale = true;
        let left = self.ledger.cursor();
        self.restored = Some(self.restored.map_or(left, |before| before.min(left)));
        Ok(())
    }

    /// How many rows the coordinator has, too, counted from the first: steps back that double, and
    /// then halves of what lies between.
    async fn common_rows(&self, client: &Client) -> Result<usize, CallError> {
        let rows = self.ledger.rows();
        // Row number `known` is the coordinator's, row number `unknown` is not; they count from 1.
        let (mut known, mut unknown) = (0, rows.len() + 1);
        let (mut number, mut step) = (rows.len(), 1_usize);
        while known + 1 < unknown {
            let row = &rows[number - 1];
            let page = client.chunks((row.sequence - 1).max(0)).await?;
            if page.chunks.first().is_some_and(|first| is_same(first, row)) {
                known = number;
            } else {
                unknown = number;
            }
            number = if known == 0 {
                unknown.saturating_sub(step).max(1)
            } else {
                known + (unknown - known) / 2
            };
            step = step.saturating_mul(2);
        }
        Ok(known)
    }

    /// The place in the ledger up to which a restored one has left the rows that were known; once.
    pub fn take_restored(&mut self) -> Option<i64> {
        self.restored.take()
    }

    async fn follow_holds(&mut self, client: &Client) -> anyhow::Result<()> {
        loop {
            let page = match client.holds(self.holds.until()).await {
                Ok(page) => page,
                // A coordinator that does not know of holds holds nothing.
                Err(error) if error.is_missing() => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let taken_until = self.taken_until();
            let mut taken_out = 0_u64;
            for hold in &page.holds {
                let changed = self.holds.follow(hold) && hold.chunk_sequence <= taken_until;
                self.stale |= changed;
                taken_out += u64::from(changed && hold.held);
            }
            if taken_out > 0 {
                tracing::info!(
                    "the coordinator holds {} out of training, {taken_out} of them from now on",
                    quantity(self.holds.count(), "chunk")
                );
            }
            let on = page.more && page.next > self.holds.until();
            self.holds.reach(page.next)?;
            if !on {
                return Ok(());
            }
        }
    }

    /// Fills the buffers anew if holds have changed what belongs into them.
    async fn renew(&mut self, client: &Client, ingest: &mut ChunkIngest) -> anyhow::Result<()> {
        if self.stale {
            let capacity = ingest.capacity();
            ingest.clear();
            self.refill(client, ingest, self.taken_until(), capacity)
                .await?;
        }
        Ok(())
    }

    /// Fills empty buffers with the newest games up to a place in the ledger, as many as `capacity` asks for to train on, and
    /// as many as validation keeps of those held out: after a restart they hold what they held before.
    ///
    /// # Errors
    ///
    /// As [`take_new`](Self::take_new).
    pub async fn refill(
        &mut self,
        client: &Client,
        ingest: &mut ChunkIngest,
        until: i64,
        capacity: u64,
    ) -> anyhow::Result<()> {
        let end = self.ledger.rows_until(until);
        let mut newest_first: Vec<ChunkGames> = Vec::new();
        let (mut training, mut held_out) = (capacity, HELD_OUT_CAPACITY);
        for row in self.ledger.rows()[..end]
            .iter()
            .rev()
            .filter(|row| is_training(row) && !self.holds.has(row.hash))
        {
            let missing = if ingest.trains_on(row.hash) {
                &mut training
            } else {
                &mut held_out
            };
            if *missing > 0
                && let Some(chunk) = self.games(client, ingest, row).await?
            {
                *missing = missing.saturating_sub(chunk.positions());
                newest_first.push(chunk);
            }
        }
        newest_first
            .into_iter()
            .rev()
            .for_each(|chunk| ingest.add(chunk));
        self.taken = end;
        self.stale = false;
        ingest.sweep()
    }

    /// Takes the rows that were not taken yet and are old enough into the buffers, fetching chunks that are missing.
    /// Chunks that are held out of training leave the buffers, and come back when they are let go.
    ///
    /// # Errors
    ///
    /// If the coordinator refuses for another reason than that a chunk is gone, the user stops, or
    /// a file cannot be read or written.
    pub async fn take_new(
        &mut self,
        client: &Client,
        ingest: &mut ChunkIngest,
    ) -> anyhow::Result<()> {
        self.renew(client, ingest).await?;
        let until = self.ready_until();
        while let Some(row) = self.ledger.rows().get(self.taken)
            && row.sequence <= until
        {
            if is_training(row)
                && !self.holds.has(row.hash)
                && let Some(chunk) = self.games(client, ingest, row).await?
            {
                ingest.add(chunk);
            }
            self.taken += 1;
        }
        ingest.sweep()
    }

    /// Removes the files of chunks that [`refill`](Self::refill) up to a place in the ledger, with this capacity, does not
    /// come to.
    ///
    /// # Errors
    ///
    /// If a file cannot be removed.
    pub fn remove_old(
        &self,
        ingest: &ChunkIngest,
        until: i64,
        capacity: u64,
    ) -> anyhow::Result<()> {
        let kept = |positions: u64| (positions as f64 * KEPT_TIMES) as u64;
        let (mut training, mut held_out) = (kept(capacity), kept(HELD_OUT_CAPACITY));
        let mut old = HashSet::new();
        let end = self.ledger.rows_until(until);
        for row in self.ledger.rows()[..end]
            .iter()
            .rev()
            .filter(|row| is_training(row))
        {
            let left = if ingest.trains_on(row.hash) {
                &mut training
            } else {
                &mut held_out
            };
            if *left == 0 {
                old.insert(row.hash);
            } else if !self.holds.has(row.hash) {
                *left = left.saturating_sub(u64::from(row.positions));
            }
        }
        let removed = self.chunks.remove(&old)?;
        if removed.files > 0 {
            tracing::info!(
                "removed {} that no window needs, {:.1} MB",
                quantity(removed.files, "chunk"),
                removed.bytes as f64 / 1e6
            );
        }
        Ok(())
    }

    /// The games of a chunk: those that were decoded before, or else from its bytes; none if it
    /// cannot be had or read.
    async fn games(
        &self,
        client: &Client,
        ingest: &mut ChunkIngest,
        row: &ChunkRow,
    ) -> anyhow::Result<Option<ChunkGames>> {
        if let Some(games) = ingest.kept(row.hash) {
            return Ok(Some(games));
        }
        match self.fetch(client, row).await? {
            Some(bytes) => ingest.decode(row.hash, &format!("chunk {}", row.hash), &bytes),
            None => Ok(None),
        }
    }

    /// A chunk from the folder or the coordinator; none if it cannot be had any more.
    async fn fetch(&self, client: &Client, row: &ChunkRow) -> anyhow::Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.chunks.get(row.hash)? {
            return Ok(Some(bytes));
        }
        if self.lost.lock().contains(&row.hash) {
            return Ok(None);
        }
        if row.bytes > Caps::default().compressed_bytes as u64 {
            tracing::warn!(
                "RK-0721: chunk {} is left out: the ledger says that it has {} bytes, which no chunk may have",
                row.hash,
                row.bytes
            );
            return Ok(None);
        }
        match client.chunk(row).await {
            Ok(bytes) => {
                self.chunks.put(&bytes)?;
                Ok(Some(bytes))
            }
            Err(error) if error.is_missing() => {
                tracing::warn!(
                    "RK-0721: chunk {} is left out: the coordinator no longer has it",
                    row.hash
                );
                Ok(None)
            }
            Err(error @ CallError::RetriesExhausted { .. }) => {
                self.lost.lock().insert(row.hash);
                tracing::error!(
                    "RK-0721: chunk {} is left out until the next start: {error}; \
                     `rookery-coordinator storage sweep` tells which files are missing",
                    row.hash
                );
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
