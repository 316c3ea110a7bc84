//! Who may play matches for the ratings, and which two of them.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus};

/// A network that may play a match for the ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    pub number: NetworkNumber,
    pub role: Role,
}

/// What a network is to the ratings of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The run's own: it is best, or was.
    BeenBest,
    /// An anchor that is rated by its games.
    Anchor,
    GivenAnchor,
}

impl Contender {
    /// The network as a contender; none for a candidate, and for what was rejected or demoted.
    pub fn of(info: &NetworkInfo) -> Option<Self> {
        let role = match (info.status, info.anchor_elo) {
            (NetworkStatus::Initial | NetworkStatus::Promoted, _) => Role::BeenBest,
            (NetworkStatus::Anchor, None) => Role::Anchor,
            (NetworkStatus::Anchor, Some(_)) => Role::GivenAnchor,
            _ => return None,
        };
        let number = info.number;
        Some(Self { number, role })
    }

    /// Whether games of these two are what the run's ratings need.
    ///
    /// Two anchors whose Elo is given keep it whatever they play, and two that wait for a rating
    /// get it from games with the run's networks, which say something of these as well. One of
    /// each kind may carry the given scale to an anchor that the run's networks are closer to.
    pub fn may_meet(self, other: Self) -> bool {
        self.role == Role::BeenBest || self.role != other.role
    }
}
