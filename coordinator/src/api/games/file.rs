//! Many games as one PGN file, read while it is sent: all of a match, or those that somebody chooses.

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

use super::{GamesQuery, LARGEST_ANSWER, PGN, view};
use crate::api::download::attachment;
use crate::api::error::ApiResult;
use crate::api::extract::{Client, Path, Query};
use crate::app::App;
use crate::db::{DbError, GameFilter};
use crate::limits::address::ClientAddress;
use crate::server::address::Address;

/// Games of a file if the request does not say how many.
const FILE: u32 = 500;
/// Most games of a file.
const LARGEST_FILE: u32 = 10_000;

/// All games of a match that have come in, as PGN: chunk by chunk, the newest chunk first.
#[utoipa::path(get, path = "/matches/{id}/pgn", tag = "matches",
    params(("id" = MatchId, Path, description = "The match")), responses(
    (status = 200, description = "The games", content_type = "application/vnd.chess-pgn",
        body = String),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
pub(super) async fn of_match(
    State(app): State<App>,
    Client(client): Client,
    address: Address,
    Path(id): Path<MatchId>,
) -> ApiResult<Response> {
    let run = app.db.match_info(id, app.clock.now()).await?.run;
    let filter = GameFilter {
        match_id: Some(id),
        ..GameFilter::default()
    };
    let games = Games::new(app, client, address, filter, u32::MAX);
    games.file(&format!("{run}-match-{id}")).await
}

/// Games as one PGN file, the newest: chunk by chunk, the newest chunk first. They are chosen as
/// those that `GET /games` lists; without `limit` there are 500.
#[utoipa::path(get, path = "/games/pgn", tag = "matches", params(GamesQuery), responses(
    (status = 200, description = "The games", content_type = "application/vnd.chess-pgn",
        body = String),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
pub(super) async fn of_chosen(
    State(app): State<App>,
    Client(client): Client,
    address: Address,
    Query(query): Query<GamesQuery>,
) -> ApiResult<Response> {
    let most = query.limit.unwrap_or(FILE).clamp(1, LARGEST_FILE);
    let filter = query.filter(&app).await?;
    let run = filter.run.as_ref().map(|run| format!("{run}-"));
    let name = format!("{}games", run.unwrap_or_default());
    Games::new(app, client, address, filter, most)
        .file(&name)
        .await
}

/// Games that are still to be sent.
struct Games {
    app: App,
    client: Option<ClientAddress>,
    address: Address,
    filter: GameFilter,
    /// How many may still be listed.
    left: u32,
    listed: VecDeque<GameInfo>,
}

impl Games {
    /// The newest games that a filter chooses, whatever its limit is.
    const fn new(
        app: App,
        client: Option<ClientAddress>,
        address: Address,
        filter: GameFilter,
        most: u32,
    ) -> Self {
        Self {
            app,
            client,
            address,
            filter,
            left: most,
            listed: VecDeque::new(),
        }
    }

    /// A file with this name. The first games are listed before it begins: what cannot be listed
    /// is refused, and not a file that breaks off.
    async fn file(mut self, name: &str) -> ApiResult<Response> {
        self.list().await?;
        let texts = try_unfold(self, |mut games: Self| async move {
            let text = games.next().await?;
            anyhow::Ok(text.map(|text| (text, games)))
        });
        let name = attachment(&format!("{name}.pgn"));
        let headers = [
            (header::CONTENT_TYPE, PGN.to_owned()),
            (header::CONTENT_DISPOSITION, name),
        ];
        Ok((headers, Body::from_stream(texts)).into_response())
    }

    /// Lists the games that come next; none if all have been listed.
    async fn list(&mut self) -> Result<(), DbError> {
        self.filter.limit = self.left.min(LARGEST_ANSWER);
        if self.filter.limit == 0 {
            return Ok(());
        }
        let filter = self.filter.clone();
        let games = self.app.list(|db| async move { db.games(filter).await });
        self.listed = games.await?.into();
        let last = self.listed.back().map(|last| last.id);
        self.filter.before = last.or(self.filter.before);
        self.left -= self.listed.len() as u32;
        Ok(())
    }

    /// The games of the next chunk; none behind the last. The request's own turn ended with the answer's head, so the address
    /// waits for one for each chunk: many files at once keep games from nobody else.
    async fn next(&mut self) -> anyhow::Result<Option<String>> {
        let _turn = self.app.limits.read(self.client).await;
        if self.listed.is_empty() {
            self.list().await?;
        }
        let Some(first) = self.listed.front() else {
            return Ok(None);
        };
        let chunk = first.chunk;
        let of_chunk = self.listed.iter().take_while(|game| game.chunk == chunk);
        let count = of_chunk.count();
        let mut games: Vec<GameInfo> = self.listed.drain(..count).collect();
        games.sort_by_key(|game| game.place);
        let address = self.address.clone();
        let read = move |bytes: &[u8]| text(bytes, &games, &address);
        self.app.view_chunk(&chunk, read).await?.map(Some)
    }
}

/// Games of a chunk as PGN, in the order of their places.
fn text(chunk: &[u8], games: &[GameInfo], address: &Address) -> anyhow::Result<String> {
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
        text.push_str(&pgn::game(&record, &view::tags(info, &record, address))?);
    }
    Ok(text)
}
