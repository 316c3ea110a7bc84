//! The API as a test calls it.

use anyhow::{Context, bail};
use reqwest::{Method, Response, StatusCode};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Backend, ChunkReceipt, Job, JobRequest};
use rookery_common::protocol::matches::MatchInfo;
use rookery_common::protocol::networks::{NetworkInfo, NetworkReceipt};
use rookery_common::protocol::people::{NewToken, NewUser};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::{PROTOCOL_VERSION, Problem};
use serde::de::DeserializeOwned;

use crate::player::Chunk;

/// A caller of one coordinator, with or without a token.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// An answer: what was asked for, or a problem.
pub type Answer<T> = Result<T, Problem>;

impl Client {
    /// A caller without a token.
    pub fn new(url: &str) -> Self {
        Self {
            http: reqwest::Client::new(),
            url: url.to_owned(),
            token: None,
        }
    }

    /// The same caller with a token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// The token, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Registers a contributor and returns a caller with the token.
    ///
    /// # Errors
    ///
    /// If registration fails.
    pub async fn register(&self, name: &str) -> anyhow::Result<Self> {
        let user = NewUser {
            name: name.to_owned(),
            machine: "test".to_owned(),
            invitation: None,
        };
        let answer: Answer<NewToken> = self.json(Method::POST, "/users", Some(&user)).await?;
        let token = answer.map_err(|problem| anyhow::anyhow!("{problem}"))?;
        Ok(self.with_token(&token.token))
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}/api/v1{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request with any body.
    ///
    /// # Errors
    ///
    /// If the coordinator does not answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> anyhow::Result<Response> {
        let request = self.request(method, path).body(body);
        request
            .send()
            .await
            .with_context(|| format!("{path} was not answered"))
    }

    /// Sends a JSON request and reads the answer.
    ///
    /// # Errors
    ///
    /// If the coordinator does not answer, or answers neither `T` nor a problem.
    pub async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl serde::Serialize + Sync)>,
    ) -> anyhow::Result<Answer<T>> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        read(request.send().await?).await
    }

    /// Gets something that must be there.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let answer = self.json(Method::GET, path, None::<&()>).await?;
        answer.map_err(|problem| anyhow::anyhow!("GET {path}: {problem}"))
    }

    /// Asks for a job; none if there is nothing to do.
    ///
    /// # Errors
    ///
    /// If the coordinator answers something else.
    pub async fn job(&self) -> anyhow::Result<Option<Job>> {
        let request = JobRequest {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            worker: "test".to_owned(),
            backend: Backend::Uniform,
            run: None,
            concurrent_games: 8,
            evals_per_second: 0.0,
            programs: false,
            solver: true,
        };
        let answer = self
            .request(Method::POST, "/jobs")
            .json(&request)
            .send()
            .await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        match read(answer).await? {
            Ok(job) => Ok(Some(job)),
            Err(problem) => bail!("no job: {problem}"),
        }
    }

    /// Uploads a chunk.
    ///
    /// # Errors
    ///
    /// If the coordinator answers neither a receipt nor a problem.
    pub async fn upload(&self, chunk: &Chunk) -> anyhow::Result<Answer<ChunkReceipt>> {
        let path = format!("/chunks/{}", chunk.hash);
        read(self.send(Method::PUT, &path, chunk.bytes.clone()).await?).await
    }

    /// Submits a network.
    ///
    /// # Errors
    ///
    /// If the coordinator answers neither a receipt nor a problem.
    pub async fn submit(&self, run: &str, bytes: &[u8]) -> anyhow::Result<Answer<NetworkReceipt>> {
        let path = format!("/networks/{}?run={run}", ContentHash::of(bytes));
        read(self.send(Method::PUT, &path, bytes.to_vec()).await?).await
    }

    /// The run of this name.
    ///
    /// # Errors
    ///
    /// If there is no such run.
    pub async fn run(&self, name: &str) -> anyhow::Result<RunInfo> {
        let runs: Vec<RunInfo> = self.get("/runs").await?;
        runs.into_iter()
            .find(|run| run.name.as_str() == name)
            .context("the run is listed")
    }

    /// The networks of a run.
    ///
    /// # Errors
    ///
    /// If they cannot be listed.
    pub async fn networks(&self, run: &str) -> anyhow::Result<Vec<NetworkInfo>> {
        self.get(&format!("/networks?run={run}")).await
    }

    /// The matches of a run.
    ///
    /// # Errors
    ///
    /// If they cannot be listed.
    pub async fn matches(&self, run: &str) -> anyhow::Result<Vec<MatchInfo>> {
        self.get(&format!("/matches?run={run}")).await
    }
}

async fn read<T: DeserializeOwned>(answer: Response) -> anyhow::Result<Answer<T>> {
    let status = answer.status();
    let text = answer.text().await?;
    if status.is_success() {
        // An answer without a body says nothing more, as `()` does.
        let text = if text.is_empty() { "null" } else { &text };
        let value = serde_json::from_str(text).with_context(|| format!("{status}: {text}"))?;
        Ok(Ok(value))
    } else {
        let problem = serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))?;
        Ok(Err(problem))
    }
}
