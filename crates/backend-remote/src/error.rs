//! What can go wrong on a connection.

use std::io;
use std::time::Duration;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// The other side has closed it between two frames.
    #[error("the connection was closed")]
    Closed,
    /// Nothing has come although something had to.
    #[error("nothing was received for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The other side is there, and does not do what it was asked for.
    #[error("no batch or network was answered for {} s: its device hangs", .0.as_secs_f32())]
    Unanswered(Duration),
    /// A frame was begun and not finished.
    #[error("a frame was not finished within {} s", .0.as_secs_f32())]
    Stalled(Duration),
    /// Bytes that the protocol does not allow.
    #[error("the protocol was broken: {0}")]
    Protocol(String),
    /// The other side gave this reason to end it.
    #[error("{0}")]
    Refused(String),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ConnectionError {
    /// Broken rules.
    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol(what.into())
    }
}
