//! Other people's chess engines, spoken to by the Universal Chess Interface (Meyer-Kahlen and Huber, 2004).
//!
//! [`Launch`] says what to start, [`Engine`] is the running program: it is asked for moves with
//! [`Engine::search`] and gives an [`Answer`]. An engine is a stranger: every wait has an end, every
//! line a longest length, every move it names is checked against the rules. One that dies, hangs
//! or talks nonsense is killed together with whatever it has started, and the [`UciError`] says
//! what happened and what it last wrote to its standard error.
//!
//! ```text
//! Engine ── writes ──> stdin  ┐
//!        <─ channel ── stdout ┤ the engine's process group
//!          kept: tail of stderr ┘
//! ```
//!
//! In dependency order: [`error`], [`launch`] (what to start), [`option`] and [`info`] (lines to values),
//! [`process`] (the program and its pipes), [`engine`]. Everything blocks; nothing is async.

pub mod engine;
pub mod error;
pub mod info;
pub mod launch;
pub mod option;
mod process;

pub use engine::{Answer, Engine, Game, Limits};
pub use error::UciError;
pub use info::{Info, Score};
pub use launch::{Launch, Timeouts, locate};
pub use option::{EngineOption, OptionKind};
