//! A cache of evaluations, shared by games and, if wanted, by threads.
//!
//! ```text
//! slots  | key, position in the log | key, position | …          found by the key's low bits
//!                  |
//! log    | … | win draw loss logit logit … | win draw loss … |   a ring: the oldest are overwritten
//! ```
//!
//! Answers are kept exactly as given, so that a game is the same with and without a cache.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::evaluator::{Batch, Evaluations, Wdl};

/// Everything an evaluator sees of a position, in 128 bits: binary planes, scalar planes, and the
/// policy indices of the legal moves in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CacheKey {
    slot: u64,
    check: u64,
}

impl CacheKey {
    /// The key of the position at `index` of a batch.
    pub fn new(batch: &Batch, index: usize) -> Self {
        Self::of_planes(batch, index, batch.binary_of(index))
    }

    /// The same without what the evaluator sees of the time before the last `earlier` boards: positions to which
    /// different moves led have one key. Lc0's `CacheHistoryLength`.
    pub fn of_newest(batch: &Batch, index: usize, earlier: usize) -> Self {
        let planes = batch.binary_of(index);
        let newest = (earlier + 1) * batch.input().board_planes();
        Self::of_planes(batch, index, &planes[..newest.min(planes.len())])
    }

    fn of_planes(batch: &Batch, index: usize, planes: &[u64]) -> Self {
        let mut hasher = Hasher::default();
        planes.iter().for_each(|plane| hasher.write(*plane));
        for scalar in batch.scalars_of(index) {
            hasher.write(u64::from(scalar.to_bits()));
        }
        for moves in batch.moves_of(index).chunks(4) {
            let word = moves.iter().fold(1, |word, m| word << 16 | u64::from(*m));
            hasher.write(word);
        }
        hasher.finish()
    }
}

/// Two multiply-and-fold hashes side by side (the mixing step of wyhash). Not made to withstand
/// someone who looks for collisions: a collision would only spoil their own games.
struct Hasher {
    a: u64,
    b: u64,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            a: 0x2d35_8dcc_aa6c_78a5,
            b: 0x8bb8_4b93_962e_acc9,
        }
    }
}

impl Hasher {
    fn write(&mut self, word: u64) {
        self.a = fold(self.a ^ word, 0x9e37_79b9_7f4a_7c15);
        self.b = fold(self.b.rotate_left(23) ^ word, 0x4b33_a62e_d433_d4a3);
    }

    fn finish(&self) -> CacheKey {
        let slot = fold(self.a ^ self.b, 0xe703_7ed1_a0b4_28db);
        CacheKey {
            slot,
            check: self.b ^ self.a.rotate_left(32),
        }
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Evaluations by [`CacheKey`], of one evaluator. Share it with `Arc`.
#[derive(Debug)]
pub struct EvaluationCache {
    shards: Vec<Mutex<Shard>>,
    lookups: AtomicU64,
    hits: AtomicU64,
}

/// How often a cache was asked and had an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Questions.
    pub lookups: u64,
    /// Answers.
    pub hits: u64,
}

#[derive(Debug)]
struct Shard {
    slots: Vec<Slot>,
    log: Vec<f32>,
    /// How much was ever written; the log holds the last of it.
    written: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: CacheKey,
    at: u64,
    /// Number of moves; 0 for an empty slot, as positions without moves are never evaluated.
    moves: u32,
}

const SHARDS: usize = 16;
/// Room in the log for each position: its value and 37 moves, a little more than positions have
/// on average.
const FLOATS_PER_POSITION: usize = 40;
const VALUE_FLOATS: usize = 3;

impl EvaluationCache {
    /// A cache for about `positions` positions, some 250 bytes each. With 0 it never has an
    /// answer.
    pub fn new(positions: usize) -> Self {
        let shard = |_| Mutex::new(Shard::new(positions.div_ceil(SHARDS)));
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            lookups: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        }
    }

    /// Adds the answer for `key` to the end of `into`, if it is known.
    pub fn get(&self, key: CacheKey, into: &mut Evaluations) -> bool {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let found = self.shard(key).lock().get(key, into);
        self.hits.fetch_add(u64::from(found), Ordering::Relaxed);
        found
    }

    /// Keeps an answer.
    pub fn insert(&self, key: CacheKey, logits: &[f32], value: Wdl) {
        let mut shard = self.shard(key).lock();
        shard.insert(key, logits, value);
    }

    /// What was asked so far.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            lookups: self.lookups.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
        }
    }

    fn shard(&self, key: CacheKey) -> &Mutex<Shard> {
        &self.shards[key.check as usize % SHARDS]
    }
}

impl Shard {
    fn new(positions: usize) -> Self {
        let slots = if positions == 0 {
            0
        } else {
            (2 * positions).next_power_of_two()
        };
        Self {
            slots: vec![Slot::default(); slots],
            log: vec![0.0; positions * FLOATS_PER_POSITION],
            written: 0,
        }
    }

