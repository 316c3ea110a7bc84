//! What pages tell of many games at once: how they began, what searches expected, how they ended.
//!
//! A chunk is read once; what is told of its games stays in memory.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rookery_common::chess::GameResult;
use rookery_common::chunk::{Caps, ChunkError, ChunkReader, GameRecord};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::matches::GameInfo;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Move, Position as _};

use super::PagesState;
use super::setup::Setup;

/// First moves that are kept.
const OPENING: usize = 6;
/// Games of which something is kept.
const GAMES: usize = 20_000;
/// Chunks that are read for one page; the games of others are told when the page is asked for again.
const READ: usize = 32;

/// What is told of a game.
#[derive(Debug)]
pub(super) struct Digest {
    /// Its first moves, if it began at the start position and none was given.
    pub(super) opening: Option<Vec<String>>,
    /// Whether it began with equal material.
    pub(super) is_level: bool,
    /// When it stood best for the side that lost.
    pub(super) peak: Option<Peak>,
    /// Its last position, and the move that led there.
    pub(super) end: (Chess, Option<Move>),
}

/// The moment at which the side that lost was expected to score most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// Plies before it.
    pub(super) ply: usize,
    /// What two searches in a row expected for it, -1 to 1: one of each side.
    pub(super) value: f32,
}

pub(super) struct Digested {
    pub(super) info: GameInfo,
    pub(super) digest: Arc<Digest>,
}

/// What is told of the games of a chunk, by their places.
type OfChunk = Arc<[Option<Arc<Digest>>]>;

/// What was read before, of the newest chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Digests(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    chunks: HashMap<ContentHash, OfChunk>,
    /// The first one is forgotten first.
    order: VecDeque<ContentHash>,
    games: usize,
}

impl Digests {
    /// These games, in their order, with what is told of each. Those whose chunk cannot be read are left out.
    pub(super) async fn describe(&self, state: &PagesState, games: Vec<GameInfo>) -> Vec<Digested> {
        let mut wanted = HashSet::new();
        let mut read = 0;
        for hash in games.iter().map(|game| game.chunk) {
            if !wanted.insert(hash) || self.0.lock().chunks.contains_key(&hash) || read == READ {
                continue;
            }
            read += 1;
            match of_chunk(state, &hash).await {
                Ok(chunk) => self.0.lock().insert(hash, chunk),
                Err(error) => {
                    tracing::warn!(%hash, "The games of a chunk cannot be shown: {error:#}");
                }
            }
        }
        let kept = self.0.lock();
        let told = |info: GameInfo| {
            let chunk = kept.chunks.get(&info.chunk)?;
            let digest = chunk.get(info.place as usize)?.clone()?;
            Some(Digested { info, digest })
        };
        games.into_iter().filter_map(told).collect()
    }
}

impl Kept {
    fn insert(&mut self, hash: ContentHash, chunk: OfChunk) {
        let games = chunk.len();
        if self.chunks.insert(hash, chunk).is_some() {
            return;
        }
        self.games += games;
        self.order.push_back(hash);
        while self.games > GAMES && self.order.len() > 1 {
            let oldest = self.order.pop_front();
            let forgotten = oldest.and_then(|oldest| self.chunks.remove(&oldest));
            self.games -= forgotten.map_or(0, |chunk| chunk.len());
        }
    }
}

async fn of_chunk(state: &PagesState, hash: &ContentHash) -> anyhow::Result<OfChunk> {
    Ok(state.view_chunk(hash, of_bytes).await??)
}

fn of_bytes(bytes: &[u8]) -> Result<OfChunk, ChunkError> {
    let mut reader = ChunkReader::open(bytes, &Caps::default())?;
    let mut games = Vec::new();
    while let Some(game) = reader.next_game()? {
        games.push(Digest::of(&game).map(Arc::new));
    }
    Ok(games.into())
}

impl Digest {
    /// What is told of a game; nothing if its start is no position.
    fn of(record: &GameRecord) -> Option<Self> {
        let start = &record.start;
        let mut position = start.origin().ok()?.position().clone();
        let is_level = Setup::of(&position).is_level();
        let is_whole = start.fen.is_none() && start.moves.is_empty();
        let for_loser = match record.end.result {
            GameResult::WhiteWins => Some(-1.0),
            GameResult::BlackWins => Some(1.0),
            GameResult::Draw => None,
        };
        let given = start.moves.iter().map(|m| (*m, None));
        let searched = record
            .plies
            .iter()
            .map(|ply| (ply.played, Some(ply.root_q)));
        let (mut opening, mut last) = (Vec::new(), None);
        let (mut peak, mut before) = (None::<Peak>, None);
        for (ply, (m, value)) in given.chain(searched).enumerate() {
            let white = value.map(|value| value * position.turn().fold_wb(1.0, -1.0));
            if let (Some(sign), Some(before), Some(white)) = (for_loser, before, white) {
                let value = sign * f32::midpoint(before, white);
                if peak.is_none_or(|peak| value > peak.value) {
                    peak = Some(Peak { ply, value });
                }
            }
            before = white;
            let san = SanPlus::from_move_and_play_unchecked(&mut position, m);
            if is_whole && opening.len() < OPENING {
                opening.push(san.to_string());
            }
            last = Some(m);
        }
        Some(Self {
            opening: is_whole.then_some(opening),
            is_level,
            peak,
            end: (position, last),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::tests::record;

    /// Fool's mate, with what the mover of each ply expected.
    fn fools_mate(values: [f32; 4]) -> GameRecord {
        let mut record = record(None, 0, "f2f3 e7e5 g2g4 d8h4");
        for (ply, value) in record.plies.iter_mut().zip(values) {
            (ply.root_q, ply.best_q) = (value, value);
        }
        record
    }

    #[test]
    fn a_game_is_told_by_its_first_moves_its_turn_and_its_end() {
        // White expected 0.5 and Black -0.3: the same, nearly. Then both saw the mate.
        let digest = Digest::of(&fools_mate([0.5, -0.3, -1.0, 1.0])).unwrap();
        assert_eq!(digest.opening.unwrap(), ["f3", "e5", "g4", "Qh4#"]);
        let peak = digest.peak.unwrap();
        assert_eq!(peak.ply, 1);
        assert!((peak.value - 0.4).abs() < 1e-6);
        assert!(digest.end.0.is_checkmate());
        assert!(digest.is_level);
    }

    #[test]
    fn a_game_that_begins_without_a_queen_is_not_level() {
        let mut record = fools_mate([0.0; 4]);
        let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNB1KBNR w KQkq - 0 1";
        record.start.fen = Some(fen.to_owned());
        assert!(!Digest::of(&record).unwrap().is_level);
    }

    #[test]
    fn no_opening_is_told_of_a_game_whose_first_moves_were_given() {
        let mut record = fools_mate([0.0; 4]);
        record.start.moves = vec![record.plies.remove(0).played];
        assert_eq!(Digest::of(&record).unwrap().opening, None);
    }

    #[test]
    fn the_oldest_chunks_are_forgotten() {
        let mut kept = Kept::default();
        let chunk = || -> OfChunk { std::iter::repeat_n(None, GAMES / 2).collect() };
        let hashes = [1_u8, 2, 3].map(|n| ContentHash::of(&[n]));
        for hash in hashes {
            kept.insert(hash, chunk());
            kept.insert(hash, chunk());
        }
        let there = hashes.map(|hash| kept.chunks.contains_key(&hash));
        assert_eq!(there, [false, true, true]);
        assert_eq!(kept.games, GAMES);
    }
}
