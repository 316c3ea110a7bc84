//! Who may end games before the rules do, as the volunteer provides it: endgame tables. Runs
//! say whether they want such judgements; where they do and this worker has none, it plays on.

use std::path::PathBuf;
use std::sync::Arc;

use rookery_common::chess::EndgameTables;
use rookery_tables::Syzygy;

/// Which judges the volunteer provides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgeSettings {
    /// Folders of Syzygy tables.
    pub syzygy: Vec<PathBuf>,
}

/// The judges of this machine, opened.
#[derive(Debug, Clone, Default)]
pub struct Judges {
    tables: Option<Arc<dyn EndgameTables>>,
}

impl Judges {
    /// Opens what is provided.
    ///
    /// # Errors
    ///
    /// If a folder of tables cannot be read or holds none.
    pub fn open(settings: &JudgeSettings) -> anyhow::Result<Self> {
        if settings.syzygy.is_empty() {
            return Ok(Self::default());
        }
        let tables = Syzygy::open(&settings.syzygy)?;
        tracing::info!(
            "endgame tables: {} files, up to {} pieces",
            tables.files(),
            tables.pieces()
        );
        Ok(Self {
            tables: Some(Arc::new(tables)),
        })
    }

    /// The judges of one thread.
    pub fn of_thread(&self) -> rookery_engine::Judges {
        rookery_engine::Judges {
            tables: self.tables.clone(),
            referee: None,
        }
    }
}
