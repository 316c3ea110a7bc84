//! Following the coordinator's ledger: new rows, missing chunks, and the buffers after a restart.

use rookery_common::chunk::Caps;
use rookery_common::protocol::jobs::ChunkRow;

use super::chunks::ChunkFolder;
use super::decode::DecodedChunk;
use super::intake::Intake;
use super::ledger::{Ledger, is_training};
use crate::api::{ApiError, Client};

/// The ledger's copy, the chunks, and how far they have been taken into the buffers.
#[derive(Debug)]
pub struct Follower {
    ledger: Ledger,
    chunks: ChunkFolder,
    /// Rows that are in the buffers, or older than these need.
    taken: usize,
}

impl Follower {
    /// Nothing is in the buffers yet.
    pub const fn new(ledger: Ledger, chunks: ChunkFolder) -> Self {
        Self {
            ledger,
            chunks,
            taken: 0,
        }
    }

    /// The ledger's copy.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Positions for training in the rows that were taken.
    pub fn taken_positions(&self) -> u64 {
        self.ledger.total_of(self.taken)
    }

    /// The place in the ledger up to which rows were taken.
    pub fn taken_until(&self) -> i64 {
        let last = self
            .taken
            .checked_sub(1)
            .and_then(|last| self.ledger.rows().get(last));
        last.map_or(0, |row| row.sequence)
    }

    /// Asks for rows after the last known one until there are no more.
    ///
    /// # Errors
    ///
    /// If the coordinator refuses, the user stops, or the copy cannot be written.
    pub async fn update(&mut self, client: &Client) -> anyhow::Result<()> {
        let mut after = self.ledger.cursor();
        loop {
            let page = client.chunks(after).await?;
            self.ledger.append(page.chunks)?;
            if !page.more || page.next <= after {
                return Ok(());
            }
            after = page.next;
        }
    }

    /// Fills empty buffers with the newest games up to a place in the ledger, as many as `capacity`
    /// asks for: after a restart they hold what they held before.
    ///
    /// # Errors
    ///
    /// As [`take_new`](Self::take_new).
    pub async fn refill(
        &mut self,
        client: &Client,
        intake: &mut Intake,
        until: i64,
        capacity: u64,
    ) -> anyhow::Result<()> {
        let end = self.ledger.rows_until(until);
        let mut newest_first: Vec<DecodedChunk> = Vec::new();
        let mut positions = 0;
        for row in self.ledger.rows()[..end]
            .iter()
            .rev()
            .filter(|row| is_training(row))
        {
            if positions >= capacity {
                break;
            }
            let bytes = self.fetch(client, row).await?;
            if let Some(chunk) = bytes.and_then(|bytes| intake.decode(row.hash, &bytes)) {
                positions += if intake.trains_on(row.hash) {
                    chunk.positions()
                } else {
                    0
                };
                newest_first.push(chunk);
            }
        }
        newest_first
            .into_iter()
            .rev()
            .for_each(|chunk| intake.add(chunk));
        self.taken = end;
        Ok(())
    }

    /// Takes the rows that were not taken yet into the buffers, fetching chunks that are missing.
    ///
    /// # Errors
    ///
    /// If the coordinator refuses for another reason than that a chunk is gone, the user stops, or
    /// a file cannot be read or written.
    pub async fn take_new(&mut self, client: &Client, intake: &mut Intake) -> anyhow::Result<()> {
        while let Some(row) = self.ledger.rows().get(self.taken) {
            if is_training(row)
                && let Some(bytes) = self.fetch(client, row).await?
                && let Some(chunk) = intake.decode(row.hash, &bytes)
            {
                intake.add(chunk);
            }
            self.taken += 1;
        }
        Ok(())
    }

    /// A chunk from the folder or the coordinator; none if it cannot be had any more.
    async fn fetch(&self, client: &Client, row: &ChunkRow) -> anyhow::Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.chunks.get(row.hash)? {
            return Ok(Some(bytes));
        }
        if row.bytes > Caps::default().compressed_bytes as u64 {
            tracing::warn!(
                "chunk {} is left out: the ledger gives it {} bytes",
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
            Err(ApiError::Refused { problem, .. }) if problem.status == 404 => {
                tracing::warn!(
                    "chunk {} is left out: the coordinator has withdrawn it",
                    row.hash
                );
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
