//! The name of the request that is being answered, for problems to carry it.

use std::future::Future;

tokio::task_local! {
    /// The name of the request that is being answered.
    static CURRENT: String;
}

/// The name of the request that is being answered, if one is.
pub(super) fn current_request() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Answers a request under its name.
pub(super) async fn within<T>(id: String, answer: impl Future<Output = T>) -> T {
    CURRENT.scope(id, answer).await
}
