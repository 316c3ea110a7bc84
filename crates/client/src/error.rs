//! How a call fails, and what is to be done about it.

use std::time::Duration;

use rookery_common::protocol::problem::Remedy;
use rookery_common::protocol::{Problem, ProblemCode};

use crate::proxy::{Proxies, Proxy};

/// A call to the coordinator that failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no way: no network, no coordinator there.
    #[error("RK-0101: coordinator not reachable ({0})")]
    Unreachable(String),
    /// No answer came: a connection that broke, or stayed silent.
    #[error("RK-0102: no answer from the coordinator ({0})")]
    Unanswered(String),
    /// The coordinator answered with a problem.
    #[error("the coordinator says: {problem}")]
    Problem {
        /// What it says.
        problem: Box<Problem>,
        /// Its `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// An answer that did not come from a coordinator: from a proxy, a captive portal or another
    /// program.
    #[error("RK-0103: unexpected answer, status {status}: {detail}")]
    Unexpected {
        /// The HTTP status.
        status: u16,
        /// What was unexpected.
        detail: String,
        /// Its `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// An answer that is not what the protocol says, or what a newer version of it does.
    #[error("RK-0107: the answer is not what this version understands ({0})")]
    NotUnderstood(String),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ApiError>;

impl ApiError {
    /// Whether the coordinator may have done what it was asked for all the same.
    pub const fn may_be_done(&self) -> bool {
        match self {
            Self::Unreachable(_) => false,
            Self::Unanswered(_) | Self::Unexpected { .. } | Self::NotUnderstood(_) => true,
            Self::Problem { problem, .. } => problem.status >= 500,
        }
    }

    /// An answer that something other than a coordinator gave; `what` names it.
    pub fn stranger(status: u16, what: &str, retry_after: Option<Duration>) -> Self {
        Self::Unexpected {
            status,
            detail: format!(
                "it did not come from a coordinator, but from a proxy or another program at its address: {what}"
            ),
            retry_after,
        }
    }

    /// What is to be done (`docs/protocol.md`). Whatever is between client and coordinator may go
    /// away: only a coordinator's own word ends anything.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Problem { problem, .. } => problem.remedy(),
            _ => Remedy::Retry,
        }
    }

    /// How long the coordinator asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } | Self::Unexpected { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// The problem's code, if the coordinator gave one.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem { problem, .. } => Some(problem.code),
            _ => None,
        }
    }
}

impl From<reqwest::Error> for ApiError {
    fn from(error: reqwest::Error) -> Self {
        let proxies = Proxies::of_environment().ok();
        let proxy = error
            .url()
            .and_then(|url| proxies.and_then(|proxies| proxies.proxy_for(url)));
        Self::without_answer(error, proxy)
    }
}

impl ApiError {
    /// No whole answer came. The innermost cause says what happened; the outer ones repeat the address, which may be
    /// a signed one.
    fn without_answer(error: reqwest::Error, proxy: Option<&Proxy>) -> Self {
        let error = error.without_url();
        let mut innermost: &dyn std::error::Error = &error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        let mut reason = innermost.to_string();
        if error.is_connect()
            && let Some(hint) = tls_hint(&reason)
        {
            reason += &format!("; {hint}");
        }
        if let Some(proxy) = proxy {
            reason += &format!("; it was asked through {proxy}");
        }
        if error.is_connect() {
            Self::Unreachable(reason)
        } else {
            Self::Unanswered(reason)
        }
    }
}

/// What a failure of TLS means, by rustls's words for it.
fn tls_hint(reason: &str) -> Option<&'static str> {
    let hints = [
        (
            "InvalidContentType",
            "it seems to speak http there, and not https",
        ),
        (
            "certificate expired",
            "the certificate has expired, or this machine's clock is wrong",
        ),
        (
            "certificate not valid yet",
            "the certificate is not valid yet, or this machine's clock is wrong",
        ),
    ];
    let hint = hints.iter().find(|(words, _)| reason.contains(words));
    hint.map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::UnixTime;
    use rustls::{CertificateError, Error, InvalidMessage};

    use super::*;

    #[test]
    fn what_rustls_says_is_explained() {
        let [early, late] =
            [1, 2].map(|second| UnixTime::since_unix_epoch(Duration::from_secs(second)));
        let expired = CertificateError::ExpiredContext {
            time: late,
            not_after: early,
        };
        let not_yet = CertificateError::NotValidYetContext {
            time: early,
            not_before: late,
        };
        let hint = |error: Error| tls_hint(&error.to_string());
        assert_eq!(
            hint(Error::InvalidCertificate(expired)),
            Some("the certificate has expired, or this machine's clock is wrong")
        );
        assert_eq!(
            hint(Error::InvalidCertificate(not_yet)),
            Some("the certificate is not valid yet, or this machine's clock is wrong")
        );
        assert_eq!(
            hint(InvalidMessage::InvalidContentType.into()),
            Some("it seems to speak http there, and not https")
        );
        let unknown = CertificateError::UnknownIssuer;
        assert_eq!(hint(Error::InvalidCertificate(unknown)), None);
    }
}
