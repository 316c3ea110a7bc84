//! When to try a call again.
//!
//! A call ends well, is refused (trying again cannot help), is fatal (the user has to do
//! something), or is tried again after a pause. Every pause is announced, so that the program is
//! never silent for long. Where the coordinator was away, the first call that it answers again ends
//! the pauses of the others.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rookery_client::RetryPolicy;
use rookery_client::retry::chance;
use rookery_common::protocol::problem::Remedy;
use tokio::sync::Notify;

use crate::api::ApiError;
use crate::shutdown::{Phase, Shutdown};

/// Calls that could not reach the coordinator are tried again within this time after it answered another.
const GATHER: Duration = Duration::from_secs(5);

/// How a call ended that did not end well.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The coordinator refused, and would again.
    #[error("{0}")]
    Refused(ApiError),
    /// The user has to do something.
    #[error("{0}")]
    Fatal(ApiError),
    /// The program is ending.
    #[error("the program is ending")]
    Interrupted,
}

/// How a single call did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It may go well later.
    #[error("{0}")]
    Passing(ApiError),
    /// It would not.
    #[error(transparent)]
    Final(CallError),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        match error.remedy() {
            Remedy::Drop => Self::Final(CallError::Refused(error)),
            Remedy::Stop => Self::Final(CallError::Fatal(error)),
            Remedy::Retry => Self::Passing(error),
        }
    }
}

/// Whether a pause may end before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// As soon as the coordinator answers another call.
    UntilAnswered,
    /// It may not.
    Whole,
}

impl Pause {
    /// After this failure. A wish of the coordinator's, or of whatever stands before it, is obeyed.
    fn after(error: &ApiError) -> Self {
        match error {
            ApiError::Problem { .. } => Self::Whole,
            other if other.retry_after().is_some() => Self::Whole,
            _ => Self::UntilAnswered,
        }
    }
}

/// How a pause ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paused {
    /// Its time was over.
    Whole,
    /// The coordinator answered another call.
    Answered,
}

/// Tries calls until they end.
#[derive(Debug, Clone)]
pub struct Retry {
    policy: RetryPolicy,
    gather: Duration,
    /// How long an interrupted call may still be answered.
    grace: Duration,
    shutdown: Shutdown,
    /// Tells of every answer of the coordinator's.
    answered: Arc<Notify>,
}

impl Retry {
    /// Retries by this policy until the program ends.
    pub fn new(policy: RetryPolicy, shutdown: Shutdown) -> Self {
        Self {
            policy,
            gather: GATHER,
            grace: Duration::ZERO,
            shutdown,
            answered: Arc::default(),
        }
    }

    /// The same for a call whose answer is not to be lost: when its limit comes, it may still take this long.
    pub fn with_grace(&self, grace: Duration) -> Self {
        Self {
            grace,
            ..self.clone()
        }
    }

