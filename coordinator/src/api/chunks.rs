//! Chunks: in from contributors, out to trainers.

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use rookery_common::chunk::Caps;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::Problem;
use rookery_common::protocol::jobs::{ChunkPage, ChunkReceipt};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::download::{Caching, Download};
use super::error::{ApiError, ApiResult};
use super::extract::{Bytes, Client, Contributor, CursorQuery, Path, Query, Trainer, page_size};
use crate::app::App;
use crate::blobs::BlobKind;
use crate::config::DownloadPath;
use crate::db::RatingsState;
use crate::{intake, ratings};

/// Chunks of a page if the request does not say how many.
const PAGE: u32 = 100;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(upload, download))
        .layer(DefaultBodyLimit::max(Caps::default().compressed_bytes))
        .routes(routes!(list))
}

/// Uploads a chunk under the SHA-256 of its bytes. The acknowledgement means that it is stored
/// durably; the same bytes may be sent any number of times and count once.
#[utoipa::path(put, path = "/chunks/{sha256}", tag = "chunks",
    params(("sha256" = ContentHash, Path, description = "The SHA-256 of the body")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    security(("token" = ["contribute"])), responses(
    (status = 200, description = "It is stored and counted", body = ChunkReceipt),
    (status = "4XX", description = "chunk-refused, hash-mismatch, lease-ended, conflict, \
        not-found, too-large, unauthorized, forbidden, blocked", body = Problem),
))]
async fn upload(
    State(app): State<App>,
    Contributor(contributor): Contributor,
    Client(client): Client,
    Path(hash): Path<ContentHash>,
    Bytes(bytes): Bytes,
) -> ApiResult<axum::Json<ChunkReceipt>> {
    app.limits
        .upload(client, contributor.user, bytes.len())
        .map_err(|too_much| {
            ApiError::too_many("bytes uploaded by this user, or refused or held", too_much)
        })?;
    let size = bytes.len();
    let accepted = intake::take(&app, &contributor, hash, bytes)
        .await
        .inspect_err(|error| {
            let cost = error.cost(size);
            app.limits.refused(client, contributor.user, cost);
        })?;
    if accepted.is_held {
        let cost = intake::held_cost(size);
        app.limits.refused(client, contributor.user, cost);
    }
    let receipt = accepted.receipt;
    if !receipt.duplicate {
        metrics::counter!("rookery_chunks_total").increment(1);
        metrics::counter!("rookery_chunk_bytes_total").increment(size as u64);
        metrics::counter!("rookery_games_total").increment(u64::from(receipt.games));
        metrics::counter!("rookery_positions_total").increment(u64::from(receipt.positions));
    }
    app.events.publish_all(accepted.events);
    if accepted.ratings == RatingsState::Stale {
        ratings::refit_soon(&app, accepted.run);
    }
    Ok(axum::Json(receipt))
}

/// A chunk's file.
#[utoipa::path(get, path = "/chunks/{sha256}", tag = "chunks",
    params(("sha256" = ContentHash, Path, description = "The chunk")),
    security(("token" = ["train"])), responses(
    (status = 200, description = "The file", content_type = "application/octet-stream"),
    (status = 206, description = "The range of it that was asked for"),
    (status = 307, description = "The file is at the address in `Location`, without a token"),
    (status = "4XX", description = "not-found, bad-range, unauthorized, forbidden",
        body = Problem),
))]
async fn download(
    State(app): State<App>,
    method: Method,
    _: Trainer,
    Client(client): Client,
    Path(hash): Path<ContentHash>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let (_, row) = app.db.chunk(&hash).await?;
    let archived = app.db.archived(&hash).await?;
    let caching = Caching::ImmutablePrivate;
    let file = Download {
        kind: BlobKind::Chunk,
        hash,
        bytes: row.bytes,
        caching,
        path: DownloadPath::Direct,
        archived,
        name: None,
    };
    file.answer(&app, client, &method, &headers).await
}

/// The ledger in order.
#[utoipa::path(get, path = "/chunks", tag = "chunks", params(CursorQuery),
    security(("token" = ["train"])), responses(
    (status = 200, description = "Chunks after the cursor", body = ChunkPage),
    (status = "4XX", description = "bad-request, not-found, unauthorized, forbidden",
        body = Problem),
))]
async fn list(
    State(app): State<App>,
    _: Trainer,
    Query(query): Query<CursorQuery>,
) -> ApiResult<axum::Json<ChunkPage>> {
    let run = query.run(&app).await?;
    let limit = page_size(query.limit, PAGE);
    Ok(axum::Json(app.db.chunks(&run, query.after, limit).await?))
}
