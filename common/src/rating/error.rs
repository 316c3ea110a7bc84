//! What the rating mathematics refuses.

/// A parameter or a count from which nothing can be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RatingError {
    /// A parameter is not a number or outside its range.
    #[error("{what} must be between {low} and {high}, got {value}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: f64,
        /// Smallest allowed.
        low: f64,
        /// Largest allowed.
        high: f64,
    },
    /// The hypotheses of a sequential test are equal or the wrong way round.
    #[error("elo0 must be below elo1, got elo0 {elo0} and elo1 {elo1}")]
    HypothesesOrder {
        /// The lower hypothesis.
        elo0: f64,
        /// The upper hypothesis.
        elo1: f64,
    },
    /// A tally claims more games in pairs than it has games.
    #[error("a tally of {games} games cannot hold {pairs} pairs")]
    TallyMismatch {
        /// Pairs claimed.
        pairs: u64,
        /// Games counted.
        games: u64,
    },
    /// A pairing or an anchor names a player that does not exist.
    #[error("player {player} does not exist: there are {players} players, counted from 0")]
    UnknownPlayer {
        /// The index given.
        player: usize,
        /// How many players there are.
        players: usize,
    },
    /// A pairing of a player with itself.
    #[error("player {player} is paired with itself")]
    SelfPairing {
        /// The player.
        player: usize,
    },
    /// A player anchored twice.
    #[error("player {player} has two anchors")]
    DuplicateAnchor {
        /// The player.
        player: usize,
    },
    /// Ratings are relative: someone's must be given.
    #[error("a rating fit needs at least one anchor, such as the first player at 0")]
    NoAnchor,
    /// More players than the fit is made for.
    #[error("{players} players are too many for one fit: at most {max}")]
    TooManyPlayers {
        /// Players given.
        players: usize,
        /// Most allowed.
        max: usize,
    },
    /// An iteration did not settle; the counts are beyond double precision.
    #[error("{what} did not converge")]
    NotConverged {
        /// The computation.
        what: &'static str,
    },
}

/// Checks that `value` is a number from `low` to `high`.
pub(super) fn within(
    what: &'static str,
    value: f64,
    low: f64,
    high: f64,
) -> Result<(), RatingError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(RatingError::OutOfRange {
            what,
            value,
            low,
            high,
        })
    }
}
