//! Networks: candidates in, files out.

use axum::extract::{DefaultBodyLimit, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rookery_common::ids::{AnchorName, ContentHash, RunName};
use rookery_common::network::NetworkSpec;
use rookery_common::network::file::{MAX_FILE_BYTES, verify};
use rookery_common::protocol::networks::{
    ExportFormat, ExportReceipt, NetworkInfo, NetworkName, NetworkReceipt, NetworkStatus,
    ParseNetworkNameError,
};
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::{Problem, ProblemCode};
use rookery_common::rating::AnchorElo;
use rookery_common::signing::{RunKey, Signature, SigningError};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::download::{Caching, Download, attachment};
use super::error::{ApiError, ApiResult};
use super::extract::{Anyone, Bytes, Client, Path, Query, RunQuery, Trainer, may};
use crate::app::App;
use crate::blobs::BlobKind;
use crate::config::DownloadPath;
use crate::db::{AnchorDraft, ExportDraft, NetworkDraft, Principal};
use crate::telemetry;
use crate::{random, ratings};

mod standard_anchors;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit, one))
        .routes(routes!(file, add_export))
        .layer(DefaultBodyLimit::max(MAX_FILE_BYTES as usize))
        .routes(routes!(list))
        .routes(routes!(signature))
}

/// Submits a network under the SHA-256 of its file. The first becomes best, a later one opens its
/// gate match. The file of a program is taken as an anchor only.
#[utoipa::path(put, path = "/networks/{name}", tag = "networks",
    params(("name" = ContentHash, Path, description = "The SHA-256 of the body"), SubmitQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    security(("token" = ["train"])), responses(
    (status = 200, description = "The coordinator had it already", body = NetworkReceipt),
    (status = 201, description = "It is stored", body = NetworkReceipt),
    (status = "4XX", description = "network-refused, hash-mismatch, signature-refused, \
        too-many-candidates, bad-request, not-found, too-large, unauthorized, forbidden",
        body = Problem),
))]
async fn submit(
    State(app): State<App>,
    submission: Submission,
    Bytes(bytes): Bytes,
) -> ApiResult<(StatusCode, axum::Json<NetworkReceipt>)> {
    let Submission {
        sender,
        run,
        hash,
        anchor,
        ..
    } = &submission;
    let verified = {
        let bytes = bytes.clone();
        let turn = app.verifying.next().await;
        let verified = turn.work(move || verify(&bytes)).await;
        verified.map_err(|error| ApiError::internal(&error))??
    };
    if verified.hash != *hash {
        let detail = format!(
            "the body has the hash {}, the address says {hash}",
            verified.hash
        );
        return Err(ApiError::new(ProblemCode::HashMismatch, detail));
    }
    if let (Some(program), None) = (verified.spec.program(), anchor) {
        let detail = format!(
            "this is the program {program}, and no network: it can only be an anchor, whose name is \
             given as `anchor`"
        );
        return Err(ApiError::new(ProblemCode::NetworkRefused, detail));
    }
    let receipt = enter(&app, &submission, verified.spec, bytes).await?;
    let is_to_rate = match receipt.status {
        NetworkStatus::Initial => standard_anchors::add(&app, run, sender).await?,
        NetworkStatus::Anchor | NetworkStatus::Promoted => !receipt.duplicate,
        _ => false,
    };
    if is_to_rate {
        // No gate match will say anything of it.
        ratings::refit_soon(&app, submission.run);
    }
    let status = if receipt.duplicate {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, axum::Json(receipt)))
}

