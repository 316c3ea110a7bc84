//! Training that diverged: a note in the trainer's folder, so that the next start follows the run's parameters. With
//! those of its checkpoint it would diverge at the same batch again.

use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::files::{if_found, write_whole};
use serde::{Deserialize, Serialize};

use super::Session;
use super::begin::fetch_run;
use super::state::Phase;

/// What diverged.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// The number of the candidate that was in work.
    candidate: u32,
    /// Steps that had been taken in all.
    step: u64,
}

impl Session {
    fn note_path(&self) -> PathBuf {
        self.settings.dir.join("diverged.json")
    }

    /// Notes that the candidate in work has diverged, and says what to do.
    pub(super) fn diverged(&self, error: anyhow::Error) -> anyhow::Error {
        if let Err(error) = self.write_note() {
            tracing::error!(
                "RK-0716: a note could not be written, and the next start will diverge again: {error:#}"
            );
        }
        let state = &self.state;
        let step = state.step.saturating_sub(state.rate_from);
        error.context(format!(
            "RK-0705: training diverged; the last good state is kept. Give run {} a lower learning rate (now {}) or \
             gradient_clip (rookery-coordinator run set), then start again: it goes on from that state with what the \
             run asks for then. Should that diverge, too, remove {}: training then begins at the run's best network",
            state.run,
            state.params.learning_rate.at(step),
            self.settings.dir.join("checkpoints").display()
        ))
    }

    fn write_note(&self) -> anyhow::Result<()> {
        let path = self.note_path();
        let note = Note {
            candidate: self.state.candidate,
            step: self.state.step,
        };
        write_whole(&path, &serde_json::to_vec(&note)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn read_note(&self) -> anyhow::Result<Option<Note>> {
        let path = self.note_path();
        let text = if_found(std::fs::read(&path));
        let Some(text) = text.with_context(|| format!("cannot read {}", path.display()))? else {
            return Ok(None);
        };
        let note = serde_json::from_slice(&text);
        note.with_context(|| format!("{} is damaged; remove it", path.display()))
    }

    /// Follows the run's training parameters where the candidate in work has diverged. In no other case: a candidate
    /// that was only interrupted keeps the parameters with which it was begun.
    pub(super) async fn follow_divergence(&mut self) -> anyhow::Result<()> {
        let Some(note) = self.read_note()? else {
            return Ok(());
        };
        let state = &self.state;
        if matches!(state.phase, Phase::Train(_)) && note.candidate == state.candidate {
            let diverged = format!("the candidate diverged after step {}", note.step);
            let params = fetch_run(&self.context.client).await?.params.training;
            if params == state.params {
                tracing::warn!(
                    "RK-0716: {diverged}, and run {} has the same training parameters as then: it will probably \
                     diverge again",
                    state.run
                );
                return Ok(());
            }
            tracing::info!(
                "{diverged}: it goes on from step {} with the training parameters that run {} has now",
                state.step,
                state.run
            );
            self.follow_params(params)?;
            self.save()?;
        }
        let path = self.note_path();
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }
}
