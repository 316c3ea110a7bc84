//! Packed games in a folder of mapped files, so that a chunk is decoded once.
//!
//! ```text
//! window/00000007.games    block | block | … | zeros up to the segment's length
//! block                    "RKBLOCK1" | checksum (16) | key (32) | length (8) | games
//! games                    how many (4) | bytes of each (4 each) | one after the other
//! ```
//!
//! A block holds the games of one chunk under its SHA-256, or a part of a PGN file under a hash of
//! what was read; the checksum is the first half of the SHA-256 of all that follows it. Blocks are
//! only appended. Opening the folder checks every block; a damaged one ends its segment, and what it
//! and those after it held is decoded again, as it would be if the folder were missing. Segments whose
//! unused games are removed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rookery_common::ids::ContentHash;

use super::game::StoredGame;
use super::segment::Segment;

const MAGIC: &[u8; 8] = b"RKBLOCK1";
const CHECKSUM: usize = 16;
/// Where the checked part of a block begins.
const CHECKED: usize = MAGIC.len() + CHECKSUM;
const HEADER: usize = CHECKED + 32 + 8;
/// Length of a segment, in bytes; one for a longer block is as long as the block.
const SEGMENT: u64 = 16 << 20;

/// Packed games by the hash of what they were decoded from.
#[derive(Debug)]
pub struct GameStore {
    folder: Option<PathBuf>,
    segments: BTreeMap<u64, Arc<Segment>>,
    blocks: HashMap<ContentHash, Place>,
    writer: Option<Writer>,
}

/// Where a block begins.
#[derive(Debug, Clone, Copy)]
struct Place {
    segment: u64,
    begin: usize,
}

/// The segment that grows.
#[derive(Debug)]
struct Writer {
    file: File,
    number: u64,
    end: usize,
    length: usize,
}

impl GameStore {
    /// Games in memory of the process, kept for as long as they are used.
    pub fn in_memory() -> Self {
        Self {
            folder: None,
            segments: BTreeMap::new(),
            blocks: HashMap::new(),
            writer: None,
        }
    }

