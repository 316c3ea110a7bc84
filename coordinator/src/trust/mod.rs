//! Whether contributors can be believed: who is audited how often, what an audit's answers mean.
//!
//! ```text
//! chunk accepted ─ rate ─> audit opened ─ plan ─> draw ─> leased to who was drawn ─ compare ─┐
//!                                ^                                                           v
//!                                └── scrutiny of recent chunks ── failed <── verdict <── opinion
//!                                                                    └─ again ─> quarantine
//! ```
//!
//! [`rate`], [`draw`], [`verdict`], [`pool`] and [`drift`] are pure functions; the database applies them in its
//! transactions. [`compare`] and [`plan`] read chunks.

pub mod compare;
pub mod draw;
pub mod drift;
pub mod plan;
pub mod pool;
pub mod rate;
pub mod verdict;

use crate::app::App;
use crate::db::ExclusionEffects;
use crate::ratings;

/// Tells those who listen what follows from chunks that were held or let go, and has ratings fitted again.
pub fn follow(app: &App, effects: ExclusionEffects) {
    app.events.publish_all(effects.events);
    for run in effects.stale {
        ratings::refit_soon(app, run);
    }
}
