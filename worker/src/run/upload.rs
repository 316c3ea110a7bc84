//! Uploading: chunk after chunk out of the spool, each as often as it takes. One that does not go
//! through holds up no other.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{ChunkReceipt, WorkKind};
use rookery_common::text::quantity;

use super::{Event, Shared};
use crate::api::ApiError;
use crate::retry::{CallError, Failure};
use crate::shutdown::Phase;
use crate::spool::{PendingChunk, SpoolError};

/// How long the end of the program waits for uploads, by how it ends.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_STOPPING: Duration = Duration::from_secs(10);
/// After trouble with the spool's files.
const PAUSE: Duration = Duration::from_secs(10);

/// Whether everything was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    /// It was.
    All,
    /// Something is left for the next start.
    Not,
}

/// Uploads what comes into the spool, for as long as the program plays.
pub(super) async fn serve(shared: Shared) {
    loop {
        match send_all(&shared).await {
            Ok(()) => shared.spool.ready().await,
            Err(UploadError::Call(Failure::Final(CallError::Interrupted))) => return,
            Err(UploadError::Call(Failure::Final(CallError::Fatal(error)))) => {
                drop(shared.events.send(Event::Fatal(error)));
                return;
            }
            Err(error) => {
                tracing::error!("RK-0516: finished games could not be uploaded: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Uploads what is left at the end of the program, as long as patience lasts.
pub(super) async fn drain(shared: &Shared) -> Drained {
    let patience = if shared.shutdown.has_reached(Phase::Stopping) {
        PATIENCE_STOPPING
    } else {
        PATIENCE
    };
    match tokio::time::timeout(patience, send_all(shared)).await {
        Ok(Ok(())) => Drained::All,
        Ok(Err(error)) => {
            tracing::warn!(
                "RK-0516: finished games could not be uploaded before the end: {error}; the next start uploads them"
            );
            Drained::Not
        }
        Err(_) => Drained::Not,
    }
}

#[derive(Debug, thiserror::Error)]
enum UploadError {
    #[error(transparent)]
    Call(#[from] Failure),
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

/// Sends every chunk. Retrying ends at the second signal; after it, each chunk has one attempt until one fails.
async fn send_all(shared: &Shared) -> Result<(), UploadError> {
    let mut attempts = shared.retry.attempts(Phase::Stopping);
    let mut failing = BTreeSet::new();
    while let Some(chunk) = shared.spool.next_pending().await? {
        let Err(trouble) = send(shared, &chunk).await else {
            failing.remove(&chunk.hash);
            // Pauses stay as long as they are while others have yet to go through.
            if failing.is_empty() {
                attempts = shared.retry.attempts(Phase::Stopping);
            }
            continue;
        };
        // The trouble may be this chunk's own.
        shared.spool.defer(chunk.hash);
        let is_new = failing.insert(chunk.hash);
        let error = match &trouble {
            UploadError::Spool(_) if is_new => continue,
            UploadError::Spool(_) => None,
            UploadError::Call(Failure::Passing(error)) => Some(error),
            UploadError::Call(Failure::Final(_)) => return Err(trouble),
        };
        if shared.shutdown.has_reached(Phase::Stopping) {
            return Err(trouble);
        }
        let words = format!("a chunk could not be uploaded and is kept: {trouble}");
        let paused = attempts.pause(&words, error).await;
        paused.map_err(Failure::Final)?;
    }
    Ok(())
}

/// Makes one attempt to send a chunk.
async fn send(shared: &Shared, chunk: &PendingChunk) -> Result<(), UploadError> {
    let upload = async {
        let answer = shared.client.upload(chunk.hash, chunk.bytes.clone()).await;
        shared.status.note_upload(&answer);
        answer
    };
    let answer = if shared.shutdown.has_reached(Phase::Stopping) {
        upload.await.map_err(Failure::from)
    } else {
        shared.retry.once(Phase::Stopping, upload).await
    };
    settle(shared, chunk, answer).await
}

/// Notes the coordinator's answer for a chunk.
async fn settle(
    shared: &Shared,
    chunk: &PendingChunk,
    answer: Result<ChunkReceipt, Failure>,
) -> Result<(), UploadError> {
    match answer {
        Ok(receipt) => {
            shared.spool.accept(chunk.job, chunk.hash).await?;
            shared.status.count_upload(chunk.kind, &receipt);
            log_upload(&chunk.hash, chunk.kind, chunk.bytes.len(), &receipt);
        }
        Err(Failure::Final(CallError::Refused(error)))
            if error.code() == Some(ProblemCode::NotFound) =>
        {
            let folder = shared.spool.postpone(chunk.job).await?;
            warn_of_unknown_job(&error, &folder);
            return Ok(());
        }
        Err(Failure::Final(CallError::Refused(error))) => {
            let why = error.to_string();
            let file = shared.spool.refuse(chunk.job, chunk.hash, why).await?;
            warn_of_refusal(&error, &file);
        }
        Err(other) => return Err(other.into()),
    }
    drop(shared.events.send(Event::Settled(chunk.job)));
    Ok(())
}

/// Logs an acknowledged chunk. Audits come in bursts: their chunks are details.
fn log_upload(hash: &ContentHash, kind: WorkKind, bytes: usize, receipt: &ChunkReceipt) {
    let known = if receipt.duplicate {
        " (there already)"
    } else {
        ""
    };
    let positions = quantity(receipt.positions, "position");
    tracing::debug!(chunk = %hash, bytes, "uploaded {} of {positions}{known}", kind.name());
    if kind != WorkKind::Audit {
        let games = quantity(receipt.games, "game");
        tracing::info!("uploaded: {games}, {positions}{known}");
    }
}

/// Tells of a chunk whose job the coordinator does not know, or gave to another account.
fn warn_of_unknown_job(error: &ApiError, folder: &Path) {
    let folder = folder.display();
    tracing::error!(
        "RK-0503: a chunk could not be uploaded: {error}; its games stay in {folder} and are offered again at the \
         next start: if another coordinator or account gave the job, run with that --server and token"
    );
}

/// Tells of a chunk that the coordinator did not take and that is kept as `file`.
fn warn_of_refusal(error: &ApiError, file: &Path) {
    let file = file.display();
    if error.code() == Some(ProblemCode::LeaseEnded) {
        tracing::warn!(
            "RK-0505: a chunk came too late and is kept as {file}: its games were given out again meanwhile"
        );
    } else {
        tracing::error!("RK-0504: a chunk was refused and kept as {file}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use rookery_client::testing::Answer;
    use rookery_common::protocol::Problem;

    use super::super::testing::Fixture;
    use super::*;

    #[tokio::test]
    async fn a_chunk_whose_answer_cannot_be_noted_holds_up_no_other() {
        for phase in [Phase::Running, Phase::Stopping] {
            let receipt = Answer::json(&ChunkReceipt {
                hash: ContentHash::of(b"chunk"),
                sequence: 1,
                games: 1,
                positions: 1,
                duplicate: false,
            });
            let first = OnceLock::new();
            let mut fixture = Fixture::new(move |request| {
                if *first.get_or_init(|| request.line.clone()) == request.line {
                    Answer::problem(ProblemCode::ChunkRefused)
                } else {
                    receipt.clone()
                }
            })
            .await;
            let shared = fixture.shared.clone();
            // What is refused cannot be put aside.
            std::fs::write(fixture.folder.path().join("spool/refused"), b"").unwrap();
            for games in [1, 2] {
                let job = crate::spool::testing::job(games);
                fixture.begin(&job, 1).await;
                shared.spool.cut(job.id).await.unwrap();
            }
            shared.shutdown.advance(phase);
            let settled =
                async { while !matches!(fixture.inbox.recv().await, Some(Event::Settled(_))) {} };
            tokio::select! {
                // The second signal ends it.
                sent = send_all(&shared) => assert!(sent.is_err()),
                () = settled => {}
            }
            assert_eq!(shared.status.uploaded().chunks, 1);
        }
    }

    /// What the log says when `tell` hears of a chunk that is refused with this code.
    fn told(code: ProblemCode, tell: fn(&ApiError, &Path)) -> String {
        let log = tempfile::NamedTempFile::new().unwrap();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(log.reopen().unwrap())
            .finish();
        let error = ApiError::Problem {
            problem: Box::new(Problem::new(code, "why")),
            retry_after: None,
        };
        tracing::subscriber::with_default(subscriber, || {
            tell(&error, Path::new("a.chunk"));
        });
        std::fs::read_to_string(log.path()).unwrap()
    }

    #[test]
    fn a_chunk_that_came_too_late_is_no_error() {
        let late = told(ProblemCode::LeaseEnded, warn_of_refusal);
        assert!(late.contains("WARN"), "{late}");
        assert!(late.contains("too late and is kept as a.chunk"), "{late}");
        let bad = told(ProblemCode::ChunkRefused, warn_of_refusal);
        assert!(bad.contains("ERROR") && bad.contains("why"), "{bad}");
    }

    #[test]
    fn a_chunk_of_an_unknown_job_is_reported_as_kept() {
        let unknown = told(ProblemCode::NotFound, warn_of_unknown_job);
        assert!(unknown.contains("stay in a.chunk"), "{unknown}");
        assert!(unknown.contains("next start"), "{unknown}");
    }
}