    fn slot(&self, key: CacheKey) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        Some(key.slot as usize & mask)
    }

    fn get(&self, key: CacheKey, into: &mut Evaluations) -> bool {
        let Some(slot) = self.slot(key).map(|slot| self.slots[slot]) else {
            return false;
        };
        let kept = slot.at + self.log.len() as u64 >= self.written;
        if slot.moves == 0 || slot.key != key || !kept {
            return false;
        }
        let start = (slot.at % self.log.len() as u64) as usize;
        let entry = &self.log[start..start + VALUE_FLOATS + slot.moves as usize];
        let (value, logits) = entry.split_at(VALUE_FLOATS);
        into.values.push(Wdl {
            win: value[0],
            draw: value[1],
            loss: value[2],
        });
        into.logits.extend_from_slice(logits);
        true
    }

    fn insert(&mut self, key: CacheKey, logits: &[f32], value: Wdl) {
        let (Some(slot), need) = (self.slot(key), VALUE_FLOATS + logits.len()) else {
            return;
        };
        let size = self.log.len();
        if need > size {
            return;
        }
        let mut start = (self.written % size as u64) as usize;
        if start + need > size {
            // Entries lie in one piece: the end of the ring stays unused.
            self.written += (size - start) as u64;
            start = 0;
        }
        self.log[start..start + VALUE_FLOATS].copy_from_slice(&[value.win, value.draw, value.loss]);
        self.log[start + VALUE_FLOATS..start + need].copy_from_slice(logits);
        self.slots[slot] = Slot {
            key,
            at: self.written,
            moves: logits.len() as u32,
        };
        self.written += need as u64;
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::encoding::{InputEncoding, PolicyEncoding};
    use shakmaty::Position;

    use super::*;

    fn key(n: u64) -> CacheKey {
        let mut hasher = Hasher::default();
        hasher.write(n);
        hasher.finish()
    }

    #[test]
    fn answers_come_back_exactly() {
        let cache = EvaluationCache::new(100);
        let value = Wdl {
            win: 0.1,
            draw: 0.7,
            loss: 0.2,
        };
        cache.insert(key(1), &[0.1, -3.5], value);
        let mut answer = Evaluations::default();
        assert!(cache.get(key(1), &mut answer));
        assert_eq!(
            answer,
            Evaluations {
                logits: vec![0.1, -3.5],
                values: vec![value]
            }
        );
        assert!(!cache.get(key(2), &mut answer));
        assert_eq!(
            cache.counts(),
            CacheCounts {
                lookups: 2,
                hits: 1
            }
        );
    }

    #[test]
    fn the_newest_answers_stay_and_are_never_mixed_up() {
        let cache = EvaluationCache::new(256);
        let logits = |n: u64| vec![n as f32; 20 + n as usize % 60];
        let mut answer = Evaluations::default();
        for n in 0..5000 {
            cache.insert(key(n), &logits(n), Wdl::DRAW);
            for earlier in n.saturating_sub(300)..=n {
                answer.clear();
                if cache.get(key(earlier), &mut answer) {
                    assert_eq!(answer.logits, logits(earlier));
                }
            }
            assert!(cache.get(key(n), &mut answer), "{n}");
        }
        assert!(!cache.get(key(0), &mut answer));
    }

    #[test]
    fn a_cache_of_nothing_has_nothing() {
        let cache = EvaluationCache::new(0);
        cache.insert(key(1), &[0.5], Wdl::WIN);
        assert!(!cache.get(key(1), &mut Evaluations::default()));
    }

    #[test]
    fn a_key_of_the_newest_boards_ignores_the_order_of_moves_and_nothing_else() {
        for input in [
            InputEncoding::Lc0112,
            InputEncoding::Az119,
            InputEncoding::Classic19,
        ] {
            let mut batch = Batch::new(input, PolicyEncoding::Lc01858);
            let lines = [
                "g1f3 g8f6 b1c3 b8c6", // these three lead to one position, the third by another last move
                "b1c3 g8f6 g1f3 b8c6",
                "b1c3 b8c6 g1f3 g8f6",
                "g1f3 g8f6 b1c3 h7h6 a2a3 b8c6", // and these to others
                "g1f3 g8f6 b1c3 b8c6 f3g1 f6g8 g1f3 g8f6",
            ];
            for line in lines {
                let mut game = GameHistory::default();
                for text in line.split(' ') {
                    let uci: shakmaty::uci::UciMove = text.parse().unwrap();
                    game.push(uci.to_move(game.position()).unwrap());
                }
                batch.push(&game, &game.position().legal_moves());
            }
            let keys = |earlier| -> Vec<_> {
                (0..lines.len())
                    .map(|index| CacheKey::of_newest(&batch, index, earlier))
                    .collect()
            };
            let newest = keys(0);
            assert_eq!(newest[0], newest[1], "{input:?}");
            assert_eq!(newest[0], newest[2], "{input:?}");
            assert_ne!(newest[0], newest[3], "{input:?}");
            assert_ne!(newest[0], newest[4], "{input:?}"); // rule50, and a repetition
            let exact: Vec<_> = (0..lines.len())
                .map(|index| CacheKey::new(&batch, index))
                .collect();
            assert_eq!(keys(7), exact, "{input:?}");
            let history = input != InputEncoding::Classic19;
            assert_eq!(keys(1)[0] != keys(1)[2], history, "{input:?}");
            assert_eq!(exact[0] != exact[1], history, "{input:?}");
        }
    }

    #[test]
    fn the_key_tells_history_and_moves_apart() {
        let mut batch = Batch::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
        let mut game = GameHistory::default();
        let moves = game.position().legal_moves();
        batch.push(&game, &moves);
        batch.push(&game, &moves);
        batch.push(&game, &moves[1..]);
        game.push(moves[0]);
        batch.push(&game, &game.position().legal_moves());
        let keys: Vec<_> = (0..4).map(|index| CacheKey::new(&batch, index)).collect();
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[0], keys[2]);
        assert_ne!(keys[0], keys[3]);
    }
}
