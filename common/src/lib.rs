//! What all Rookery programs agree on.
//!
//! Pure functions and types: no I/O but for command lines, configuration and lock files, no async, no libtorch.
//! Read it in this order:
//!
//! - [`ids`]: newtypes for hashes, numbers and seeds; [`mod@names`]: what the variants of enums are called;
//! - [`chess`]: a game with its history, how games end, the canonical order of moves, forced mates;
//! - [`encoding`]: positions as input planes, moves as policy indices;
//! - [`network`]: the specification of a network and its file format;
//! - [`params`]: what a run is made of: search, self-play, match and training parameters;
//! - [`openings`]: books from which matches begin;
//! - [`puzzle`]: tactical exercises and when one counts as solved;
//! - [`pgn`]: games as text, written and read, and evaluations in their comments;
//! - [`chunk`]: the file format of games, its verification and its exports;
//! - [`audit`]: whether two searches of one position can be of the same network;
//! - [`rating`]: Elo, sequential tests and the rating fit;
//! - [`signing`]: keys of runs and signatures of their networks;
//! - [`protocol`]: the JSON types of the coordinator's API;
//! - [`causes`]: errors as people read them;
//! - `command_line`, `config`, `file_lock`, `logging`, `terminal`, `output`, `signals`: what the programs' command lines
//!   and configuration files have in common, what one process at a time may use, their log lines and progress bars, how
//!   their commands answer, and which signals end them, with the feature `command-line`;
//! - [`memory`]: what the process has used of the machine's;
//! - [`text`]: text that people are shown;
//! - [`files`]: files that a crash never leaves half written; [`secret`]: tokens in files;
//! - [`unpack`], [`file_kind`]: files of text that may be compressed, and what a file is that is something else.

pub mod audit;
pub mod causes;
pub mod chess;
pub mod chunk;
#[cfg(feature = "command-line")]
pub mod command_line;
#[cfg(feature = "command-line")]
pub mod config;
pub mod encoding;
pub mod file_kind;
#[cfg(feature = "command-line")]
pub mod file_lock;
pub mod files;
pub mod ids;
#[cfg(feature = "command-line")]
pub mod logging;
pub mod memory;
pub mod names;
pub mod network;
pub mod openings;
#[cfg(feature = "command-line")]
pub mod output;
pub mod params;
pub mod pgn;
pub mod play;
pub mod protocol;
pub mod puzzle;
pub mod rating;
pub mod secret;
#[cfg(feature = "command-line")]
pub mod signals;
pub mod signing;
#[cfg(feature = "command-line")]
pub mod terminal;
pub mod text;
pub mod unpack;
