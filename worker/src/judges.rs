//! Adjudication: endgame tables and a strong engine of the volunteer may end games before the rules do. Runs say
//! whether they want that. A worker without them plays on.

use std::path::PathBuf;
use std::sync::Arc;

use rookery_analysis::EngineReferee;
use rookery_common::chess::EndgameTables;
use rookery_common::text::quantity;
use rookery_engine::Referee;
use rookery_syzygy::Syzygy;

/// Which judges the volunteer provides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgeSettings {
    /// Folders of Syzygy tables.
    pub syzygy: Vec<PathBuf>,
    /// A UCI engine: a path, or a name to be looked for.
    pub adjudicator: Option<PathBuf>,
}

/// The judges of this machine.
#[derive(Debug, Clone, Default)]
pub struct Judges {
    tables: Option<Arc<dyn EndgameTables>>,
    engine: Option<PathBuf>,
}

impl Judges {
    /// Opens the tables and tries the engine.
    ///
    /// # Errors
    ///
    /// If no table of the folders can be used, or the engine does not speak UCI.
    pub fn open(settings: &JudgeSettings) -> anyhow::Result<Self> {
        let mut judges = Self::default();
        if !settings.syzygy.is_empty() {
            let tables = Syzygy::open(&settings.syzygy)?;
            let (files, pieces) = (quantity(tables.files(), "file"), tables.pieces());
            tracing::info!("endgame tables: {files}, up to {pieces} pieces");
            for problem in tables.problems() {
                tracing::warn!("RK-0011: an endgame table cannot be used: {problem}");
            }
            judges.tables = Some(Arc::new(tables));
        }
        if let Some(program) = &settings.adjudicator {
            judges.engine = Some(EngineReferee::try_out(program)?);
        }
        Ok(judges)
    }

    /// The judges of one thread; it has an engine of its own.
    pub fn of_thread(&self) -> rookery_engine::Judges {
        let referee = self.engine.as_deref().map(EngineReferee::new);
        rookery_engine::Judges {
            tables: self.tables.clone(),
            referee: referee.map(|referee| Arc::new(referee) as Arc<dyn Referee>),
        }
    }
}
