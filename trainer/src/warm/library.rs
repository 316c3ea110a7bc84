//! Games of people kept beside a run's own, to be mixed into its batches.
//!
//! A file is read once; its games are packed into a folder of their own, from which a later session
//! takes them back. A file that has changed, or is to be read in another way, is read anew.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use rookery_common::ids::ContentHash;
use rookery_common::pgn::{PgnGame, Skipped};
use rookery_common::text::quantity;

use super::filter::Filter;
use crate::buffer::{GameStore, StoredGame, Window, record};
use rookery_cli::Shutdown;
use rookery_cli::pgn::{BytesRead, Ended, each_game};

/// Games of a block.
const PART: usize = 1024;

/// Files whose games are mixed into a run's batches.
#[derive(Debug, Clone, PartialEq)]
pub struct Library {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Which of their games are taken, all positions of each after the first plies.
    pub filter: Filter,
    /// The share of every batch that they get, 0 to 1.
    pub share: f64,
}

impl Library {
    /// The games of all files, those of the last file newest. What has not been read yet is read and
    /// kept in `folder`; none if the user stops meanwhile.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, the folder cannot be written, or there is no game to learn from.
    pub fn open(&self, folder: PathBuf, shutdown: &Shutdown) -> anyhow::Result<Option<Window>> {
        let mut store = GameStore::open(folder)?;
        let mut games = Vec::new();
        for path in &self.files {
            let name = self.name(path)?;
            let kept = match kept(&store, name) {
                Some(kept) => kept,
                None => match self.read(path, name, &mut store, shutdown)? {
                    Some(read) => read,
                    None => return Ok(None),
                },
            };
            tracing::info!(
                "mixed in: {} of {}",
                quantity(kept.len(), "game"),
                path.display()
            );
            games.extend(kept);
        }
        store.sweep()?;
        anyhow::ensure!(
            !games.is_empty(),
            "RK-0708: the PGN files have no game to learn from; those without ratings are used with \
             --pgn-assume-elo"
        );
        games.reverse();
        Ok(Some(Window::new(games, u64::MAX)))
    }

    /// What a file's games are kept under: it follows from all that they depend on, but for the
    /// file's bytes, in whose place stand its length and the time of its last change.
    fn name(&self, path: &Path) -> anyhow::Result<ContentHash> {
        let cannot = || format!("cannot read {}", path.display());
        let metadata = std::fs::metadata(path).with_context(cannot)?;
        let changed = metadata.modified().with_context(cannot)?;
        let changed = changed.duration_since(SystemTime::UNIX_EPOCH);
        let changed = changed.unwrap_or_default().as_nanos();
        let text = serde_json::to_vec(&(path, metadata.len(), changed.to_string(), &self.filter))?;
        Ok(ContentHash::of(&text))
    }

    fn read(
        &self,
        path: &Path,
        name: ContentHash,
        store: &mut GameStore,
        shutdown: &Shutdown,
    ) -> anyhow::Result<Option<Vec<StoredGame>>> {
        tracing::info!("reading {}", path.display());
        let (mut part, mut parts, mut kept) = (Vec::new(), 0, Vec::new());
        let ended = each_game(path, &BytesRead::default(), |game| {
            part.extend(game.and_then(|game| self.pack(&game)).ok());
            if part.len() == PART {
                let games = std::mem::take(&mut part);
                kept.extend(keep_part(store, name, parts, &games)?);
                parts += 1;
            }
            Ok(shutdown.flow())
        })?;
        if ended == Ended::Stopped {
            return Ok(None);
        }
        kept.extend(keep_part(store, name, parts, &part)?);
        // The rest of a file that breaks off may be there the next time.
        if ended == Ended::Whole {
            store.add(end_of(name, parts + 1), &[])?;
        }
        Ok(Some(kept))
    }

    fn pack(&self, game: &PgnGame) -> Result<Vec<u8>, Skipped> {
        let shares = self.filter.shares(game)?;
        let values: Vec<_> = (0..game.moves.len()).map(|ply| game.value(ply)).collect();
        let played = record::Played {
            start: game.start.position(),
            moves: &game.moves,
            values: &values,
            given: self.filter.skip_plies as usize,
            shares,
            result: game.result.ok_or(Skipped::NoResult)?,
        };
        record::pack_played(&played).map_err(|_| Skipped::BadStart)
    }
}

/// Keeps a part, unless an earlier session, which did not come to the end, has.
fn keep_part(
    store: &mut GameStore,
    name: ContentHash,
    number: u64,
    games: &[Vec<u8>],
) -> anyhow::Result<Vec<StoredGame>> {
    let key = part_of(name, number);
    match store.get(key) {
        // The last part of a file that broke off had fewer games.
        Some(kept) if kept.len() == games.len() => Ok(kept),
        _ => store.add(key, games),
    }
}

