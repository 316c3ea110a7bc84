//! The local copy of the coordinator's ledger: one JSON row a line, in ledger order.
//!
//! Rows are only appended, unless the coordinator's ledger was restored from a backup: then those
//! that it no longer has are cut off. A crash can cut the last line, which is then dropped and
//! fetched again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::protocol::jobs::ChunkRow;
use rookery_common::text::quantity;

/// The rows that are known.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    rows: Vec<ChunkRow>,
}

/// Whether a row's positions are for training.
pub fn is_training(row: &ChunkRow) -> bool {
    row.kind.is_training()
}

impl Ledger {
    /// Reads the copy at `path`, or begins one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot open the ledger's copy {}", path.display());
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path);
        let file = file.with_context(cannot)?;
        let text = std::fs::read(path).with_context(cannot)?;
        let (rows, good) = parse(&text);
        if good < text.len() {
            tracing::warn!(
                "the ledger's copy {} is damaged after {}; the rest is fetched again",
                path.display(),
                quantity(rows.len(), "row")
            );
            file.set_len(good as u64).with_context(cannot)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            rows,
        })
    }

    /// Adds rows that follow the last one; they are on disk when this returns.
    ///
    /// # Errors
    ///
    /// If a row does not follow, or the file cannot be written.
    pub fn append(&mut self, rows: Vec<ChunkRow>) -> anyhow::Result<()> {
        let mut text = Vec::new();
        let mut last = self.cursor();
        for row in &rows {
            anyhow::ensure!(
                row.sequence > last,
                "RK-0722: the coordinator's ledger is out of order: row {} came after row {last}",
                row.sequence
            );
            last = row.sequence;
            serde_json::to_writer(&mut text, row)?;
            text.push(b'\n');
        }
        let written = self
            .file
            .write_all(&text)
            .and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.rows.extend(rows);
        Ok(())
    }

    /// Truncates to this number of rows.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or cut.
    pub fn cut(&mut self, rows: usize) -> anyhow::Result<()> {
        let cannot = || format!("cannot cut {}", self.path.display());
        let text = std::fs::read(&self.path).with_context(cannot)?;
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let kept: usize = lines.take(rows).map(<[u8]>::len).sum();
        let cut = self
            .file
            .set_len(kept as u64)
            .and_then(|()| self.file.sync_data());
        cut.with_context(cannot)?;
        self.rows.truncate(rows);
        Ok(())
    }

    /// The rows in ledger order.
    pub fn rows(&self) -> &[ChunkRow] {
        &self.rows
    }

    /// The place of the last row, from which the coordinator is asked for more; 0 without rows.
    pub fn cursor(&self) -> i64 {
        self.rows.last().map_or(0, |row| row.sequence)
    }

    /// How many rows lie at or before a place of the ledger.
    pub fn rows_until(&self, sequence: i64) -> usize {
        self.rows.partition_point(|row| row.sequence <= sequence)
    }
}

/// The rows of whole, readable lines, whose places are above 0 and in order, and how many bytes they
/// take.
fn parse(text: &[u8]) -> (Vec<ChunkRow>, usize) {
    let mut rows: Vec<ChunkRow> = Vec::new();
    let mut good = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let row = line
            .strip_suffix(b"\n")
            .and_then(|line| serde_json::from_slice(line).ok());
        let last = rows.last().map_or(0, |row| row.sequence);
        let Some(row) = row.filter(|row: &ChunkRow| row.sequence > last) else {
            break;
        };
        rows.push(row);
        good += line.len();
    }
    (rows, good)
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::{ContentHash, NetworkNumber};
    use rookery_common::protocol::jobs::WorkKind;

    use super::*;

    fn row(sequence: i64, kind: WorkKind, positions: u32) -> ChunkRow {
        ChunkRow {
            sequence,
            hash: ContentHash::of(&sequence.to_le_bytes()),
            kind,
            network: NetworkNumber(0),
            bytes: 10,
            games: 1,
            positions,
            accepted_at: "2026-01-01T00:00:00Z".into(),
            held: false,
        }
    }

    fn rows() -> Vec<ChunkRow> {
        vec![
            row(2, WorkKind::SelfPlay, 100),
            row(5, WorkKind::Match, 1000),
            row(9, WorkKind::Puzzles, 10),
        ]
    }

    #[test]
    fn rows_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        Ledger::open(&path).unwrap().append(rows()).unwrap();
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.rows(), rows());
        assert_eq!((ledger.cursor(), ledger.rows_until(5)), (9, 2));
        assert!(ledger.append(rows()).is_err(), "rows must follow");
        assert_eq!(Ledger::open(&path).unwrap().rows().len(), 3);
    }

    #[test]
    fn rows_that_are_cut_off_make_room_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append(rows()).unwrap();
        ledger.cut(1).unwrap();
        assert_eq!(ledger.cursor(), 2);
        let other = row(5, WorkKind::SelfPlay, 7);
        ledger.append(vec![other.clone()]).unwrap();
        let expected = [rows()[0].clone(), other];
        assert_eq!(Ledger::open(&path).unwrap().rows(), expected);
        ledger.cut(0).unwrap();
        assert!(Ledger::open(&path).unwrap().rows().is_empty());
    }

    #[test]
    fn a_row_in_a_place_that_no_ledger_has_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        for place in [0, -1, i64::MIN] {
            let line = serde_json::to_string(&row(place, WorkKind::SelfPlay, 1)).unwrap();
            std::fs::write(&path, line + "\n").unwrap();
            assert!(Ledger::open(&path).unwrap().rows().is_empty(), "{place}");
            assert_eq!(std::fs::read(&path).unwrap(), b"");
        }
    }

    #[test]
    fn a_cut_at_any_byte_loses_no_whole_row() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        Ledger::open(&path).unwrap().append(rows()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            let mut ledger = Ledger::open(&path).unwrap();
            assert_eq!(ledger.rows(), &rows()[..lines], "cut at {cut}");
            ledger.append(rows()[lines..].to_vec()).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
    }
}