/// Signs a network that was verified, keeps its file, and enters it.
async fn enter(
    app: &App,
    submission: &Submission,
    spec: NetworkSpec,
    bytes: bytes::Bytes,
) -> ApiResult<NetworkReceipt> {
    let Submission { run, hash, .. } = submission;
    if let Some(key) = submission.key.clone() {
        let given = submission.signature.clone();
        sign(app, run, key, *hash, given, bytes.clone()).await?;
    }
    let size = bytes.len() as u64;
    let put = app.blobs.put(BlobKind::Network, hash, bytes);
    telemetry::blob("put", BlobKind::Network, put).await?;
    let draft = NetworkDraft {
        run: run.clone(),
        hash: *hash,
        bytes: size,
        spec,
        user: submission.sender.user,
        match_seed: random::seed()?,
        anchor: submission.anchor.clone(),
    };
    let submitted = app.db.submit_network(draft, app.clock.now()).await?;
    app.events.publish_all(submitted.events);
    let receipt = submitted.receipt;
    tracing::info!(network = %receipt.number, status = receipt.status.name(), "A network came in.");
    Ok(receipt)
}

/// What is said of a network that is submitted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SubmitQuery {
    /// The run; may be left out where there is only one.
    run: Option<RunName>,
    /// The file's signature by the run's key, as minisign writes it; where it is left out, the
    /// coordinator signs, if it has the secret key.
    signature: Option<Signature>,
    /// Its name if it is an anchor: a network that plays rating matches and is never best. The
    /// token needs the scope `operate` then.
    anchor: Option<AnchorName>,
    /// The anchor's Elo on a scale that others know: once it has played, the run's ratings are
    /// counted from it. Where it is left out, it is rated as any other network.
    elo: Option<AnchorElo>,
}

/// What is said of a network, by a user who may submit it, to a run that takes it: known before the file is read.
struct Submission {
    sender: Principal,
    run: RunName,
    /// The run's key, if its networks are signed.
    key: Option<RunKey>,
    /// The file's, by the address.
    hash: ContentHash,
    /// The signature that comes with it.
    signature: Option<Signature>,
    anchor: Option<AnchorDraft>,
}

impl FromRequestParts<App> for Submission {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let Anyone(sender) = Anyone::from_request_parts(parts, app).await?;
        let Query(query) = Query::<SubmitQuery>::from_request_parts(parts, app).await?;
        let scope = match query.anchor {
            Some(_) => Scope::Operate,
            None => Scope::Train,
        };
        may(&sender, scope)?;
        if query.elo.is_some() && query.anchor.is_none() {
            let detail = "`elo` is the rating of an anchor: give its name as `anchor`";
            return Err(ApiError::bad_request(detail));
        }
        let Path(hash) = Path::<ContentHash>::from_request_parts(parts, app).await?;
        let run = RunQuery { run: query.run }.resolve(app).await?;
        let key = app.db.run(&run).await?.key;
        if query.anchor.is_none() {
            app.db.must_have_room(&run, &hash).await?;
        }
        let elo = query.elo;
        Ok(Self {
            sender,
            run,
            key,
            hash,
            signature: query.signature,
            anchor: query.anchor.map(|name| AnchorDraft { name, elo }),
        })
    }
}

/// Keeps the signature of a network that comes in: the one that came with it, or the
/// coordinator's own.
async fn sign(
    app: &App,
    run: &RunName,
    key: RunKey,
    hash: ContentHash,
    given: Option<Signature>,
    bytes: bytes::Bytes,
) -> ApiResult<()> {
    let refuse = |detail: String| ApiError::new(ProblemCode::SignatureRefused, detail);
    let own = match given {
        Some(_) => None,
        None => app
            .keys
            .load(run)
            .map_err(|error| ApiError::internal(&error))?,
    };
    if given.is_none() && own.as_ref().is_none_or(|own| *own.public() != key) {
        return Err(refuse(format!(
            "networks of run {run} are signed by {key}, and the coordinator does not have the secret key: \
             submit with --signing-key FILE"
        )));
    }
    let (of_run, by) = (run.clone(), key.clone());
    let signed = tokio::task::spawn_blocking(move || {
        let signature = match (given, own) {
            (Some(signature), _) => signature,
            (None, Some(own)) => own.sign_network(&of_run, &bytes)?,
            (None, None) => return Err(SigningError::Form),
        };
        by.verify(&bytes, &signature).map(|()| signature)
    });
    let signature = signed.await.map_err(|error| ApiError::internal(&error))?;
    let signature = signature.map_err(|error| refuse(error.to_string()))?;
    let signed = vec![(hash, signature)];
    let now = app.clock.now();
    Ok(app.db.add_signatures(run, key, signed, now).await?)
}