/// All games of a file, if it was read to its end and nothing of it is lost.
fn kept(store: &GameStore, name: ContentHash) -> Option<Vec<StoredGame>> {
    let parts = (0..).map_while(|number| store.get(part_of(name, number)));
    let parts: Vec<_> = parts.collect();
    store.get(end_of(name, parts.len() as u64))?;
    Some(parts.into_iter().flatten().collect())
}

fn part_of(name: ContentHash, number: u64) -> ContentHash {
    key(name, b"part", number)
}

/// The key of an empty block that holds the number of parts of a file.
fn end_of(name: ContentHash, parts: u64) -> ContentHash {
    key(name, b"ends", parts)
}

fn key(name: ContentHash, what: &[u8; 4], number: u64) -> ContentHash {
    ContentHash::of(&[&name.as_bytes()[..], what, &number.to_le_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    const GAMES: [&str; 3] = [
        "[WhiteElo \"1000\"]\n[BlackElo \"2500\"]\n[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n",
        "[WhiteElo \"2600\"]\n[BlackElo \"2500\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Qh5 Nc6 1-0\n\n",
        "[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n",
    ];

    fn library(file: &Path, min_elo: f64) -> Library {
        Library {
            files: vec![file.to_owned()],
            filter: Filter {
                min_elo,
                assumed_elo: None,
                skip_plies: 1,
                positions_per_game: None,
            },
            share: 0.2,
        }
    }

    #[test]
    fn a_file_is_read_once_and_again_when_it_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let (file, folder) = (dir.path().join("a.pgn"), dir.path().join("pgn"));
        std::fs::write(&file, GAMES.concat()).unwrap();
        let positions = |library: &Library| {
            let opened = library.open(folder.clone(), &Shutdown::default());
            opened.unwrap().unwrap().len()
        };
        let all = library(&file, 0.0);
        assert_eq!(
            positions(&all),
            6,
            "two rated games of four plies, but for the first"
        );
        let store = GameStore::open(folder.clone()).unwrap();
        assert_eq!(kept(&store, all.name(&file).unwrap()).unwrap().len(), 2);
        drop(store);
        assert_eq!(positions(&all), 6);
        assert_eq!(positions(&library(&file, 2000.0)), 3);
        std::fs::write(&file, GAMES[..2].concat().repeat(900)).unwrap();
        assert_eq!(positions(&all), 900 * 6, "more than a part");
        std::fs::write(&file, GAMES[2]).unwrap();
        let error = all.open(folder.clone(), &Shutdown::default()).unwrap_err();
        assert!(
            error.to_string().contains("no game to learn from"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_breaks_off_is_read_again_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let (file, folder) = (dir.path().join("a.pgn.gz"), dir.path().join("pgn"));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        std::io::Write::write_all(&mut gzip, GAMES.concat().repeat(50).as_bytes()).unwrap();
        let whole = gzip.finish().unwrap();
        std::fs::write(&file, &whole[..whole.len() - 20]).unwrap();
        let library = library(&file, 0.0);
        let name = library.name(&file).unwrap();
        let open = || {
            let opened = library.open(folder.clone(), &Shutdown::default());
            opened.unwrap().unwrap().games()
        };
        let games = open();
        assert!((1..=100).contains(&games), "{games}");
        let mut store = GameStore::open(folder.clone()).unwrap();
        assert!(kept(&store, name).is_none());
        // Earlier it broke off after its first game.
        let packed = library.pack(&first_game(&file)).unwrap();
        store.add(part_of(name, 0), &[packed]).unwrap();
        drop(store);
        assert_eq!(open(), games);
    }

    fn first_game(file: &Path) -> PgnGame {
        let mut first = None;
        each_game(file, &BytesRead::default(), |game| {
            first = game.ok();
            Ok(ControlFlow::Break(()))
        })
        .unwrap();
        first.unwrap()
    }

    #[test]
    fn reading_that_was_stopped_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (file, folder) = (dir.path().join("a.pgn"), dir.path().join("pgn"));
        std::fs::write(&file, GAMES.concat()).unwrap();
        let shutdown = Shutdown::default();
        shutdown.request();
        let library = library(&file, 0.0);
        assert!(library.open(folder.clone(), &shutdown).unwrap().is_none());
        let opened = library.open(folder, &Shutdown::default()).unwrap();
        assert_eq!(opened.unwrap().games(), 2);
    }
}
