//! Openings of games from before the ledger kept them: their chunks are read again, the newest first.

use std::sync::Arc;
use std::time::Duration;

use rookery_common::chunk::{Caps, ChunkError, ChunkReader};
use rookery_common::ids::ContentHash;

use crate::app::App;
use crate::openings::Opening;

/// Between two looks: chunks that could not be read may be there again, and an older coordinator may have accepted some.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// Between two chunks: requests come first.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks for games without an opening until the coordinator stops.
pub async fn keep_naming(app: App) {
    loop {
        match name_openings(&app).await {
            Ok((0, 0)) => {}
            Ok((chunks, 0)) => tracing::info!(chunks, "Openings of older games were named."),
            Ok((chunks, unreadable)) => tracing::warn!(
                chunks,
                unreadable,
                "Openings of older games were named, but some chunks cannot be read; they are tried again in an hour."
            ),
            Err(error) => tracing::error!(
                "RK-0236: A background task failed: openings of older games could not be named: {error:#}"
            ),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Names the openings of all games that lack one, and tells of how many chunks, and how many could not be read.
/// If the ledger fails, what was named until then stays named.
pub async fn name_openings(app: &App) -> anyhow::Result<(u64, u64)> {
    let (mut named, mut unreadable) = (0, 0);
    let mut last = None;
    while let Some((place, hash)) = app.db.next_unnamed(last).await? {
        last = Some(place);
        match openings_of(app, &hash).await {
            Ok(openings) => {
                app.db.set_openings(place, openings).await?;
                named += 1;
            }
            Err(error) => {
                tracing::debug!(%hash, "A chunk's openings are not named: {error:#}");
                unreadable += 1;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok((named, unreadable))
}

async fn openings_of(app: &App, hash: &ContentHash) -> anyhow::Result<Arc<[Option<Opening>]>> {
    Ok(app.view_chunk(hash, of_bytes).await??)
}

fn of_bytes(bytes: &[u8]) -> Result<Arc<[Option<Opening>]>, ChunkError> {
    let mut reader = ChunkReader::open(bytes, &Caps::default())?;
    let mut openings = Vec::new();
    while let Some(game) = reader.next_game()? {
        openings.push(Opening::of(game.first_positions().iter()));
    }
    Ok(openings.into())
}
