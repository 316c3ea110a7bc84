//! Games: lists, single games with their moves, PGN.

mod file;
mod view;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use rookery_common::chess::{GameResult, Termination};
use rookery_common::chunk::export::pgn::{self, PgnTags};
use rookery_common::chunk::{Caps, ChunkReader, GameRecord};
use rookery_common::ids::{GameId, MatchId, NetworkNumber, RunName};
use rookery_common::protocol::Problem;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::{GameDetail, GameInfo};
use rookery_common::protocol::networks::NetworkName;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::download::attachment;
use super::error::{ApiError, ApiResult};
use super::extract::{Path, Query, RunQuery};
use super::networks::{self, parse_name};
use super::people::check_sought;
use crate::app::App;
use crate::db::{GameFilter, GameSort};
use crate::openings::OpeningFilter;
use crate::server::address::Address;

/// The media type of PGN.
const PGN: &str = "application/vnd.chess-pgn";
/// Games of an answer if the request does not say how many.
const ANSWER: u32 = 50;
/// Most games of an answer.
const LARGEST_ANSWER: u32 = 500;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(as_pgn))
        .routes(routes!(file::of_match))
        .routes(routes!(file::of_chosen))
}

/// Which games.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct GamesQuery {
    /// Only of this run.
    run: Option<RunName>,
    /// Only of this match.
    #[serde(rename = "match")]
    match_id: Option<MatchId>,
    /// Only of this network, on either side: a number, `best` or a SHA-256. Other than a SHA-256 it
    /// needs a run where there are several.
    network: Option<String>,
    /// Only of this kind; needs a run where there are several.
    kind: Option<WorkKind>,
    /// Only those that ended so, among the 200,000 newest games, or those before `before`.
    result: Option<GameResult>,
    /// Only those that ended for this reason, among the same.
    termination: Option<Termination>,
    /// Only games of at least this many plies, among the same.
    min_plies: Option<u32>,
    /// Only games of at most this many plies, among the same.
    max_plies: Option<u32>,
    /// Only those with this opening: its ECO code, or its name without the variation (`B20`, `Sicilian Defense`). Needs a
    /// run where there are several. Together with `network`, `kind` or `contributor` it is looked for among the same.
    opening: Option<String>,
    /// Only those that the contributor of this name sent.
    contributor: Option<String>,
    /// Only games before this one.
    before: Option<GameId>,
    /// The most games to return, up to 500; up to 10,000 in a PGN file.
    #[param(minimum = 1)]
    limit: Option<u32>,
}

impl GamesQuery {
    async fn filter(self, app: &App) -> ApiResult<GameFilter> {
        if let Some(name) = &self.contributor {
            check_sought(name)?;
        }
        let opening = self.opening.as_deref().map(parse_opening).transpose()?;
        let (run, network) = self.run_and_network(app).await?;
        Ok(GameFilter {
            run,
            match_id: self.match_id,
            network,
            kind: self.kind,
            result: self.result,
            termination: self.termination,
            plies: ply_range(self.min_plies, self.max_plies),
            opening,
            contributor: self.contributor,
            sort: GameSort::Newest,
            before: self.before,
            limit: self.limit.unwrap_or(ANSWER).clamp(1, LARGEST_ANSWER),
        })
    }

    /// The run and the network's number, as far as they are given or follow from one another.
    async fn run_and_network(
        &self,
        app: &App,
    ) -> ApiResult<(Option<RunName>, Option<NetworkNumber>)> {
        let query = RunQuery {
            run: self.run.clone(),
        };
        match (&self.network, self.kind) {
            (Some(name), _) => match parse_name(name)? {
                NetworkName::Number(number) => Ok((Some(query.resolve(app).await?), Some(number))),
                NetworkName::Best | NetworkName::Hash(_) => {
                    let found = networks::find(app, name, &query).await?;
                    Ok((Some(found.run), Some(found.number)))
                }
            },
            (None, None) if self.opening.is_none() => Ok((query.run, None)),
            (None, _) => Ok((Some(query.resolve(app).await?), None)),
        }
    }
}

