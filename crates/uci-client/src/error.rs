//! What can go wrong with an engine.

use std::time::Duration;

/// Why an engine gave no answer. After [`Died`](Self::Died), [`TimedOut`](Self::TimedOut),
/// [`Nonsense`](Self::Nonsense) and [`IllegalMove`](Self::IllegalMove) its process has been ended.
#[derive(Debug, thiserror::Error)]
pub enum UciError {
    /// The program could not be started.
    #[error(
        "RK-0801: cannot start the engine {program}: {source}; is it installed, and is the path right?"
    )]
    Start {
        /// The program as given.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The program ended, or closed its pipes.
    #[error("RK-0802: the engine {engine} ended while {during} ({status}){said}")]
    Died {
        /// The engine's name, or its program before it has said one.
        engine: String,
        /// What was waited for.
        during: &'static str,
        /// How it ended.
        status: String,
        /// The end of its standard error, introduced, or nothing.
        said: String,
    },
    /// No answer in time.
    #[error(
        "RK-0803: the engine {engine} did not answer within {waited:.1?} while {during}; it was stopped{said}"
    )]
    TimedOut {
        /// The engine's name.
        engine: String,
        /// What was waited for.
        during: &'static str,
        /// How long.
        waited: Duration,
        /// The end of its standard error, introduced, or nothing.
        said: String,
    },
    /// Something that cannot be an answer.
    #[error("RK-0804: the engine {engine} does not speak UCI: {what}; it was stopped")]
    Nonsense {
        /// The engine's name.
        engine: String,
        /// What it said.
        what: String,
    },
    /// A best move that the rules do not allow.
    #[error(
        "RK-0807: the engine {engine} wants to play {said:?}, which is not legal in {fen}; it was stopped"
    )]
    IllegalMove {
        /// The engine's name.
        engine: String,
        /// The move as written.
        said: String,
        /// The position.
        fen: String,
    },
    /// An option that the engine does not have.
    #[error("RK-0805: the engine {engine} has no option {name:?}; it has {available}")]
    NoOption {
        /// The engine's name.
        engine: String,
        /// The option asked for.
        name: String,
        /// The options that there are.
        available: String,
    },
    /// A value that an option does not take.
    #[error(
        "RK-0808: {value:?} is no value for the option {name:?} of the engine {engine}: {reason}"
    )]
    OptionValue {
        /// The engine's name.
        engine: String,
        /// The option.
        name: String,
        /// The value.
        value: String,
        /// What it takes.
        reason: String,
    },
    /// A Chess960 position for an engine without the option `UCI_Chess960`.
    #[error("RK-0809: the engine {engine} does not play Chess960, which {fen} needs")]
    NoChess960 {
        /// The engine's name.
        engine: String,
        /// The start position.
        fen: String,
    },
    /// The engine was asked although an earlier error had ended it.
    #[error("the engine {engine} was ended after an earlier error")]
    Ended {
        /// The engine's name.
        engine: String,
    },
    /// A search without any limit, or a game whose moves are not legal.
    #[error("cannot ask an engine: {0}")]
    Question(String),
}
