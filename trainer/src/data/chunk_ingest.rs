//! From chunks to the two buffers: what is trained on, and a small share held out to measure on.

use rookery_analysis::probe::games::Counts;
use rookery_common::chunk::PlayedOn;
use rookery_common::ids::ContentHash;
use rookery_common::params::ResignParams;

use super::decode::DecodedChunk;
use crate::buffer::{GameStore, ReplayBuffer, StoredGame, Window};

/// Positions that validation keeps at most.
pub(super) const HELD_OUT_CAPACITY: u64 = 20_000;

/// Which chunks are held out: a share of them, chosen by their hashes, so that a chunk is always
/// on the same side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    share: f64,
}

impl HeldOut {
    /// Holds this share of the chunks out, 0 to 1.
    pub const fn share(share: f64) -> Self {
        Self { share }
    }

    /// Whether a chunk is held out.
    pub fn includes(self, hash: ContentHash) -> bool {
        let bytes = hash.as_bytes();
        let place = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        f64::from(place) < self.share * 2_f64.powi(32)
    }
}

/// The buffers.
#[derive(Debug)]
pub struct ChunkIngest {
    store: GameStore,
    held_out: HeldOut,
    training: ReplayBuffer,
    validation: ReplayBuffer,
    /// The rule by which games of the run are given up.
    resign: Option<ResignParams>,
    resigning: Resigning,
    tactics: Counts,
}

/// The games of a chunk, kept but not in a buffer yet.
#[derive(Debug)]
pub struct ChunkGames {
    /// The chunk's SHA-256.
    pub hash: ContentHash,
    /// Its games, in the chunk's order.
    pub games: Vec<StoredGame>,
}

impl ChunkGames {
    /// Positions in the games.
    pub fn positions(&self) -> u64 {
        self.games
            .iter()
            .map(|game| u64::from(game.positions()))
            .sum()
    }
}

/// What games that were played on have shown of resigning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resigning {
    /// Games that were played on.
    pub played_on: u64,
    /// Those in which a side would have resigned.
    pub resigned: u64,
    /// Those in which the side that would have resigned did not lose: false positives.
    pub wrong: u64,
}

impl Resigning {
    fn count(&mut self, game: PlayedOn) {
        self.played_on += 1;
        self.resigned += u64::from(game != PlayedOn::NeverResigned);
        self.wrong += u64::from(game == PlayedOn::Wrong);
    }

    /// The share of resignations that would have been wrong; none before there was one.
    pub fn wrong_share(&self) -> Option<f64> {
        (self.resigned > 0).then(|| self.wrong as f64 / self.resigned as f64)
    }
}

impl ChunkIngest {
    /// Empty buffers over what `store` keeps; `capacity` positions are kept for training.
    pub fn new(store: GameStore, capacity: u64, held_out: HeldOut) -> Self {
        Self {
            store,
            held_out,
            training: ReplayBuffer::new(capacity),
            validation: ReplayBuffer::new(HELD_OUT_CAPACITY),
            resign: None,
            resigning: Resigning::default(),
            tactics: Counts::default(),
        }
    }

    /// Empties the buffers.
    pub fn clear(&mut self) {
        self.training = ReplayBuffer::new(self.training.capacity());
        self.validation = ReplayBuffer::new(HELD_OUT_CAPACITY);
    }

    /// How many positions are kept for training.
    pub const fn capacity(&self) -> u64 {
        self.training.capacity()
    }

    /// The games of a chunk that was decoded before, if they are still kept.
    pub fn kept(&self, hash: ContentHash) -> Option<ChunkGames> {
        let games = self.store.get(hash)?;
        Some(ChunkGames { hash, games })
    }

    /// Decodes a chunk, which messages call `name`, and keeps its games. One that cannot be decoded is skipped
    /// with a message: the others are still good.
    ///
    /// # Errors
    ///
    /// If the games cannot be written.
    pub fn decode(
        &mut self,
        hash: ContentHash,
        name: &str,
        bytes: &[u8],
    ) -> anyhow::Result<Option<ChunkGames>> {
        let decoded = match DecodedChunk::read(name, bytes, self.resign.as_ref()) {
            Ok(decoded) => decoded,
            Err(error) => {
                tracing::warn!("RK-0721: {name} is left out: {error}");
                return Ok(None);
            }
        };
        (decoded.played_on.into_iter()).for_each(|game| self.resigning.count(game));
        self.tactics += decoded.tactics;
        let games = self.store.add(hash, &decoded.games)?;
        Ok(Some(ChunkGames { hash, games }))
    }

    /// Adds a chunk's games.
    pub fn add(&mut self, chunk: ChunkGames) {
        let held_out = self.held_out.includes(chunk.hash);
        let buffer = if held_out {
            &mut self.validation
        } else {
            &mut self.training
        };
        chunk.games.into_iter().for_each(|game| buffer.add(game));
    }

    /// Removes the files of games that have left the buffers.
    ///
    /// # Errors
    ///
    /// If one cannot be removed.
    pub fn sweep(&mut self) -> anyhow::Result<()> {
        self.store.sweep()
    }

