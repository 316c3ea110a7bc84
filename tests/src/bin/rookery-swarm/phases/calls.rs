//! The calls that workers make, and what the answers mean.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::jobs::{
    Backend, ChunkReceipt, Heartbeat, HeartbeatReply, Job, JobRequest,
};
use rookery_common::protocol::{PROTOCOL_VERSION, Problem, ProblemCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PATIENCE;
use crate::book::Book;
use crate::games::{Made, Pool};
use crate::http::{Call, Connection, Failure, Reply};

/// What all tasks share.
pub(crate) struct Ground {
    pub(crate) address: SocketAddr,
    pub(crate) run: RunName,
    /// Each contributor's `Authorization` header.
    pub(crate) contributors: Vec<HeaderValue>,
    pub(crate) book: Book,
    /// Games to make chunks of; without them every job is played when its chunk is asked for.
    pub(super) pool: Option<Pool>,
    /// Answers so far, for the progress line.
    pub(super) answers: AtomicU64,
    /// Requests without an answer, or with one that says to try again.
    pub(super) failures: AtomicU64,
}

/// Why a request did not get what it asked for.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There was no answer.
    Failed(Failure),
    /// There is nothing to do.
    Nothing(Option<Duration>),
    /// A problem.
    Problem(StatusCode, Option<ProblemCode>, Option<Duration>),
    /// An answer that cannot be read.
    Unreadable,
}

impl Refusal {
    fn of(reply: &Reply) -> Self {
        if reply.status == StatusCode::NO_CONTENT {
            return Self::Nothing(reply.retry_after);
        }
        let problem: Option<Problem> = serde_json::from_slice(&reply.body).ok();
        Self::Problem(
            reply.status,
            problem.map(|problem| problem.code),
            reply.retry_after,
        )
    }

    /// Whether the same request may succeed later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Failed(_) | Self::Nothing(_) => true,
            Self::Problem(status, ..) => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Unreadable => false,
        }
    }

    /// How long the coordinator asks to wait.
    pub(crate) const fn wait(&self) -> Option<Duration> {
        match self {
            Self::Nothing(wait) | Self::Problem(_, _, wait) => *wait,
            Self::Failed(_) | Self::Unreadable => None,
        }
    }

    /// The problem's code.
    pub(crate) const fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem(_, code, _) => *code,
            _ => None,
        }
    }

    /// The name under which it is counted.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Failed(failure) => failure.name().to_owned(),
            Self::Nothing(_) => "204".to_owned(),
            Self::Problem(status, code, _) => {
                let code = code.map_or("no-problem", ProblemCode::as_str);
                format!("{} {code}", status.as_u16())
            }
            Self::Unreadable => "unreadable".to_owned(),
        }
    }

    /// The same, if it is an error; that there is nothing to do is not one.
    pub(crate) fn error(&self) -> Option<String> {
        match self {
            Self::Nothing(_) => None,
            _ => Some(self.label()),
        }
    }

    /// The same of an answer.
    pub(crate) fn error_of<T>(answer: &Result<T, Self>) -> Option<String> {
        answer.as_ref().err().and_then(Self::error)
    }
}

impl Ground {
    /// A chunk with all games of a job.
    ///
    /// # Errors
    ///
    /// If the job cannot be played.
    pub(crate) fn chunk(&self, job: &Job) -> anyhow::Result<Made> {
        match &self.pool {
            Some(pool) => pool.chunk(job),
            // It takes a moment, in which the load must go on.
            None => tokio::task::block_in_place(|| Made::played(job)),
        }
    }

    /// A connection of its own.
    pub(crate) fn connection(&self) -> anyhow::Result<Connection> {
        Connection::new(self.address)
    }

    /// Asks for a job, and notes it.
    pub(crate) async fn lease(
        &self,
        connection: &mut Connection,
        contributor: usize,
        worker: &str,
    ) -> Result<Job, Refusal> {
        let call = self.lease_call(contributor, worker);
        let job: Job = self.call(connection, &call).await?;
        self.book.leased(&job, contributor);
        Ok(job)
    }

