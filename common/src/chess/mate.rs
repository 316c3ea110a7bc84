//! mate
