//! Who may end a game before the rules do, beside the searches themselves: endgame tables, and a
//! strong engine. Both are brought by whoever plays; without them games are played on.

use std::sync::Arc;

use rookery_common::chess::{EndgameTables, GameHistory};
use rookery_common::params::EngineParams;
use shakmaty::Color;

/// A strong engine that is asked about games that the searches call won. The game waits for its
/// answer.
pub trait Referee: std::fmt::Debug + Send + Sync {
    /// The side that the engine calls winning by the parameters' margin and nodes; none if it calls neither, or cannot be
    /// asked.
    fn winner(&self, game: &GameHistory, params: &EngineParams) -> Option<Color>;
}

/// The judges that are at hand.
#[derive(Debug, Clone, Default)]
pub struct Judges {
    /// Endgame tables.
    pub tables: Option<Arc<dyn EndgameTables>>,
    /// An engine.
    pub referee: Option<Arc<dyn Referee>>,
}
