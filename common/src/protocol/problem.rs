//! How requests fail: RFC 9457 problem details with a stable code.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::text::printable;

/// Most characters that people are shown of a problem's title and of its detail.
const SHOWN: usize = 2000;

/// The body of every error answer, `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A short sentence, the same for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was wrong with this request, and what to do.
    pub detail: String,
    /// The stable code that programs act on.
    pub code: ProblemCode,
    /// Why a chunk did not pass verification, as a code; present if `code` is `chunk-refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_error: Option<String>,
    /// The chunk's game that did not pass, from 0, if one is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<u32>,
    /// The ply of that game that did not pass, from 0, if one is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ply: Option<u32>,
    /// The request's identifier in the coordinator's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What a client does about a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Try again later, with backoff and `Retry-After`.
    Retry,
    /// Drop what was sent and go on; retrying cannot help.
    Drop,
    /// Stop: the user has to do something.
    Stop,
}

macro_rules! problem_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $remedy:ident, $title:literal;)*) => {
        /// The stable codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        pub enum ProblemCode {
            $($(#[$doc])* #[serde(rename = $code)] $name,)*
            /// A code that this build does not know; its HTTP status tells what to do.
            #[serde(other, rename = "unknown")]
            Unknown,
        }

        impl ProblemCode {
            /// All codes that a coordinator of this build sends.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code as text.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* Self::Unknown => "unknown" }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* Self::Unknown => 500 }
            }

            /// What a client does.
            pub const fn remedy(self) -> Remedy {
                match self { $(Self::$name => Remedy::$remedy,)* Self::Unknown => Remedy::Retry }
            }

            /// The title of such problems.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* Self::Unknown => "Unknown problem" }
            }
        }
    };
}

problem_codes! {
    /// The request could not be understood.
    BadRequest = "bad-request", 400, Drop, "The request could not be understood";
    /// There is no token, or it is unknown or revoked.
    Unauthorized = "unauthorized", 401, Stop, "A valid token is needed";
    /// The token lacks the scope.
    Forbidden = "forbidden", 403, Stop, "The token may not do this";
    /// The operator has closed registration.
    RegistrationClosed = "registration-closed", 403, Stop, "Registration is closed";
    /// Registration needs an invitation, and what came is none that is valid.
    InvitationNeeded = "invitation-needed", 403, Stop, "A valid invitation is needed";
    /// The user, or the worker that asks for a job, was blocked by the operator.
    Blocked = "blocked", 403, Stop, "Blocked by the operator";
    /// There is no such thing.
    NotFound = "not-found", 404, Drop, "Not found";
    /// The method is not for this address.
    MethodNotAllowed = "method-not-allowed", 405, Drop, "This method is not allowed here";
    /// The request's body did not arrive in time.
    RequestTimeout = "request-timeout", 408, Retry, "The request took too long to arrive";
    /// The name is taken.
    NameTaken = "name-taken", 409, Stop, "The name is taken";
    /// The state does not allow this now.
    Conflict = "conflict", 409, Drop, "The present state does not allow this";
    /// The lease ended before the chunk came, and its games were given to another.
    LeaseEnded = "lease-ended", 410, Drop, "The lease has ended";
    /// The body is larger than allowed.
    TooLarge = "too-large", 413, Drop, "The body is too large";
    /// The range of a download cannot be served.
    BadRange = "bad-range", 416, Drop, "The range cannot be served";
    /// The chunk did not pass verification; `chunk_error` says why.
    ChunkRefused = "chunk-refused", 422, Drop, "The chunk was refused";
    /// The network file did not pass verification.
    NetworkRefused = "network-refused", 422, Drop, "The network was refused";
    /// The run's networks are signed, and the signature is missing or not valid.
    SignatureRefused = "signature-refused", 422, Stop, "A valid signature by the run's key is needed";
    /// The body's SHA-256 is not the one in the address.
    HashMismatch = "hash-mismatch", 422, Retry, "The body does not have the hash in the address";
    /// The worker's version is no longer served.
    UpdateRequired = "update-required", 426, Stop, "This worker is too old";
    /// Too many requests.
    TooManyRequests = "too-many-requests", 429, Retry, "Too many requests";
    /// The contributor or the worker holds as many leases as it may.
    TooManyLeases = "too-many-leases", 429, Retry, "Too many leases are held";
    /// As many candidates of the run as may wait for their gate matches.
    TooManyCandidates = "too-many-candidates", 429, Retry, "Too many candidates wait";
    /// Something failed inside the coordinator.
    Internal = "internal", 500, Retry, "Something went wrong in the coordinator";
    /// A dependency of the coordinator is down, it is shutting down, or more requests wait than it can answer soon.
    Unavailable = "unavailable", 503, Retry, "The coordinator is not available now";
}