    /// Tries `call` until it succeeds, is refused or fatal, or `limit` comes. `what` says in the
    /// log what could not be done, and what becomes of games or what the user can do, for example "no
    /// job could be fetched; finished games are kept".
    ///
    /// # Errors
    ///
    /// [`CallError`] saying which of these it was.
    pub async fn until<T, F, A>(
        &self,
        limit: Phase,
        what: &str,
        mut call: F,
    ) -> Result<T, CallError>
    where
        F: FnMut() -> A,
        A: Future<Output = Result<T, ApiError>>,
    {
        let mut attempts = self.attempts(limit);
        loop {
            match self.once(limit, call()).await {
                Ok(value) => return Ok(value),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(error)) => {
                    let trouble = format!("{what}: {error}");
                    attempts.pause(&trouble, Some(&error)).await?;
                }
            }
        }
    }

    /// Makes a call once, unless `limit` comes.
    ///
    /// # Errors
    ///
    /// [`Failure`] saying whether trying again can help.
    pub async fn once<T>(
        &self,
        limit: Phase,
        call: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, Failure> {
        let interrupted = async {
            self.shutdown.reached(limit).await;
            tokio::time::sleep(self.grace).await;
        };
        let answer = tokio::select! {
            answer = call => answer,
            () = interrupted => return Err(Failure::Final(CallError::Interrupted)),
        };
        let ended = answer.map_err(Failure::from);
        if !matches!(ended, Err(Failure::Passing(_))) {
            self.answered.notify_waiters();
        }
        ended
    }

    /// Attempts that end when `limit` comes, at what is more than one call; [`until`](Self::until) makes those
    /// at one.
    pub const fn attempts(&self, limit: Phase) -> Attempts<'_> {
        Attempts {
            retry: self,
            limit,
            failures: 0,
            before: Paused::Whole,
        }
    }

    async fn wait(&self, time: Duration, pause: Pause, limit: Phase) -> Result<Paused, CallError> {
        let answered = async {
            match pause {
                Pause::Whole => std::future::pending::<()>().await,
                Pause::UntilAnswered => self.answered.notified().await,
            }
            tokio::time::sleep(self.gather.mul_f64(chance())).await;
        };
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(Paused::Whole),
            () = answered => Ok(Paused::Answered),
            () = self.shutdown.reached(limit) => Err(CallError::Interrupted),
        }
    }
}

/// Attempts at one thing, with a pause after each that fails.
#[derive(Debug)]
pub struct Attempts<'a> {
    retry: &'a Retry,
    limit: Phase,
    failures: u32,
    before: Paused,
}

