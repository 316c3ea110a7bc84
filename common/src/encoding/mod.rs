//! How positions and moves look to a network.
//!
//! [`input`] turns a [`GameHistory`](crate::chess::GameHistory) into planes, [`policy`] turns
//! moves into indices of the policy output. Everything is seen by the side to move: for Black the
//! board is flipped vertically (a8 becomes a1), so that own pawns always go up. The tables are in
//! `docs/formats.md`. [`mirror`] exchanges the files of positions without castling rights, [`squares`] gives each
//! square a class.

pub mod input;
pub mod mirror;
pub mod policy;
pub mod squares;
#[cfg(test)]
pub(crate) mod testing;

pub use input::{InputEncoding, PackedInput};
pub use mirror::{can_mirror, mirror_planes};
pub use policy::PolicyEncoding;
pub use squares::{PIECE_CLASSES, piece_classes};
