//! PGN files of any size, read once from front to back: [`source`] opens them, [`reader`] takes games out of them.

pub mod reader;
pub mod source;

pub use reader::{Ended, each_game};
pub use source::{BytesRead, total_bytes};
