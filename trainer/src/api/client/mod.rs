//! One method for each call of the API.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::{Method, RequestBuilder};
use rookery_client::{Body, Connection, RetryPolicy, Token, answer, ask, send};
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
use rookery_common::rating::AnchorElo;
use rookery_common::signing::SigningKey;
use serde::de::DeserializeOwned;

use super::error::CallError;
use rookery_cli::Shutdown;

/// Tries that find a chunk missing or damaged before it counts as lost: some minutes.
const CHUNK_TRIES: u32 = 10;
/// As many as it takes.
const ENDLESS: u32 = u32::MAX;

/// Speaks to one coordinator for one run; cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    connection: Connection,
    run: RunName,
    signing: Option<Arc<SigningKey>>,
    shutdown: Shutdown,
    policy: RetryPolicy,
    tries: u32,
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
        let program = concat!("rookery-trainer/", env!("CARGO_PKG_VERSION"));
        let mut connection = Connection::new(server.parse()?, program)?;
        if let Some(token) = token {
            connection = connection.with_token(token);
        }
        Ok(Self {
            connection,
            run,
            signing: None,
            shutdown,
            policy: RetryPolicy::default(),
            tries: ENDLESS,
        })
    }

    /// The same client, which gives a call up after this many tries, whatever their errors.
    #[must_use]
    pub const fn with_tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// The same client with hardly a pause between attempts.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn impatient(mut self) -> Self {
        let moment = std::time::Duration::from_millis(1);
        (self.policy.first, self.policy.longest) = (moment, moment);
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
    /// [`CallError`], as for every call, once it is refused for good or the user stops.
    pub async fn run(&self) -> Result<RunInfo, CallError> {
        let path = format!("runs/{}", self.run);
        self.json("the run", || self.request(Method::GET, &path, &[]))
            .await
    }

    /// The names of the coordinator's runs.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn run_names(&self) -> Result<Vec<RunName>, CallError> {
        let runs: Vec<RunInfo> = self
            .json("the runs", || self.request(Method::GET, "runs", &[]))
            .await?;
        Ok(runs.into_iter().map(|run| run.name).collect())
    }

    /// A page of the ledger after a cursor.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn chunks(&self, after: i64) -> Result<ChunkPage, CallError> {
        let query = [("run", self.run.to_string()), ("after", after.to_string())];
        self.json("the ledger", || self.request(Method::GET, "chunks", &query))
            .await
    }

    /// A page of the chunks that were held out of training, and put back, after a cursor.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn holds(&self, after: i64) -> Result<HoldPage, CallError> {
        let query = [("run", self.run.to_string()), ("after", after.to_string())];
        self.json("held chunks", || self.request(Method::GET, "holds", &query))
            .await
    }

    /// A chunk's file, which has the hash that the ledger gives.
    ///
    /// # Errors
    ///
    /// [`CallError`]; [`CallError::RetriesExhausted`] if the coordinator seems to have it no more.
    pub async fn chunk(&self, row: &ChunkRow) -> Result<Vec<u8>, CallError> {
        let path = format!("chunks/{}", row.hash);
        self.file(&path, row.hash, row.bytes, CHUNK_TRIES).await
    }

    /// What is known of a network.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn network(&self, name: NetworkName) -> Result<NetworkInfo, CallError> {
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
    /// [`CallError`].
    pub async fn network_file(&self, hash: ContentHash) -> Result<Vec<u8>, CallError> {
        let path = format!("networks/{hash}/file");
        self.file(&path, hash, MAX_FILE_BYTES, ENDLESS).await
    }

    /// Submits a network; the same file twice counts once.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn submit(&self, file: Vec<u8>) -> Result<NetworkReceipt, CallError> {
        self.submit_as(file, self.run_query().to_vec()).await
    }

    /// Submits a network that others are compared with and that is never best, with its Elo on a
    /// scale that others know, if it is given. A network that the run has keeps what it has.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn submit_anchor(
        &self,
        file: Vec<u8>,
        name: &AnchorName,
        elo: Option<AnchorElo>,
    ) -> Result<NetworkReceipt, CallError> {
        let [run] = self.run_query();
        let mut query = vec![run, ("anchor", name.to_string())];
        query.extend(elo.map(|elo| ("elo", elo.to_string())));
        self.submit_as(file, query).await
    }

    async fn submit_as(
        &self,
        file: Vec<u8>,
        mut query: Vec<(&'static str, String)>,
    ) -> Result<NetworkReceipt, CallError> {
        let path = format!("networks/{}", ContentHash::of(&file));
        if let Some(key) = &self.signing {
            let signature = key.sign_network(&self.run, &file);
            let signature = signature.map_err(|error| CallError::Unsigned(error.to_string()))?;
            query.push(("signature", signature.0));
        }
        self.upload(&path, &query, file).await
    }

    /// Submits a network's file in the format of another program; the same file twice counts once.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn submit_export(
        &self,
        network: ContentHash,
        format: ExportFormat,
        file: Vec<u8>,
    ) -> Result<ExportReceipt, CallError> {
        let path = format!("networks/{network}/file");
        let hash = ContentHash::of(&file).to_string();
        let query = [("format", format.name().to_owned()), ("sha256", hash)];
        self.upload(&path, &query, file).await
    }

    /// Sends a file and gives the coordinator's receipt.
    async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        file: Vec<u8>,
    ) -> Result<T, CallError> {
        let file = Bytes::from(file);
        let request = || self.connection.upload(path, query, file.clone());
        self.json("the network's upload", request).await
    }

    /// Where a match stands.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn match_info(&self, id: MatchId) -> Result<MatchInfo, CallError> {
        let path = format!("matches/{id}");
        self.json("the match", || self.request(Method::GET, &path, &[]))
            .await
    }

    /// Reports metrics.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn report(&self, report: &MetricReport) -> Result<(), CallError> {
        let path = format!("runs/{}/metrics", self.run);
        let request = || self.request(Method::POST, &path, &[]).json(report);
        self.patiently("the metrics", ENDLESS, || send(request()))
            .await
            .map(drop)
    }

    fn run_query(&self) -> [(&'static str, String); 1] {
        [("run", self.run.to_string())]
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> RequestBuilder {
        self.connection.request(method, path, query)
    }

    async fn file(
        &self,
        path: &str,
        hash: ContentHash,
        limit: u64,
        tries: u32,
    ) -> Result<Vec<u8>, CallError> {
        let what = format!("file {}", hash.short());
        let query = self.run_query();
        let request = || self.connection.download(path, &query, 0);
        self.patiently(&what, tries, || fetch(request(), hash, limit))
            .await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        what: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<T, CallError> {
        self.patiently(what, ENDLESS, || ask(request())).await
    }

    /// Tries until it succeeds, is refused for good, the user stops, the client's tries are over, or as many tries as
    /// `losses` found that what is asked for may be lost.
    async fn patiently<T, E, A>(
        &self,
        what: &str,
        losses: u32,
        call: impl Fn() -> A,
    ) -> Result<T, CallError>
    where
        A: Future<Output = Result<T, E>>,
        E: Into<CallError>,
    {
        let (mut failures, mut lost) = (0, 0);
        loop {
            let result = tokio::select! {
                biased;
                () = self.shutdown.requested() => Err(CallError::Stopped),
                result = call() => result.map_err(Into::into),
            };
            let error = match result {
                Err(error) if error.remedy() == Remedy::Retry => error,
                done => return done,
            };
            lost += u32::from(error.tells_of_loss());
            let wait = self.policy.pause(failures, error.retry_after());
            failures += 1;
            if lost >= losses || failures >= self.tries {
                let (tries, last) = (failures, Box::new(error));
                return Err(CallError::RetriesExhausted { tries, last });
            }
            tracing::warn!(
                "cannot fetch or send {what}: {error}; next try in {:.0} s",
                wait.as_secs_f64().ceil()
            );
            tokio::select! {
                () = self.shutdown.requested() => return Err(CallError::Stopped),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// The file with this hash, no longer than `limit` bytes.
async fn fetch(
    request: impl Future<Output = rookery_client::Result<Body>>,
    hash: ContentHash,
    limit: u64,
) -> Result<Vec<u8>, CallError> {
    let file = answer::collect(request.await?, limit).await?;
    let got = ContentHash::of(&file);
    if got == hash {
        Ok(file)
    } else {
        Err(CallError::WrongHash {
            expected: hash,
            got,
        })
    }
}

#[cfg(test)]
mod tests;