    /// Opens the folder, creating it if it is missing, and checks what lies in it.
    ///
    /// # Errors
    ///
    /// If it cannot be created or read.
    pub fn open(folder: PathBuf) -> anyhow::Result<Self> {
        let cannot = || {
            format!(
                "cannot open the folder of decoded games {}",
                folder.display()
            )
        };
        std::fs::create_dir_all(&folder).with_context(cannot)?;
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let number = stem.and_then(|stem| stem.parse().ok());
            // Only what this store has written: no 7.tmp, no 7.games.
            numbers.extend(number.filter(|number| path == Self::path(&folder, *number)));
        }
        numbers.sort_unstable();
        let mut store = Self {
            folder: Some(folder),
            ..Self::in_memory()
        };
        for number in numbers {
            store.reopen(number)?;
        }
        Ok(store)
    }

    fn path(folder: &Path, number: u64) -> PathBuf {
        folder.join(format!("{number:08}.games"))
    }

    /// Maps a segment of an earlier session. The last one is written on if it is whole.
    fn reopen(&mut self, number: u64) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let path = Self::path(folder, number);
        let cannot = || format!("cannot read {}", path.display());
        let file = File::options().read(true).write(true).open(&path);
        let file = file.with_context(cannot)?;
        if file.metadata().with_context(cannot)?.len() == 0 {
            // A crash came between its creation and its length.
            return std::fs::remove_file(&path).with_context(cannot);
        }
        let segment = Arc::new(Segment::map(&file, &path).with_context(cannot)?);
        let (found, end) = walk(&segment);
        for (key, begin) in found {
            let segment = number;
            self.blocks.insert(key, Place { segment, begin });
        }
        self.writer = None;
        match end {
            End::Free(end) => {
                self.writer = Some(Writer {
                    file,
                    number,
                    end,
                    length: segment.bytes(),
                });
            }
            End::Damaged(at) => tracing::warn!(
                "{} is damaged at byte {at}; games from there on are decoded again",
                path.display()
            ),
        }
        self.segments.insert(number, segment);
        Ok(())
    }

    /// The games of a block, if it is there.
    pub fn get(&self, key: ContentHash) -> Option<Vec<StoredGame>> {
        let place = self.blocks.get(&key)?;
        games_of(self.segments.get(&place.segment)?, place.begin)
    }

    /// Keeps packed games.
    ///
    /// # Errors
    ///
    /// If they cannot be written; what was kept before stays.
    pub fn add(&mut self, key: ContentHash, games: &[Vec<u8>]) -> anyhow::Result<Vec<StoredGame>> {
        let block = block(key, games);
        let (segment, begin) = match self.folder.clone() {
            None => (Arc::new(Segment::of_process(block)), 0),
            Some(folder) => self.append(&folder, key, &block).with_context(|| {
                format!(
                    "cannot keep decoded games in the folder {}",
                    folder.display()
                )
            })?,
        };
        games_of(&segment, begin).context("decoded games cannot be read back")
    }

    fn append(
        &mut self,
        folder: &Path,
        key: ContentHash,
        block: &[u8],
    ) -> io::Result<(Arc<Segment>, usize)> {
        // A writer that fails is given up: what it wrote may be half a block.
        let mut writer = match self.writer.take().filter(|writer| writer.fits(block)) {
            Some(writer) => writer,
            None => self.begin_segment(folder, block)?,
        };
        let begin = writer.write(block)?;
        let number = writer.number;
        let segment = self.segments.get(&number).map(Arc::clone);
        let segment = segment.ok_or(io::ErrorKind::NotFound)?;
        let place = Place {
            segment: number,
            begin,
        };
        self.blocks.insert(key, place);
        self.writer = Some(writer);
        Ok((segment, begin))
    }

    fn begin_segment(&mut self, folder: &Path, block: &[u8]) -> io::Result<Writer> {
        let number = self
            .segments
            .last_key_value()
            .map_or(0, |(last, _)| last + 1);
        let path = Self::path(folder, number);
        let options = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let file = options?;
        file.set_len(SEGMENT.max(block.len() as u64))?;
        let segment = Segment::map(&file, &path)?;
        let length = segment.bytes();
        self.segments.insert(number, Arc::new(segment));
        Ok(Writer {
            file,
            number,
            end: 0,
            length,
        })
    }

    /// Removes the segments without a game in use.
    ///
    /// # Errors
    ///
    /// If a file cannot be removed.
    pub fn sweep(&mut self) -> anyhow::Result<()> {
        let writing = self.writer.as_ref().map(|writer| writer.number);
        let unused = |(number, segment): &(&u64, &Arc<Segment>)| {
            Arc::strong_count(segment) == 1 && Some(**number) != writing
        };
        let unused: Vec<u64> = self
            .segments
            .iter()
            .filter(unused)
            .map(|(n, _)| *n)
            .collect();
        for number in unused {
            let segment = self.segments.remove(&number);
            self.blocks.retain(|_, place| place.segment != number);
            if let Some(path) = segment.as_deref().and_then(Segment::path) {
                std::fs::remove_file(path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }
}

impl Writer {
    const fn fits(&self, block: &[u8]) -> bool {
        self.length - self.end >= block.len()
    }

    /// Writes a block after the last one; the answer is where.
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let begin = self.end;
        self.file.seek(SeekFrom::Start(begin as u64))?;
        self.file.write_all(block)?;
        self.end += block.len();
        Ok(begin)
    }
}

fn block(key: ContentHash, games: &[Vec<u8>]) -> Vec<u8> {
    let mut block = vec![0; CHECKED];
    let payload = 4 + games.iter().map(|game| 4 + game.len()).sum::<usize>();
    block.extend(key.as_bytes());
    block.extend((payload as u64).to_le_bytes());
    block.extend((games.len() as u32).to_le_bytes());
    for game in games {
        block.extend((game.len() as u32).to_le_bytes());
    }
    games.iter().for_each(|game| block.extend(game));
    let sum = ContentHash::of(&block[CHECKED..]);
    block[..MAGIC.len()].copy_from_slice(MAGIC);
    block[MAGIC.len()..CHECKED].copy_from_slice(&sum.as_bytes()[..CHECKSUM]);
    block
}

/// How the blocks of a segment end.
enum End {
    /// Zeros from here on.
    Free(usize),
    /// Something that is not a block.
    Damaged(usize),
}

/// The whole blocks of a segment from its beginning, each with its key.
fn walk(segment: &Segment) -> (Vec<(ContentHash, usize)>, End) {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        match segment.get(at..at + MAGIC.len()) {
            // The segment is full.
            None => return (found, End::Free(at)),
            Some(magic) if magic.iter().all(|byte| *byte == 0) => return (found, End::Free(at)),
            Some(_) => {}
        }
        let Some((key, end)) = check(segment, at) else {
            return (found, End::Damaged(at));
        };
        found.push((key, at));
        at = end;
    }
}

/// The key of the block that begins at `at` and where it ends; none if it is not whole.
fn check(segment: &Segment, at: usize) -> Option<(ContentHash, usize)> {
    let end = payload_of(segment, at)?.end;
    let magic = segment.get(at..at + MAGIC.len())?;
    let checksum = segment.get(at + MAGIC.len()..at + CHECKED)?;
    let checked = segment.get(at + CHECKED..end)?;
    let good = magic == MAGIC && ContentHash::of(checked).as_bytes()[..CHECKSUM] == *checksum;
    let key = ContentHash::from_bytes(*checked.first_chunk()?);
    good.then_some((key, end))
}

/// Where the games of the block at `at` lie.
fn payload_of(segment: &Segment, at: usize) -> Option<std::ops::Range<usize>> {
    let begin = at + HEADER;
    let length = segment.get(begin - 8..begin)?.first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let end = begin.checked_add(length)?;
    (end <= segment.bytes()).then_some(begin..end)
}

/// The games of the block at `at`.
fn games_of(segment: &Arc<Segment>, at: usize) -> Option<Vec<StoredGame>> {
    let payload = payload_of(segment, at)?;
    let bytes = segment.get(payload.clone())?;
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let lengths = rest.get(..count.checked_mul(4)?)?.as_chunks::<4>().0;
    let mut begin = payload.start + 4 + 4 * count;
    let mut games = Vec::with_capacity(count);
    for length in lengths {
        let length = u32::from_le_bytes(*length);
        games.push(StoredGame::at(segment, begin, length)?);
        begin += length as usize;
    }
    Some(games)
}

#[cfg(test)]
mod tests;
