//! Settings: flags over `ROOKERY_*` variables over the file over defaults.
//!
//! [`file`](mod@file) is what stands in the file, [`token`] where the secret is kept,
//! [`Settings`] what the program works with.

mod file;
mod settings;
mod token;

pub use file::{ConfigFile, default_path};
pub use settings::{Compute, PrecisionChoice, Settings};
pub(crate) use settings::{or_auto, resolve_data_dir, worker_name};
pub use token::{StoredToken, Tokens, write_private};