impl Attempts<'_> {
    /// How many failed.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Tells the user of one that failed, `trouble` saying how, and pauses. `error` is what became of the
    /// call behind it, if a call is what failed.
    ///
    /// # Errors
    ///
    /// [`CallError::Interrupted`] when it is time to end.
    pub async fn pause(
        &mut self,
        trouble: &str,
        error: Option<&ApiError>,
    ) -> Result<(), CallError> {
        let asked = error.and_then(ApiError::retry_after);
        let time = self.retry.policy.pause(self.failures, asked);
        let seconds = time.as_secs_f64().ceil();
        tracing::warn!("{trouble}; next try in {seconds} s");
        let pause = match (self.before, error) {
            (Paused::Whole, Some(error)) => Pause::after(error),
            // Others are answered and this is not: its trouble is its own.
            (Paused::Answered, _) | (_, None) => Pause::Whole,
        };
        self.before = self.retry.wait(time, pause, self.limit).await?;
        self.failures += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rookery_common::protocol::{Problem, ProblemCode};

    use super::*;

    fn problem(code: ProblemCode) -> ApiError {
        ApiError::Problem {
            problem: Box::new(Problem::new(code, "test")),
            retry_after: None,
        }
    }

    /// A policy whose pauses do not hold tests up.
    const QUICK: RetryPolicy = RetryPolicy {
        first: Duration::from_micros(1),
        longest: Duration::from_micros(2),
        longest_asked: Duration::from_micros(2),
    };

    /// Pauses of hours, but for those that an answer ends.
    fn hours() -> Retry {
        let hour = Duration::from_secs(3600);
        let policy = RetryPolicy {
            first: hour,
            longest: hour,
            ..QUICK
        };
        Retry {
            gather: Duration::from_micros(2),
            ..Retry::new(policy, Shutdown::default())
        }
    }

    #[tokio::test]
    async fn retryable_problems_are_tried_until_they_pass() {
        let tries = AtomicU32::new(0);
        let retry = Retry::new(QUICK, Shutdown::default());
        let answer = retry
            .until(Phase::Stopping, "test", || async {
                match tries.fetch_add(1, Ordering::Relaxed) {
                    0..5 => Err(problem(ProblemCode::Unavailable)),
                    n => Ok(n),
                }
            })
            .await;
        assert_eq!(answer.unwrap(), 5);
    }

    #[tokio::test]
    async fn refusals_and_fatal_problems_are_tried_once() {
        let retry = Retry::new(QUICK, Shutdown::default());
        let call = async |code| {
            let tries = AtomicU32::new(0);
            let answer = retry
                .until(Phase::Stopping, "test", || async {
                    tries.fetch_add(1, Ordering::Relaxed);
                    Err::<(), _>(problem(code))
                })
                .await;
            (answer.unwrap_err(), tries.into_inner())
        };
        assert!(matches!(
            call(ProblemCode::ChunkRefused).await,
            (CallError::Refused(_), 1)
        ));
        assert!(matches!(
            call(ProblemCode::Unauthorized).await,
            (CallError::Fatal(_), 1)
        ));
    }

    #[tokio::test]
    async fn an_answer_to_one_call_ends_the_pauses_of_others_once() {
        let retry = hours();
        let tries = Arc::new(AtomicU32::new(0));
        let away = tokio::spawn({
            let (retry, tries) = (retry.clone(), Arc::clone(&tries));
            async move {
                let call = || async {
                    tries.fetch_add(1, Ordering::Relaxed);
                    Err::<(), _>(ApiError::Unreachable("away".into()))
                };
                retry.until(Phase::Stopping, "test", call).await
            }
        });
        let answer = async || {
            let call = || async { Ok::<(), ApiError>(()) };
            retry.until(Phase::Stopping, "test", call).await.unwrap();
        };
        let woken = async {
            while tries.load(Ordering::Relaxed) < 2 {
                answer().await;
                tokio::task::yield_now().await;
            }
        };
        let patience = Duration::from_secs(240);
        tokio::time::timeout(patience, woken).await.unwrap();
        // It failed while another was answered, so that it now waits for its hours.
        for _ in 0..20 {
            answer().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(tries.load(Ordering::Relaxed), 2);
        away.abort();
    }

    #[tokio::test]
    async fn only_what_could_not_reach_the_coordinator_is_tried_again_early() {
        let retry = hours();
        let away = ApiError::Unreachable("away".into());
        for (error, answers, tried) in [(Some(&away), u32::MAX, 1), (None, 20, 0)] {
            let mut attempts = retry.attempts(Phase::Stopping);
            let others = async {
                for _ in 0..answers {
                    retry.answered.notify_waiters();
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                paused = attempts.pause("test", error) => paused.unwrap(),
                () = others => {}
            }
            assert_eq!(attempts.failures(), tried, "{error:?}");
        }
    }

    #[test]
    fn only_pauses_without_a_request_of_the_coordinator_end_early() {
        let unexpected = |retry_after| ApiError::Unexpected {
            status: 502,
            detail: "test".into(),
            retry_after,
        };
        for error in [ApiError::Unreachable("test".into()), unexpected(None)] {
            assert_eq!(Pause::after(&error), Pause::UntilAnswered, "{error}");
        }
        let asked = unexpected(Some(Duration::from_secs(7)));
        for error in [asked, problem(ProblemCode::Unavailable)] {
            assert_eq!(Pause::after(&error), Pause::Whole, "{error}");
        }
    }

    #[tokio::test]
    async fn a_call_with_grace_is_answered_although_the_program_ends() {
        let shutdown = Shutdown::default();
        let retry = Retry::new(QUICK, shutdown.clone());
        let call = async || {
            shutdown.advance(Phase::Finishing);
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        };
        let answer = retry.with_grace(Duration::from_secs(60));
        let answer = answer.once(Phase::Finishing, call()).await;
        answer.unwrap();
        let never = std::future::pending::<Result<(), ApiError>>();
        let answer = retry.once(Phase::Finishing, never).await;
        assert!(matches!(
            answer,
            Err(Failure::Final(CallError::Interrupted))
        ));
    }

    #[tokio::test]
    async fn the_end_of_the_program_interrupts_a_pause() {
        let shutdown = Shutdown::default();
        let retry = Retry::new(RetryPolicy::default(), shutdown.clone());
        let call = retry.until(Phase::Finishing, "test", || async {
            shutdown.advance(Phase::Finishing);
            Err::<(), _>(problem(ProblemCode::Internal))
        });
        assert!(matches!(call.await, Err(CallError::Interrupted)));
    }
}
