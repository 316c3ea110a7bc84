//! All games of a match as one PGN file, read while it is sent.

use std::collections::VecDeque;

use anyhow::{Context as _, ensure};
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::try_unfold;
use rookery_common::chunk::export::pgn;
use rookery_common::chunk::{Caps, ChunkReader};
use rookery_common::ids::MatchId;
use rookery_common::protocol::Problem;
use rookery_common::protocol::matches::GameInfo;

use super::{LARGEST_ANSWER, PGN, listed, view};
use crate::api::error::ApiResult;
use crate::api::extract::Path;
use crate::app::App;
use crate::archives::read_chunk;
use crate::store::GameFilter;

/// All games of a match that have come in, as PGN: chunk by chunk, the newest chunk first.
#[utoipa::path(get, path = "/matches/{id}/pgn", tag = "matches",
    params(("id" = MatchId, Path, description = "The match")), responses(
    (status = 200, description = "The games", content_type = "application/vnd.chess-pgn",
        body = String),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
pub(super) async fn as_pgn(State(app): State<App>, Path(id): Path<MatchId>) -> ApiResult<Response> {
    let run = app.store.match_info(id).await?.run;
    let filter = GameFilter {
        match_id: Some(id),
        limit: LARGEST_ANSWER,
        ..GameFilter::default()
    };
    let games = Games {
        app,
        filter,
        listed: VecDeque::new(),
    };
    let texts = try_unfold(games, |mut games: Games| async move {
        let text = games.next().await?;
        anyhow::Ok(text.map(|text| (text, games)))
    });
    let name = format!("attachment; filename=\"{run}-match-{id}.pgn\"");
    let headers = [
        (header::CONTENT_TYPE, PGN.to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, Body::from_stream(texts)).into_response())
}

/// The games of a match that are still to be sent.
struct Games {
    app: App,
    filter: GameFilter,
    listed: VecDeque<GameInfo>,
}

impl Games {
    /// The games of the next chunk; none behind the last.
    async fn next(&mut self) -> anyhow::Result<Option<String>> {
        if self.listed.is_empty() {
            let (store, listing) = (&self.app.store, &self.app.listing);
            self.listed = listed(store, listing, self.filter.clone()).await?.into();
            self.filter.before = self
                .listed
                .back()
                .map(|last| last.id)
                .or(self.filter.before);
        }
        let Some(first) = self.listed.front() else {
            return Ok(None);
        };
        let chunk = first.chunk;
        let of_chunk = self.listed.iter().take_while(|game| game.chunk == chunk);
        let count = of_chunk.count();
        let mut games: Vec<GameInfo> = self.listed.drain(..count).collect();
        games.sort_by_key(|game| game.place);
        let turn = self.app.viewing.next().await;
        let bytes = read_chunk(&*self.app.store, &*self.app.blobs, &chunk).await?;
        turn.work(move || text(&bytes, &games)).await?.map(Some)
    }
}

/// Games of a chunk as PGN, in the order of their places.
fn text(chunk: &[u8], games: &[GameInfo]) -> anyhow::Result<String> {
    let mut reader = ChunkReader::open(chunk, &Caps::default())?;
    let (mut text, mut place) = (String::new(), 0);
    for info in games {
        let missing = || format!("chunk {} has no game {}", info.chunk, info.place);
        while place < info.place {
            ensure!(reader.skip_game()?, missing());
            place += 1;
        }
        let record = reader.next_game()?.with_context(missing)?;
        place += 1;
        text.push_str(&pgn::game(&record, &view::tags(info, &record))?);
    }
    Ok(text)
}