    /// Asks for a job until there is one, and notes it.
    pub(super) async fn lease_surely(
        &self,
        connection: &mut Connection,
        contributor: usize,
        worker: &str,
    ) -> anyhow::Result<Job> {
        let call = self.lease_call(contributor, worker);
        let job: Job = self.insist(connection, &call).await?;
        self.book.leased(&job, contributor);
        Ok(job)
    }

    fn lease_call(&self, contributor: usize, worker: &str) -> Call {
        let request = JobRequest {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            worker: worker.to_owned(),
            backend: Backend::Uniform,
            run: Some(self.run.clone()),
            concurrent_games: 1,
            // Not known: so its jobs are as large as the run says.
            evals_per_second: 0.0,
            programs: false,
            solver: true,
        };
        Call::json(
            Method::POST,
            "/jobs",
            &self.contributors[contributor],
            json(&request),
        )
    }

    /// Keeps a job.
    pub(crate) async fn heartbeat(
        &self,
        connection: &mut Connection,
        contributor: usize,
        job: JobId,
    ) -> Result<HeartbeatReply, Refusal> {
        self.call(connection, &self.heartbeat_call(contributor, job))
            .await
    }

    /// The request that keeps a job.
    pub(crate) fn heartbeat_call(&self, contributor: usize, job: JobId) -> Call {
        let path = format!("/jobs/{job}/heartbeat");
        let beat = Heartbeat::default();
        Call::json(
            Method::POST,
            &path,
            &self.contributors[contributor],
            json(&beat),
        )
    }

    /// Uploads an honest chunk, and notes what came of it.
    pub(crate) async fn upload(
        &self,
        connection: &mut Connection,
        contributor: usize,
        made: &Made,
    ) -> Result<ChunkReceipt, Refusal> {
        self.book
            .with(|accounts| accounts.unanswered.insert(made.hash));
        let receipt = self.put(connection, contributor, made).await?;
        self.book.acknowledged(receipt.clone());
        Ok(receipt)
    }

    /// Uploads a chunk.
    pub(crate) async fn put(
        &self,
        connection: &mut Connection,
        contributor: usize,
        made: &Made,
    ) -> Result<ChunkReceipt, Refusal> {
        self.call(connection, &self.upload_call(contributor, made))
            .await
    }

    /// The request that uploads a chunk.
    pub(crate) fn upload_call(&self, contributor: usize, made: &Made) -> Call {
        let path = format!("/chunks/{}", made.hash);
        Call::file(
            Method::PUT,
            &path,
            &self.contributors[contributor],
            made.bytes.clone(),
        )
    }

    /// Sends a request again and again until it succeeds.
    ///
    /// # Errors
    ///
    /// If it is refused for good, or does not succeed in time.
    pub(crate) async fn insist<T: DeserializeOwned>(
        &self,
        connection: &mut Connection,
        call: &Call,
    ) -> anyhow::Result<T> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.call(connection, call).await {
                Ok(value) => return Ok(value),
                Err(refusal) if refusal.passes() && Instant::now() < until => {
                    let wait = refusal.wait().unwrap_or(Duration::from_millis(100));
                    tokio::time::sleep(wait).await;
                }
                Err(refusal) => anyhow::bail!("the coordinator refused: {}", refusal.label()),
            }
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        connection: &mut Connection,
        call: &Call,
    ) -> Result<T, Refusal> {
        let answer = connection.call(call).await.map_err(Refusal::Failed);
        let refusal = match answer {
            Ok(reply) if reply.status == StatusCode::OK => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                return serde_json::from_slice(&reply.body).map_err(|_| Refusal::Unreadable);
            }
            Ok(reply) => Refusal::of(&reply),
            Err(refusal) => refusal,
        };
        let count = if refusal.passes() {
            &self.failures
        } else {
            &self.answers
        };
        count.fetch_add(1, Ordering::Relaxed);
        Err(refusal)
    }
}

fn json<T: Serialize>(value: &T) -> Bytes {
    // Requests are plain structures: writing them cannot fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}
