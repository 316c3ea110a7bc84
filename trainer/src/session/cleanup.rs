//! Removes what the trainer's folder no longer needs: chunks that are older than any window, and candidates that have their
//! verdict.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;

use super::Session;

/// Newest candidates with a verdict whose files are kept.
const KEPT_CANDIDATES: u32 = 10;

impl Session {
    /// Removes what is not needed while positions are gathered; windows have at most `window` positions from now on. Both
    /// checkpoints are then of the last candidate: a restart needs the window of its parameters, up to its cursor.
    pub(super) fn clean_up(&self, window: u64) -> anyhow::Result<()> {
        let state = &self.state;
        let largest = window.max(state.params.window.max);
        self.ledger_sync
            .remove_old(&self.ingest, state.cursor, largest)?;
        remove_decided(&self.settings.dir.join("candidates"), state.candidate)
    }
}

/// Removes the files of candidates before the one in work, except the newest ones.
fn remove_decided(folder: &Path, in_work: u32) -> anyhow::Result<()> {
    let Some(oldest_kept) = in_work.checked_sub(KEPT_CANDIDATES) else {
        return Ok(());
    };
    let cannot = || format!("cannot read the folder {}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(cannot)?,
    };
    for entry in entries {
        let path = entry.with_context(cannot)?.path();
        if number_of(&path).is_some_and(|number| number < oldest_kept) {
            std::fs::remove_file(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// The candidate's number in a file name that [`Session::candidate_path`] has given.
fn number_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (number, _) = name.strip_suffix(".safetensors")?.split_once('-')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_candidates_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("candidates");
        remove_decided(&folder, 99).unwrap();
        std::fs::create_dir(&folder).unwrap();
        for number in 0..=12 {
            let name = format!("{number:05}-0123abcd.safetensors");
            std::fs::write(folder.join(name), b"network").unwrap();
        }
        std::fs::write(folder.join("00001-notes.txt"), b"mine").unwrap();
        let numbers = || -> Vec<u32> {
            let entries = std::fs::read_dir(&folder).unwrap();
            let mut numbers: Vec<_> = entries
                .filter_map(|entry| number_of(&entry.unwrap().path()))
                .collect();
            numbers.sort_unstable();
            numbers
        };
        remove_decided(&folder, 10).unwrap();
        assert_eq!(numbers(), Vec::from_iter(0..=12), "ten are decided");
        remove_decided(&folder, 12).unwrap();
        assert_eq!(
            numbers(),
            Vec::from_iter(2..=12),
            "ten, and the one in work"
        );
        assert!(folder.join("00001-notes.txt").exists());
    }
}