fn parse_opening(text: &str) -> ApiResult<OpeningFilter> {
    OpeningFilter::parse(text).ok_or_else(|| {
        ApiError::bad_request(format!(
            "no opening is called {text:?}: give an ECO code (B20), or a name without its variation \
             (Sicilian Defense)"
        ))
    })
}

/// What these ends allow; none if neither is given.
pub(crate) fn ply_range(least: Option<u32>, most: Option<u32>) -> Option<(u32, u32)> {
    (least.is_some() || most.is_some())
        .then(|| (least.unwrap_or_default(), most.unwrap_or(u32::MAX)))
}

/// Games, newest first.
#[utoipa::path(get, path = "/games", tag = "matches", params(GamesQuery), responses(
    (status = 200, description = "Games", body = Vec<GameInfo>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn list(
    State(app): State<App>,
    Query(query): Query<GamesQuery>,
) -> ApiResult<axum::Json<Vec<GameInfo>>> {
    let filter = query.filter(&app).await?;
    let games = app.list(|db| async move { db.games(filter).await }).await?;
    Ok(axum::Json(games))
}

/// One game with its moves; as PGN if the request accepts that and not JSON.
#[utoipa::path(get, path = "/games/{id}", tag = "matches",
    params(("id" = GameId, Path, description = "The game")), responses(
    (status = 200, description = "The game", body = GameDetail),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn one(
    State(app): State<App>,
    address: Address,
    Path(id): Path<GameId>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let (info, record) = find(&app, id).await?;
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|kinds| kinds.contains("chess-pgn") && !kinds.contains("json")) {
        return pgn_of(&address, &info, &record);
    }
    let detail = view::detail(info, &record).map_err(|error| ApiError::internal(&error))?;
    Ok(axum::Json(detail).into_response())
}

/// One game as PGN.
#[utoipa::path(get, path = "/games/{id}/pgn", tag = "matches",
    params(("id" = GameId, Path, description = "The game")), responses(
    (status = 200, description = "The game", content_type = "application/vnd.chess-pgn",
        body = String),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn as_pgn(
    State(app): State<App>,
    address: Address,
    Path(id): Path<GameId>,
) -> ApiResult<Response> {
    let (info, record) = find(&app, id).await?;
    pgn_of(&address, &info, &record)
}

/// A game's row and its record from the chunk.
async fn find(app: &App, id: GameId) -> ApiResult<(GameInfo, GameRecord)> {
    let info = app.db.game(id).await?;
    let place = info.place;
    let read = app
        .view_chunk(&info.chunk, move |bytes| record_at(bytes, place))
        .await?;
    let record = read.map_err(|error| ApiError::internal(&error))?;
    let missing = || format!("chunk {} has no game {place}", info.chunk);
    let record = record.ok_or_else(|| ApiError::internal(&missing()))?;
    Ok((info, record))
}

/// The game at a place of a chunk; none behind its last. Those before it are not replayed.
pub(crate) fn record_at(
    bytes: &[u8],
    place: u32,
) -> Result<Option<GameRecord>, rookery_common::chunk::ChunkError> {
    let mut reader = ChunkReader::open(bytes, &Caps::default())?;
    for _ in 0..place {
        if !reader.skip_game()? {
            return Ok(None);
        }
    }
    reader.next_game()
}

fn pgn_of(address: &Address, info: &GameInfo, record: &GameRecord) -> ApiResult<Response> {
    let tags = view::tags(info, record, address);
    let text = pgn::game(record, &tags).map_err(|error| ApiError::internal(&error))?;
    let headers = [
        (header::CONTENT_TYPE, PGN.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            attachment(&format!("{}-{}.pgn", info.run, info.id)),
        ),
    ];
    Ok((headers, text).into_response())
}