/// A network's signature by its run's key, as minisign writes it: `minisign -V` checks the file
/// with it.
#[utoipa::path(get, path = "/networks/{name}/signature", tag = "networks",
    params(("name" = String, Path, description = "A number, `best` or a SHA-256"), RunQuery),
    responses(
    (status = 200, description = "The signature", content_type = "text/plain", body = String),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn signature(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<RunQuery>,
) -> ApiResult<Response> {
    let info = find(&app, &name, &query).await?;
    let unsigned = || ApiError::not_found(format!("network {} is not signed", info.number));
    let key = app.db.run(&info.run).await?.key.ok_or_else(unsigned)?;
    let signature = app.db.signature(&info.run, &info.hash, &key).await?;
    // Next to the network's file, this is the name that minisign looks for.
    let name = attachment(&format!("{}.minisig", file_name(&info, None)));
    let headers = [(header::CONTENT_DISPOSITION, name)];
    Ok((headers, signature.ok_or_else(unsigned)?.0).into_response())
}

/// Networks of a run, newest first.
#[utoipa::path(get, path = "/networks", tag = "networks", params(RunQuery), responses(
    (status = 200, description = "Networks", body = Vec<NetworkInfo>),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn list(
    State(app): State<App>,
    Query(query): Query<RunQuery>,
) -> ApiResult<axum::Json<Vec<NetworkInfo>>> {
    let run = query.resolve(&app).await?;
    let networks = app.list(|db| async move { db.networks(&run).await });
    Ok(axum::Json(networks.await?))
}

/// Reads `best`, a number or a SHA-256.
pub(super) fn parse_name(text: &str) -> ApiResult<NetworkName> {
    let refuse = |error: ParseNetworkNameError| ApiError::bad_request(error.to_string());
    text.parse().map_err(refuse)
}

pub(super) async fn find(app: &App, name: &str, query: &RunQuery) -> ApiResult<NetworkInfo> {
    match (parse_name(name)?, &query.run) {
        (NetworkName::Hash(hash), None) => Ok(app.db.network_by_hash(&hash).await?),
        (name, _) => {
            let run = query.resolve(app).await?;
            Ok(app.db.network(&run, name).await?)
        }
    }
}

/// One network.
#[utoipa::path(get, path = "/networks/{name}", tag = "networks",
    params(("name" = String, Path, description = "A number, `best` or a SHA-256"), RunQuery),
    responses(
    (status = 200, description = "The network", body = NetworkInfo),
    (status = "4XX", description = "bad-request, not-found", body = Problem),
))]
async fn one(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<RunQuery>,
) -> ApiResult<axum::Json<NetworkInfo>> {
    find(&app, &name, &query).await.map(axum::Json)
}

/// Which of a network's files is asked for.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct FileQuery {
    /// The run; may be left out where there is only one.
    run: Option<RunName>,
    /// The format: `lc0` or `onnx`; without it, Rookery's own.
    format: Option<ExportFormat>,
    /// `through` to get the file from the coordinator itself, never a redirect to where else it is: for web pages,
    /// whose content security policy allows no other host.
    #[serde(default)]
    #[param(inline)]
    path: DownloadPath,
}

/// A network's file, with `Range`, a strong `ETag`, and immutable caching when named by SHA-256.
#[utoipa::path(get, path = "/networks/{name}/file", tag = "networks",
    params(("name" = String, Path, description = "A number, `best` or a SHA-256"), FileQuery),
    responses(
    (status = 200, description = "The file", content_type = "application/octet-stream"),
    (status = 206, description = "The range of it that was asked for"),
    (status = 307, description = "The file is at the address in `Location`, without a token"),
    (status = 304, description = "The client has it"),
    (status = "4XX", description = "bad-request, not-found, bad-range", body = Problem),
))]
async fn file(
    State(app): State<App>,
    method: Method,
    Client(client): Client,
    Path(name): Path<String>,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let info = find(&app, &name, &RunQuery { run: query.run }).await?;
    let caching = match parse_name(&name)? {
        NetworkName::Hash(_) => Caching::Immutable,
        NetworkName::Number(_) | NetworkName::Best => Caching::Revalidate,
    };
    let (kind, hash, bytes) = match query.format {
        None => (BlobKind::Network, info.hash, info.bytes),
        Some(format) => {
            let export = info.exports.iter().find(|export| export.format == format);
            let export = export.ok_or_else(|| no_export(&info, format))?;
            (BlobKind::Export, export.hash, export.bytes)
        }
    };
    let file = Download {
        kind,
        hash,
        bytes,
        caching,
        path: query.path,
        archived: None,
        name: Some(file_name(&info, query.format)),
    };
    file.answer(&app, client, &method, &headers).await
}

