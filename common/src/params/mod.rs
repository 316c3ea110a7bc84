//! Parameters of a run: what jobs carry to workers and what the trainer follows.
//!
//! Every structure has defaults, so a run's configuration names only what differs. Unknown fields
//! are ignored: a newer coordinator may say more than an older worker knows. In files that people
//! write they are errors ([`RunParams::from_text`]).

mod ending;
mod job;
mod mistakes;
#[cfg(test)]
mod page;
mod range;
mod run;
mod sampling;
mod search;
mod text;
mod training;

pub use ending::{AdjudicationParams, EngineParams, TableParams};
pub use job::{MatchParams, PuzzleParams, ResignParams, SelfPlayParams};
pub use range::ParamsError;
pub use run::{RunParams, SchedulingParams};
pub use sampling::{CutOff, Sampling, SourceWeights};
pub use search::{
    ForcedPlayouts, Fpu, GumbelParams, KldStop, Noise, PuctParams, RootSearch, SearchParams,
    Temperature,
};
pub use text::TextError;
pub use training::{Cosine, LearningRate, Optimizer, TrainingParams, WindowParams};