impl Problem {
    /// A problem of this code.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            chunk_error: None,
            game: None,
            ply: None,
            request_id: None,
        }
    }

    /// What a client does about it (`docs/protocol.md`). A failure of the coordinator itself may
    /// pass; else the code decides and, where it is not known, the status.
    pub const fn remedy(&self) -> Remedy {
        match (self.code, self.status) {
            (_, 500..) | (ProblemCode::Unknown, 408 | 425 | 429) => Remedy::Retry,
            (ProblemCode::Unknown, 401 | 426) => Remedy::Stop,
            (ProblemCode::Unknown, 400..) => Remedy::Drop,
            (code, _) => code.remedy(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({}): {}",
            printable(&self.title, SHOWN),
            self.code.as_str(),
            printable(&self.detail, SHOWN)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_page_lists_every_code() {
        let page = include_str!("../../../docs/protocol.md");
        for code in ProblemCode::ALL {
            let remedy = format!("{:?}", code.remedy()).to_lowercase();
            let row = format!("| `{}` | {} | {remedy} |", code.as_str(), code.status());
            assert!(page.contains(&row), "docs/protocol.md lacks {row}");
        }
        for code in crate::chunk::ChunkErrorCode::ALL {
            let row = format!("| `{}` |", code.as_str());
            assert!(page.contains(&row), "docs/protocol.md lacks {row}");
        }
    }

    #[test]
    fn unknown_codes_fall_back_to_the_status() {
        let remedy = |code, status| {
            let problem = Problem::new(code, "new");
            Problem { status, ..problem }.remedy()
        };
        for (status, expected) in [
            (422, Remedy::Drop),
            (404, Remedy::Drop),
            (401, Remedy::Stop),
            (426, Remedy::Stop),
            (408, Remedy::Retry),
            (425, Remedy::Retry),
            (429, Remedy::Retry),
            (503, Remedy::Retry),
            (0, Remedy::Retry),
        ] {
            assert_eq!(remedy(ProblemCode::Unknown, status), expected, "{status}");
        }
        assert_eq!(remedy(ProblemCode::NotFound, 404), Remedy::Drop);
        assert_eq!(remedy(ProblemCode::NotFound, 500), Remedy::Retry);
    }

    #[test]
    fn whoever_answers_as_a_coordinator_steers_no_terminal() {
        let problem = Problem {
            title: "\u{1b}[2JGone".to_owned(),
            ..Problem::new(ProblemCode::NotFound, "x".repeat(100_000))
        };
        let shown = problem.to_string();
        assert!(shown.starts_with("[2JGone (not-found): xxx"), "{shown}");
        assert!(shown.len() < 3000);
    }

    #[test]
    fn codes_round_trip_and_unknown_ones_are_read() {
        for code in ProblemCode::ALL {
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.as_str()));
            assert_eq!(serde_json::from_str::<ProblemCode>(&json).unwrap(), *code);
        }
        let future: ProblemCode = serde_json::from_str("\"from-the-future\"").unwrap();
        assert_eq!(future, ProblemCode::Unknown);
    }
}
