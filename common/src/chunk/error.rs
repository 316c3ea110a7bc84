//! What can be wrong with a chunk: a stable code, the game and the ply.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        /// The stable codes of `docs/protocol.md`, in the order of checking.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ChunkErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ChunkErrorCode {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code as the API gives it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),* }
            }
        }
    };
}

codes! {
    /// The chunk, or a part of it, is larger than the caps.
    TooLarge = "too-large";
    /// The bytes are no single whole zstd frame.
    BadCompression = "bad-compression";
    /// The content is no `Chunk` message, or a field has a wrong length.
    BadSchema = "bad-schema";
    /// The format's version is not known.
    BadVersion = "bad-version";
    /// The chunk holds no game.
    Empty = "empty";
    /// A field is filled that games of this kind do not have.
    UnusedField = "unused-field";
    /// The start position or its moves are not legal.
    BadStart = "bad-start";
    /// A move does not exist.
    IllegalMove = "illegal-move";
    /// Moves were played after the rules of chess, or those of the job, had ended the game.
    PlayedPastEnd = "played-past-end";
    /// Visit counts do not fit the legal moves.
    BadVisits = "bad-visits";
    /// A policy target does not fit the legal moves, or the search that the job asks for.
    BadTarget = "bad-target";
    /// A value is outside its range.
    BadValue = "bad-value";
    /// The claimed termination is not what the board shows.
    FalseTermination = "false-termination";
    /// The claimed result is not what the termination gives.
    FalseResult = "false-result";
    /// The chunk names another run.
    WrongRun = "wrong-run";
    /// The chunk names another job.
    WrongJob = "wrong-job";
    /// The chunk names other networks than were leased.
    WrongNetworks = "wrong-networks";
    /// The chunk's games are of another kind.
    WrongKind = "wrong-kind";
    /// A game's index is not one of the job's.
    BadIndex = "bad-index";
    /// Two games of the chunk have one index, or the job has this game already.
    DuplicateIndex = "duplicate-index";
    /// A game's seed is not the one that the job gives.
    WrongSeed = "wrong-seed";
    /// A game does not begin where the job says.
    WrongStart = "wrong-start";
    /// A ply was searched fast where its seed says fully, or the other way round.
    WrongEffort = "wrong-effort";
    /// A search has more visits than the job gives it.
    TooManyVisits = "too-many-visits";
    /// A search has fewer visits than the job gives it, and no reason to stop early.
    TooFewVisits = "too-few-visits";
    /// Sequential halving does not spread visits like this.
    WrongSchedule = "wrong-schedule";
    /// A search is said to have proven what the rules of chess do not give, or not to have seen a mate in one.
    FalseProof = "false-proof";
    /// A game is longer than the job allows.
    TooLong = "too-long";
    /// A self-play game's `play_on` is not what its seed draws.
    WrongPlayOn = "wrong-play-on";
    /// The job does not allow this way of ending, or not here.
    TerminationNotAllowed = "termination-not-allowed";
    /// The claim that a puzzle was solved is not true.
    FalseSolution = "false-solution";
    /// A game's pair or colour is not the one that its index gives.
    WrongPair = "wrong-pair";
    /// The played move is not the one that the search and the parameters give.
    WrongChoice = "wrong-choice";
    /// An audit's moves are not those of its task.
    WrongMoves = "wrong-moves";
    /// The game is in the ledger already.
    DuplicateGame = "duplicate-game";
}

/// Why a chunk was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkError {
    /// The stable code.
    pub code: ChunkErrorCode,
    /// The game's place in the chunk, from 0.
    pub game: Option<u32>,
    /// The searched ply of that game, from 0.
    pub ply: Option<u32>,
    /// What was found.
    pub detail: String,
}

impl ChunkError {
    /// An error of the whole chunk.
    pub fn new(code: ChunkErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            game: None,
            ply: None,
            detail: detail.into(),
        }
    }

    /// The same, in this game.
    #[must_use]
    pub(crate) fn in_game(mut self, game: u32) -> Self {
        self.game = Some(game);
        self
    }

    /// The same, at this ply.
    #[must_use]
    pub(crate) fn at_ply(mut self, ply: usize) -> Self {
        self.ply = Some(ply as u32);
        self
    }
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())?;
        if let Some(game) = self.game {
            write!(f, " in game {game}")?;
        }
        if let Some(ply) = self.ply {
            write!(f, " at ply {ply}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

impl std::error::Error for ChunkError {}