    /// Whether a chunk's positions are trained on.
    pub fn trains_on(&self, hash: ContentHash) -> bool {
        !self.held_out.includes(hash)
    }

    /// The buffer for training.
    pub const fn training(&self) -> &ReplayBuffer {
        &self.training
    }

    /// Measures resigning by this rule from now on.
    pub fn set_resign(&mut self, resign: Option<ResignParams>) {
        self.resign = resign;
    }

    /// What the games added since the last call have shown of resigning.
    pub fn take_resigning(&mut self) -> Resigning {
        std::mem::take(&mut self.resigning)
    }

    /// What the games of self-play added since the last call say of tactics.
    pub fn take_tactics(&mut self) -> Counts {
        std::mem::take(&mut self.tactics)
    }

    /// Changes how many positions are kept for training.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.training.set_capacity(capacity);
    }

    /// All positions held out.
    pub fn validation(&self) -> Window {
        self.validation.window(HELD_OUT_CAPACITY)
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chunk::{GameKind, GameRecord};

    use super::*;
    use crate::testing;

    #[test]
    fn the_same_share_of_chunks_is_always_held_out() {
        let hashes: Vec<_> = (0..2000_u32)
            .map(|n| ContentHash::of(&n.to_le_bytes()))
            .collect();
        let held_out = HeldOut::share(0.1);
        let count = hashes
            .iter()
            .filter(|hash| held_out.includes(**hash))
            .count();
        assert!((150..250).contains(&count), "{count}");
        assert!(
            !hashes
                .iter()
                .any(|hash| HeldOut::share(0.0).includes(*hash))
        );
    }

    #[test]
    fn a_corrupt_chunk_is_skipped_and_the_next_is_used() {
        let (hash, good) = testing::chunk(1, 3);
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 0xff;
        let mut ingest = ChunkIngest::new(GameStore::in_memory(), 1000, HeldOut::share(0.0));
        let none = ingest.decode(ContentHash::of(&bad), "bad", &bad).unwrap();
        assert!(none.is_none());
        let decoded = ingest.decode(hash, "good", &good).unwrap().unwrap();
        ingest.add(decoded);
        assert!(ingest.training().positions() > 0);
    }

    #[test]
    fn games_that_were_played_on_measure_resigning() {
        use rookery_common::chess::{GameEnd, GameResult, Termination};

        // The first mover sees itself lost at its second search.
        let game = |seed, result| {
            let mut game = GameRecord {
                kind: GameKind::SelfPlay { play_on: true },
                end: GameEnd {
                    result,
                    termination: Termination::Adjudication,
                },
                ..(seed..)
                    .map(|seed| testing::game(seed, 12))
                    .find(|game| game.plies.len() == 12)
                    .unwrap()
            };
            for (place, ply) in game.plies.iter_mut().enumerate() {
                (ply.root_q, ply.best_q) = if place == 2 {
                    (-0.99, -0.98)
                } else {
                    (0.0, 0.0)
                };
            }
            game
        };
        let start = |game: &GameRecord| game.start.history().unwrap().turn();
        let mut games = Vec::new();
        for seed in [100, 200, 300] {
            let mover = start(&game(seed, GameResult::Draw));
            games.push(game(seed, GameResult::win_of(!mover)));
        }
        games.push(game(400, GameResult::Draw));
        let (hash, bytes) = testing::chunk_of(&games);
        let mut ingest = ChunkIngest::new(GameStore::in_memory(), 1000, HeldOut::share(0.0));
        ingest.decode(hash, "chunk", &bytes).unwrap();
        assert_eq!(ingest.take_resigning(), Resigning::default());
        ingest.set_resign(Some(ResignParams::default()));
        ingest.decode(hash, "chunk", &bytes).unwrap();
        let measured = ingest.take_resigning();
        assert_eq!(
            (measured.played_on, measured.resigned, measured.wrong),
            (4, 4, 1)
        );
        assert_eq!(measured.wrong_share(), Some(0.25));
        assert_eq!(
            ingest.take_resigning().wrong_share(),
            None,
            "each game counts once"
        );
    }

    #[test]
    fn games_of_self_play_are_probed_for_tactics_once() {
        let self_play = testing::game(3, 40);
        let puzzle = GameRecord {
            kind: GameKind::Puzzle {
                puzzle: "a".into(),
                solved: false,
            },
            ..testing::game(4, 40)
        };
        let mut expected = Counts::default();
        expected.add(&self_play).unwrap();
        assert!(expected.report().hangs > 0, "a game of random moves");
        let mut ingest = ChunkIngest::new(GameStore::in_memory(), 1000, HeldOut::share(0.0));
        let (hash, bytes) = testing::chunk_of(&[self_play]);
        ingest.decode(hash, "self-play", &bytes).unwrap();
        let (hash, bytes) = testing::chunk_of(&[puzzle]);
        ingest.decode(hash, "puzzle", &bytes).unwrap();
        assert_eq!(ingest.take_tactics().report(), expected.report());
        assert_eq!(ingest.take_tactics().report().moves, 0);
    }
}
