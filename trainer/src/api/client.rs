//! One method for each call of the API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Url};
use rookery_common::ids::{AnchorName, ContentHash, MatchId, RunName};
use rookery_common::network::file::MAX_FILE_BYTES;
use rookery_common::protocol::jobs::{ChunkPage, ChunkRow};
use rookery_common::protocol::matches::MatchInfo;
use rookery_common::protocol::networks::{
    ExportFormat, ExportReceipt, NetworkInfo, NetworkName, NetworkReceipt,
};
use rookery_common::protocol::problem::Remedy;
use rookery_common::protocol::runs::{MetricReport, RunInfo};
use rookery_common::protocol::trust::HoldPage;
use rookery_common::protocol::{API_PREFIX, upload_time};
use rookery_common::rating::AnchorElo;
use rookery_common::signing::SigningKey;
use serde::de::DeserializeOwned;

use super::answer::{self, Expected};
use super::error::ApiError;
use super::retry::Backoff;
use crate::shutdown::Shutdown;

/// How long an answer may stay silent. Counted from the beginning of the request, so it is not for
/// uploads.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Tries that find a chunk missing or damaged before it counts as lost: some minutes.
const CHUNK_TRIES: u32 = 10;
/// As many as it takes.
const ENDLESS: u32 = u32::MAX;

/// A bearer token; it is never shown.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A token from its text, if it can stand in a header.
    ///
    /// # Errors
    ///
    /// If it is empty or holds anything but visible ASCII. The text is not shown.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        anyhow::ensure!(
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()),
            "the token is empty or holds what no token has, a second line perhaps; give only the word that begins \
             with rk_"
        );
        Ok(Self(text.to_owned()))
    }
}

/// Speaks to one coordinator for one run; cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    /// For uploads, whose time depends on their size.
    uploads: reqwest::Client,
    /// For files, which may be somewhere else. What else a coordinator is asked is never sent on: elsewhere the token
    /// does not go along.
    files: reqwest::Client,
    api: Url,
    token: Option<Token>,
    run: RunName,
    signing: Option<Arc<SigningKey>>,
    shutdown: Shutdown,
    backoff: Backoff,
}

impl Client {
    /// A client for the coordinator at `server`, for example `https://chess.example.org`.
    ///
    /// # Errors
    ///
    /// If the text is not an address, or TLS cannot be set up.
    pub fn new(
        server: &str,
        token: Option<Token>,
        run: RunName,
        shutdown: Shutdown,
    ) -> anyhow::Result<Self> {
        let api = api_address(server)?;
        Ok(Self {
            http: http()
                .redirect(Policy::none())
                .read_timeout(READ_TIMEOUT)
                .build()?,
            uploads: http().redirect(Policy::none()).build()?,
            files: http().read_timeout(READ_TIMEOUT).build()?,
            api,
            token,
            run,
            signing: None,
            shutdown,
            backoff: Backoff::default(),
        })
    }

    /// The same client with other waits between attempts.
    #[cfg(test)]
    #[must_use]
    pub(crate) const fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The same client, which signs the networks that it submits.
    #[must_use]
    pub fn with_signing_key(mut self, key: SigningKey) -> Self {
        self.signing = Some(Arc::new(key));
        self
    }

    /// The run.
    pub const fn run_name(&self) -> &RunName {
        &self.run
    }

    /// The run's state and parameters.
    ///
    /// # Errors
    ///
    /// [`ApiError`], as for every call, once it is refused for good or the user stops.
    pub async fn run(&self) -> Result<RunInfo, ApiError> {
        let path = format!("runs/{}", self.run);
        self.json("the run", || self.request(Method::GET, &path, &[]))
            .await
    }

