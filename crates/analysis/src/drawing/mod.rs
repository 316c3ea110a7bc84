//! Pictures of what a network and a search think: `evaluate --tree` and `evaluate --planes`.
//!
//! - `layout`: places for the nodes of a search tree; [`svg`] and [`dot`] write them;
//! - `canvas`, `font`: dots, boxes and letters, saved as PNG; [`planes`] draws boards with them.

mod canvas;
pub mod dot;
mod font;
mod layout;
pub mod planes;
pub mod svg;

/// What a tree's picture says above the tree.
#[derive(Debug, Clone)]
pub struct Caption {
    /// The network.
    pub network: String,
    /// The position.
    pub fen: String,
}
