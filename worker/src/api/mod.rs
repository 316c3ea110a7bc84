//! The coordinator as the worker sees it: one method for each call, typed in and out.
//!
//! [`Client`] is a stub: cheap to clone, without state but its token and connection pool. It does
//! not retry; [`Retry`](crate::retry::Retry) does, by what [`ApiError`] says. Every answer is read
//! under a size limit, as the coordinator may be anyone's.

mod address;
mod answer;
mod error;
#[cfg(test)]
mod tests;

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use rookery_common::ids::{ContentHash, JobId, RunName};
use rookery_common::protocol::jobs::{ChunkReceipt, Heartbeat, HeartbeatReply, Job, JobRequest};
use rookery_common::protocol::networks::{NetworkInfo, NetworkName};
use rookery_common::protocol::people::{NewToken, NewUser};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::upload_time;
use rookery_common::signing::{RunKeyInfo, Signature};

pub use address::{Server, ServerError};
pub use error::ApiError;

use crate::config::Token;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long an answer may stay silent. Counted from the beginning of the request, so it is not for
/// uploads.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// What the coordinator gave when asked for a job.
#[derive(Debug)]
pub enum JobOffer {
    /// A lease.
    Job(Box<Job>),
    /// Nothing to do; ask again after this time if it is given.
    Nothing(Option<Duration>),
}

/// The coordinator's API.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    /// For uploads, whose time depends on their size.
    uploads: reqwest::Client,
    /// For files, which may be somewhere else. What else a coordinator is asked is never sent on: elsewhere the token
    /// does not go along.
    files: reqwest::Client,
    server: Server,
    token: Option<Token>,
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, ApiError>;

impl Client {
    /// A client of this coordinator, without a token yet.
    ///
    /// # Errors
    ///
    /// If the system's TLS or resolver cannot be set up.
    pub fn new(server: Server) -> anyhow::Result<Self> {
        Self::with_read_timeout(server, READ_TIMEOUT)
    }

    fn with_read_timeout(server: Server, read: Duration) -> anyhow::Result<Self> {
        let builder = || {
            reqwest::Client::builder()
                .user_agent(concat!("rookery-worker/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
        };
        Ok(Self {
            http: builder()
                .redirect(Policy::none())
                .read_timeout(read)
                .build()?,
            uploads: builder().redirect(Policy::none()).build()?,
            files: builder().read_timeout(read).build()?,
            server,
            token: None,
        })
    }

    /// The same client with a token.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// The coordinator's address.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Registers a contributor.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if the name is taken.
    pub async fn register(&self, user: &NewUser) -> Result<NewToken> {
        answer::json(
            self.send(self.request(Method::POST, "users").json(user))
                .await?,
        )
        .await
    }

    /// Asks for a job.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn take_job(&self, request: &JobRequest) -> Result<JobOffer> {
        let response = self
            .send(self.request(Method::POST, "jobs").json(request))
            .await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(JobOffer::Nothing(answer::retry_after(&response)));
        }
        answer::json(response).await.map(JobOffer::Job)
    }

    /// Extends a lease.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if the lease has ended.
    pub async fn heartbeat(&self, job: JobId, beat: &Heartbeat) -> Result<HeartbeatReply> {
        let request = self
            .request(Method::POST, &format!("jobs/{job}/heartbeat"))
            .json(beat);
        answer::json(self.send(request).await?).await
    }

    /// Gives a lease back.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn give_back(&self, job: JobId) -> Result<()> {
        self.send(self.request(Method::DELETE, &format!("jobs/{job}")))
            .await
            .map(drop)
    }

    /// Uploads a chunk; the same bytes may be sent any number of times and count once.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if the chunk is refused.
    pub async fn upload(&self, hash: ContentHash, bytes: Vec<u8>) -> Result<ChunkReceipt> {
        let request = self
            .request_by(&self.uploads, Method::PUT, &format!("chunks/{hash}"))
            .timeout(upload_time(bytes.len()))
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(bytes);
        answer::json(self.send(request).await?).await
    }

    /// What the coordinator knows of a network, named by number, `best` or SHA-256.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if there is no such network.
    pub async fn network(&self, name: NetworkName, run: Option<&RunName>) -> Result<NetworkInfo> {
        // Neither holds a character that has to be escaped.
        let path = match run {
            Some(run) => format!("networks/{name}?run={run}"),
            None => format!("networks/{name}"),
        };
        answer::json(self.send(self.request(Method::GET, &path)).await?).await
    }

    /// The coordinator's runs.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn runs(&self) -> Result<Vec<RunInfo>> {
        answer::json(self.send(self.request(Method::GET, "runs")).await?).await
    }

    /// The keys that a run's networks were signed with, oldest first.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if there is no such run.
    pub async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>> {
        let path = format!("runs/{run}/keys");
        answer::json(self.send(self.request(Method::GET, &path)).await?).await
    }

    /// The signature of a network by its run's key.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if it is not signed.
    pub async fn network_signature(&self, hash: ContentHash, run: &RunName) -> Result<Signature> {
        let path = format!("networks/{hash}/signature?run={run}");
        let response = self.send(self.request(Method::GET, &path)).await?;
        answer::text(response).await.map(Signature)
    }

    /// Begins to download a network's file at byte `offset`. The answer may be the whole file
    /// (200) or the rest (206), and come from another host, which does not get the token. What an
    /// address with a hash names never changes, so there is no `If-Range`: a store that the
    /// coordinator sends us to has entity tags of its own.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn network_file(&self, hash: ContentHash, offset: u64) -> Result<Response> {
        let path = format!("networks/{hash}/file");
        let mut request = self.request_by(&self.files, Method::GET, &path);
        if offset > 0 {
            request = request.header(header::RANGE, format!("bytes={offset}-"));
        }
        self.send(request).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_by(&self.http, method, path)
    }

    fn request_by(&self, http: &reqwest::Client, method: Method, path: &str) -> RequestBuilder {
        let request = http.request(method, self.server.api(path));
        match &self.token {
            Some(token) => request.bearer_auth(token.reveal()),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let response = request
            .send()
            .await
            .map_err(|error| ApiError::unreachable(&error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(answer::problem(response).await)
        }
    }
}
