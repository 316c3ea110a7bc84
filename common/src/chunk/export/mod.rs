//! Games in other formats.
