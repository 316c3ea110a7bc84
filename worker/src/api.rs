//! The coordinator as the worker sees it: one method for each call, typed in and out.
//!
//! [`Client`] is a stub, cheap to clone. It does not retry; [`Retry`](crate::retry::Retry) does, by what [`ApiError`]
//! says.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, RequestBuilder, StatusCode};
use rookery_client::{Body, Connection, answer, ask, send};
use rookery_common::ids::{ContentHash, JobId, RunName};
use rookery_common::protocol::jobs::{ChunkReceipt, Heartbeat, HeartbeatReply, Job, JobRequest};
use rookery_common::protocol::networks::{NetworkInfo, NetworkName};
use rookery_common::protocol::people::{ContributorDetail, NewToken, NewUser};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::trust::TrustInfo;
use rookery_common::protocol::user_name::in_url;
use rookery_common::signing::{RunKeyInfo, Signature};

pub use rookery_client::{ApiError, Result, Server, Token};

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
pub struct Client(Connection);

impl Client {
    /// A client of this coordinator, without a token yet.
    ///
    /// # Errors
    ///
    /// If the system's TLS or resolver cannot be set up.
    pub fn new(server: Server) -> anyhow::Result<Self> {
        let program = concat!("rookery-worker/", env!("CARGO_PKG_VERSION"));
        Ok(Self(Connection::new(server, program)?))
    }

    /// The same client with a token.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        Self(self.0.with_token(token))
    }

    /// The coordinator's address.
    pub const fn server(&self) -> &Server {
        self.0.server()
    }

    /// Registers a contributor.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if the name is taken.
    pub async fn register(&self, user: &NewUser) -> Result<NewToken> {
        ask(self.request(Method::POST, "users").json(user)).await
    }

    /// Asks for a job.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn take_job(&self, request: &JobRequest) -> Result<JobOffer> {
        let response = send(self.request(Method::POST, "jobs").json(request)).await?;
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
        let path = format!("jobs/{job}/heartbeat");
        ask(self.request(Method::POST, &path).json(beat)).await
    }

    /// Gives a lease back.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn give_back(&self, job: JobId) -> Result<()> {
        let path = format!("jobs/{job}");
        send(self.request(Method::DELETE, &path)).await.map(drop)
    }

    /// Uploads a chunk; the same bytes may be sent any number of times and count once.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if the chunk is refused.
    pub async fn upload(&self, hash: ContentHash, bytes: Bytes) -> Result<ChunkReceipt> {
        let path = format!("chunks/{hash}");
        ask(self.0.upload(&path, &[], bytes)).await
    }

    /// What the coordinator knows of a network, named by number, `best` or SHA-256.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if there is no such network.
    pub async fn network(&self, name: NetworkName, run: Option<&RunName>) -> Result<NetworkInfo> {
        let query = Vec::from_iter(run.map(|run| ("run", run.to_string())));
        let path = format!("networks/{name}");
        ask(self.0.request(Method::GET, &path, &query)).await
    }

    /// The coordinator's runs.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn runs(&self) -> Result<Vec<RunInfo>> {
        ask(self.request(Method::GET, "runs")).await
    }

    /// How far the coordinator trusts the token's account.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if the token is for audits alone.
    pub async fn trust(&self) -> Result<TrustInfo> {
        ask(self.request(Method::GET, "trust")).await
    }

    /// What was counted of a contributor, in all runs.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if there is no such contributor.
    pub async fn contributor(&self, name: &str) -> Result<ContributorDetail> {
        let path = format!("contributors/{}", in_url(name));
        ask(self.request(Method::GET, &path)).await
    }

    /// The keys that a run's networks were signed with, oldest first.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if there is no such run.
    pub async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>> {
        let path = format!("runs/{run}/keys");
        ask(self.request(Method::GET, &path)).await
    }

    /// The signature of a network by its run's key.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if it is not signed.
    pub async fn network_signature(&self, hash: ContentHash, run: &RunName) -> Result<Signature> {
        let path = format!("networks/{hash}/signature");
        let query = [("run", run.to_string())];
        let response = send(self.0.request(Method::GET, &path, &query)).await?;
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
    pub async fn network_file(&self, hash: ContentHash, offset: u64) -> Result<Body> {
        let path = format!("networks/{hash}/file");
        self.0.download(&path, &[], offset).await
    }

    /// Makes sure that the coordinator takes the token.
    ///
    /// # Errors
    ///
    /// [`ApiError`], for example if it was revoked.
    pub async fn check_token(&self) -> Result<()> {
        send(self.request(Method::GET, "tokens")).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.0.request(method, path, &[])
    }
}