/// The name of a network's file: its run, its number, and what the format's files end with.
fn file_name(info: &NetworkInfo, format: Option<ExportFormat>) -> String {
    let ending = format.map_or("safetensors", |format| format.ending());
    format!("{}-{}.{ending}", info.run, info.number)
}

fn no_export(info: &NetworkInfo, format: ExportFormat) -> ApiError {
    let (number, format) = (info.number, format.name());
    ApiError::not_found(format!("network {number} has no {format} export"))
}

/// What an export says of itself.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// The format: `lc0` or `onnx`.
    format: ExportFormat,
    /// The SHA-256 of the body.
    sha256: ContentHash,
}

/// An export and its network, which is known before the file is read.
struct ExportSubmission {
    trainer: Principal,
    network: ContentHash,
    query: ExportQuery,
}

impl FromRequestParts<App> for ExportSubmission {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let Trainer(trainer) = Trainer::from_request_parts(parts, app).await?;
        let Path(network) = Path::<ContentHash>::from_request_parts(parts, app).await?;
        let Query(query) = Query::<ExportQuery>::from_request_parts(parts, app).await?;
        let info = app.db.network_by_hash(&network).await?;
        if let Some(program) = info.spec.program() {
            let detail = format!("the program {program} is in no other program's format");
            return Err(ApiError::new(ProblemCode::NetworkRefused, detail));
        }
        Ok(Self {
            trainer,
            network,
            query,
        })
    }
}

/// Adds a network's file in the format of another program. A network has one in each format.
#[utoipa::path(put, path = "/networks/{name}/file", tag = "networks",
    params(("name" = ContentHash, Path, description = "The network's SHA-256"), ExportQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    security(("token" = ["train"])), responses(
    (status = 200, description = "The coordinator had it already", body = ExportReceipt),
    (status = 201, description = "It is stored", body = ExportReceipt),
    (status = "4XX", description = "network-refused, hash-mismatch, bad-request, not-found, \
        conflict, too-large, unauthorized, forbidden", body = Problem),
))]
async fn add_export(
    State(app): State<App>,
    ExportSubmission {
        trainer,
        network,
        query,
    }: ExportSubmission,
    Bytes(bytes): Bytes,
) -> ApiResult<(StatusCode, axum::Json<ExportReceipt>)> {
    if !query.format.begins(&bytes) {
        let detail = format!("the body is no {} file", query.format.name());
        return Err(ApiError::new(ProblemCode::NetworkRefused, detail));
    }
    let hash = {
        let bytes = bytes.clone();
        let hashed = tokio::task::spawn_blocking(move || ContentHash::of(&bytes)).await;
        hashed.map_err(|error| ApiError::internal(&error))?
    };
    if hash != query.sha256 {
        let detail = format!("the body has the hash {hash}, not {}", query.sha256);
        return Err(ApiError::new(ProblemCode::HashMismatch, detail));
    }
    let draft = ExportDraft {
        network,
        format: query.format,
        hash,
        bytes: bytes.len() as u64,
        user: trainer.user,
    };
    let put = app.blobs.put(BlobKind::Export, &hash, bytes);
    telemetry::blob("put", BlobKind::Export, put).await?;
    let receipt = app.db.add_export(draft, app.clock.now()).await?;
    let status = if receipt.duplicate {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, axum::Json(receipt)))
}
