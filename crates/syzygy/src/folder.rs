//! Folders to tables: each file is looked at, so that a bad one is named and the others are used.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rookery_common::text::printable;
use shakmaty::Chess;
use shakmaty_syzygy::Tablebase;

/// Most problems that are listed one by one.
const SHOWN: usize = 8;
/// Longest path or reason that is shown, in characters.
const SHOWN_CHARACTERS: usize = 300;
/// How files of wins, draws and losses begin (`.rtbw`).
const WDL_MAGIC: [u8; 4] = [0x71, 0xe8, 0x23, 0x5d];
/// How files of distances begin (`.rtbz`).
const DTZ_MAGIC: [u8; 4] = [0xd7, 0x66, 0x0c, 0xa5];

/// Tables of several folders, being collected.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) tables: Tablebase<Chess>,
    pub(super) count: usize,
    bad: Vec<(PathBuf, String)>,
}

impl Files {
    /// Adds the sound tables of a folder.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        let before = self.count + self.bad.len();
        if let Err(error) = self.add_entries(folder) {
            self.bad.push((folder.to_owned(), error.to_string()));
        }
        if self.count + self.bad.len() == before {
            let reason = "there are no Syzygy tables in this folder".to_owned();
            self.bad.push((folder.to_owned(), reason));
        }
    }

    fn add_entries(&mut self, folder: &Path) -> io::Result<()> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.sort();
        for path in paths {
            match check(&path).and_then(|()| self.add(&path)) {
                Ok(()) => {}
                Err(reason) => self.bad.push((path, reason)),
            }
        }
        Ok(())
    }

    /// Adds a file; those whose names are no tables' are left alone.
    fn add(&mut self, path: &Path) -> Result<(), String> {
        match self.tables.add_file(path) {
            Ok(()) => self.count += 1,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// The folders and files that cannot be used, with the reasons; the last line counts those left out.
    pub(super) fn problems(&self) -> Vec<String> {
        let line = |(path, reason): &(PathBuf, String)| {
            let shown = printable(&path.to_string_lossy(), SHOWN_CHARACTERS);
            format!("{shown}: {}", printable(reason, SHOWN_CHARACTERS))
        };
        let mut lines: Vec<String> = self.bad.iter().take(SHOWN).map(line).collect();
        let more = self.bad.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines
    }
}

/// Looks at a file that is called like a table: its size and how it begins. Others pass.
fn check(path: &Path) -> Result<(), String> {
    let (magic, what) = match path.extension().and_then(OsStr::to_str) {
        Some("rtbw") => (WDL_MAGIC, "wins, draws and losses"),
        Some("rtbz") => (DTZ_MAGIC, "distances"),
        _ => return Ok(()),
    };
    let said = |error: io::Error| error.to_string();
    let mut file = File::open(path).map_err(said)?;
    let metadata = file.metadata().map_err(said)?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let bytes = metadata.len();
    if bytes % 64 != 16 {
        return Err(format!(
            "{bytes} bytes are no whole table, download it again"
        ));
    }
    let mut begin = [0; 4];
    file.read_exact(&mut begin).map_err(said)?;
    if begin != magic {
        return Err(format!("it is no Syzygy table of {what}"));
    }
    Ok(())
}