    /// A page of the ledger after a cursor.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn chunks(&self, after: i64) -> Result<ChunkPage, ApiError> {
        let query = [("run", self.run.to_string()), ("after", after.to_string())];
        self.json("the ledger", || self.request(Method::GET, "chunks", &query))
            .await
    }

    /// A page of the chunks that were held out of training, and put back, after a cursor.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn holds(&self, after: i64) -> Result<HoldPage, ApiError> {
        let query = [("run", self.run.to_string()), ("after", after.to_string())];
        self.json("held chunks", || self.request(Method::GET, "holds", &query))
            .await
    }

    /// A chunk's file, which has the hash that the ledger gives.
    ///
    /// # Errors
    ///
    /// [`ApiError`]; [`ApiError::Lost`] if the coordinator seems to have it no more.
    pub async fn chunk(&self, row: &ChunkRow) -> Result<Vec<u8>, ApiError> {
        let path = format!("chunks/{}", row.hash);
        self.file(&path, row.hash, row.bytes, CHUNK_TRIES).await
    }

    /// What is known of a network.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn network(&self, name: NetworkName) -> Result<NetworkInfo, ApiError> {
        let path = format!("networks/{name}");
        self.json("the network", || {
            self.request(Method::GET, &path, &self.run_query())
        })
        .await
    }

    /// A network's file.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn network_file(&self, hash: ContentHash) -> Result<Vec<u8>, ApiError> {
        let path = format!("networks/{hash}/file");
        self.file(&path, hash, MAX_FILE_BYTES, ENDLESS).await
    }

    /// Submits a network; the same file twice counts once.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn submit(&self, file: Vec<u8>) -> Result<NetworkReceipt, ApiError> {
        self.submit_as(file, self.run_query().to_vec()).await
    }

    /// Submits a network that others are compared with and that is never best, with its Elo on a
    /// scale that others know, if it is given. A network that the run has keeps what it has.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn submit_anchor(
        &self,
        file: Vec<u8>,
        name: &AnchorName,
        elo: Option<AnchorElo>,
    ) -> Result<NetworkReceipt, ApiError> {
        let [run] = self.run_query();
        let mut query = vec![run, ("anchor", name.to_string())];
        query.extend(elo.map(|elo| ("elo", elo.to_string())));
        self.submit_as(file, query).await
    }

    async fn submit_as(
        &self,
        file: Vec<u8>,
        mut query: Vec<(&'static str, String)>,
    ) -> Result<NetworkReceipt, ApiError> {
        let path = format!("networks/{}", ContentHash::of(&file));
        if let Some(key) = &self.signing {
            let signature = key.sign_network(&self.run, &file);
            let signature = signature.map_err(|error| ApiError::Unsigned(error.to_string()))?;
            query.push(("signature", signature.0));
        }
        self.upload(&path, &query, file.into()).await
    }

    /// Submits a network's file in the format of another program; the same file twice counts once.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn submit_export(
        &self,
        network: ContentHash,
        format: ExportFormat,
        file: Vec<u8>,
    ) -> Result<ExportReceipt, ApiError> {
        let path = format!("networks/{network}/file");
        let hash = ContentHash::of(&file).to_string();
        let query = [("format", format.name().to_owned()), ("sha256", hash)];
        self.upload(&path, &query, file.into()).await
    }

    /// Sends a file and gives the coordinator's receipt.
    async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        body: bytes::Bytes,
    ) -> Result<T, ApiError> {
        let request = || {
            self.request_by(&self.uploads, Method::PUT, path, query)
                .timeout(upload_time(body.len()))
                .header("content-type", "application/octet-stream")
                .body(body.clone())
        };
        self.json("the network's upload", request).await
    }

    /// Where a match stands.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn match_info(&self, id: MatchId) -> Result<MatchInfo, ApiError> {
        let path = format!("matches/{id}");
        self.json("the match", || self.request(Method::GET, &path, &[]))
            .await
    }

    /// Reports metrics.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn report(&self, report: &MetricReport) -> Result<(), ApiError> {
        let path = format!("runs/{}/metrics", self.run);
        let request = || self.request(Method::POST, &path, &[]).json(report);
        self.patiently("the metrics", Expected::JSON, ENDLESS, request)
            .await
            .map(drop)
    }

    fn run_query(&self) -> [(&'static str, String); 1] {
        [("run", self.run.to_string())]
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> RequestBuilder {
        self.request_by(&self.http, method, path, query)
    }

    fn request_by(
        &self,
        http: &reqwest::Client,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let mut url = self.api.clone();
        url.set_path(&format!("{}{path}", self.api.path()));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(&token.0),
            None => request,
        }
    }

    async fn file(
        &self,
        path: &str,
        hash: ContentHash,
        limit: u64,
        tries: u32,
    ) -> Result<Vec<u8>, ApiError> {
        let what = format!("file {}", hash.short());
        let expected = Expected::file(hash, limit);
        let request = || self.request_by(&self.files, Method::GET, path, &self.run_query());
        self.patiently(&what, expected, tries, request).await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        what: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<T, ApiError> {
        let body = self
            .patiently(what, Expected::JSON, ENDLESS, request)
            .await?;
        serde_json::from_slice(&body).map_err(|error| answer::not_understood(&error))
    }

    /// Tries until it succeeds, is refused for good, or the user stops; or has told so often that what is
    /// asked for may be lost.
    async fn patiently(
        &self,
        what: &str,
        expected: Expected,
        tries: u32,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Vec<u8>, ApiError> {
        let mut backoff = self.backoff.clone();
        let mut losses = 0;
        loop {
            let result = tokio::select! {
                biased;
                () = self.shutdown.requested() => Err(ApiError::Stopped),
                result = once(request(), expected) => result,
            };
            let error = match result {
                Err(error) if error.remedy() == Remedy::Retry => error,
                done => return done,
            };
            losses += u32::from(error.tells_of_loss());
            if losses >= tries {
                let last = Box::new(error);
                return Err(ApiError::Lost { tries, last });
            }
            let wait = backoff.next_wait(error.retry_after());
            tracing::warn!(
                "the coordinator did not give or take {what}: {error}; trying again in {:.0} s",
                wait.as_secs_f64().ceil()
            );
            tokio::select! {
                () = self.shutdown.requested() => return Err(ApiError::Stopped),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// What all connections have in common.
fn http() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("rookery-trainer/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(20))
}

/// Where the API of the coordinator at `server` begins.
fn api_address(server: &str) -> anyhow::Result<Url> {
    let hint = "write http://host:port or https://host";
    let mut url: Url = server
        .parse()
        .map_err(|error| anyhow::anyhow!("{server:?} is no server address ({error}); {hint}"))?;
    anyhow::ensure!(
        matches!(url.scheme(), "http" | "https"),
        "{server:?} is no server address; {hint}"
    );
    // A password would stand in every log, and in the header where the token belongs.
    let extra = [url.password(), url.query(), url.fragment()];
    anyhow::ensure!(
        url.username().is_empty() && extra.iter().all(Option::is_none),
        "the server's address must hold neither a user's name or password before @, nor ? or #; {hint}"
    );
    url.set_path(&format!(
        "{}{API_PREFIX}/",
        url.path().trim_end_matches('/')
    ));
    Ok(url)
}

async fn once(request: RequestBuilder, expected: Expected) -> Result<Vec<u8>, ApiError> {
    answer::read(request.send().await?, expected).await
}

#[cfg(test)]
mod tests;
