//! puzzle
