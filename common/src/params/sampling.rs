//! Which positions of the window a batch is made of, and what counts as the result of games that did not end.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::range::{ParamsError, within};

/// How positions are drawn from the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Every position is as likely as any other, however long its game is.
    #[default]
    Positions,
    /// Every game is as likely as any other, and gives a batch one position, any of its own; more
    /// only where the batch has more positions than the window has games.
    Games,
}

/// What counts as the result of a game that its ply limit ended. Such a game says nothing of who wins: a time
/// limit is no end (Pardo et al., "Time Limits in Reinforcement Learning", ICML 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CutOff {
    /// A draw in self-play, whose limit is far away, as AlphaZero's; nothing, as by `own-search`, in a puzzle's game,
    /// which a short limit ends when somebody is about to win.
    #[default]
    ByKind,
    /// What its last searches expected (partial-episode bootstrapping in that paper).
    LastSearch,
    /// Nothing: each of its positions learns what its own search expected.
    OwnSearch,
    /// A draw, as AlphaZero's. Players too weak to mate then teach that nothing is worth anything.
    Draw,
}

/// How kinds of games share a batch: in proportion to these weights, each 0 to 1,000,000 and not all 0.
/// A kind that the window has nothing of leaves its share to the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SourceWeights {
    /// Games from the standard start or an opening book.
    pub selfplay: f64,
    /// Games that begin at puzzles.
    pub puzzles: f64,
}

impl SourceWeights {
    pub(super) fn check(self) -> Result<(), ParamsError> {
        within("selfplay", self.selfplay, 0.0, 1e6)?;
        within("puzzles", self.puzzles, 0.0, 1e6)?;
        within(
            "selfplay + puzzles",
            self.selfplay + self.puzzles,
            1e-6,
            2e6,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_not_negative_and_not_all_zero() {
        let check = |selfplay, puzzles| SourceWeights { selfplay, puzzles }.check();
        assert_eq!(check(1.0, 0.0), Ok(()));
        assert_eq!(check(3.0, 1.0), Ok(()));
        for (selfplay, puzzles) in [(0.0, 0.0), (-1.0, 2.0), (1.0, f64::NAN)] {
            assert!(check(selfplay, puzzles).is_err(), "{selfplay} {puzzles}");
        }
    }

    #[test]
    fn ways_of_sampling_have_names() {
        let json = serde_json::to_string(&Sampling::Games).unwrap();
        assert_eq!(json, "\"games\"");
        let json = serde_json::to_string(&CutOff::LastSearch).unwrap();
        assert_eq!(json, "\"last-search\"");
    }
}
