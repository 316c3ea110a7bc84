//! Games of people and engines as training data: PGN files of any size, read once from front to back.
//!
//! ```text
//! files (plain, gzip, zstd) -> games -> positions with targets -> Block -> batches in random order
//!                                                            [`block`]         [`shuffled`]
//!                 '------ a thread of its own, one block ahead ------'
//!                                     [`stream`]
//! ```
//!
//! A block is a few thousand games, shuffled. It follows from the files and the settings alone, so
//! a warm start that was stopped goes on with the same batches: it passes over the games of the
//! blocks that are done. Memory is that of two blocks and a few batches, however long the files are. Which positions of which
//! games it has is [`filter`]'s matter.
//!
//! [`rookery_cli::pgn`] takes games out of a file ([`rookery_common::pgn`] reads them, however they are spelled), for both
//! that and [`library`], in which whole files are kept to be mixed into a run's batches. `rookery-lab annotate` writes
//! games with an engine's evaluations, which teach more of values than thousands of results.

pub mod block;
pub mod filter;
pub mod library;
pub mod shuffled;
pub mod stream;

pub use block::Block;
pub use filter::Filter;
pub use library::Library;
pub use rookery_common::pgn::{PgnGame, Skipped};
pub use shuffled::{Mirroring, Shuffled};
pub use stream::{Counts, Place, Stream};
