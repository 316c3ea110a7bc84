//! From a chunk's bytes to games for the buffers, one game in memory at a time.

use rookery_common::chunk::{Caps, ChunkError, ChunkReader, GameKind};
use rookery_common::ids::ContentHash;

use crate::buffer::StoredGame;

/// The games of a chunk that training may use.
#[derive(Debug)]
pub struct DecodedChunk {
    /// The chunk's SHA-256.
    pub hash: ContentHash,
    /// Its games, in the chunk's order.
    pub games: Vec<StoredGame>,
}

impl DecodedChunk {
    /// Reads a chunk, every move replayed. Match games are left out: their moves are chosen to win,
    /// and two networks played them.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] naming the game and ply.
    pub fn read(hash: ContentHash, bytes: &[u8]) -> Result<Self, ChunkError> {
        let mut reader = ChunkReader::open(bytes, &Caps::default())?;
        let mut games = Vec::new();
        while let Some(record) = reader.next_game()? {
            if matches!(record.kind, GameKind::Match { .. }) {
                continue;
            }
            match StoredGame::from_record(&record) {
                Ok(game) => games.push(game),
                Err(error) => {
                    tracing::warn!("game {} of chunk {hash} is left out: {error}", record.index);
                }
            }
        }
        Ok(Self { hash, games })
    }

    /// Positions in the games.
    pub fn positions(&self) -> u64 {
        self.games
            .iter()
            .map(|game| u64::from(game.positions()))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chunk::Side;

    use super::*;
    use crate::testing;

    #[test]
    fn puzzle_games_are_used_and_match_games_are_not() {
        let of = |kind: GameKind| {
            let record = rookery_common::chunk::GameRecord {
                kind,
                ..testing::game(3, 20)
            };
            let (hash, bytes) = testing::chunk_of(&[record]);
            DecodedChunk::read(hash, &bytes).unwrap().positions()
        };
        assert!(of(GameKind::SelfPlay { play_on: true }) > 0);
        assert!(
            of(GameKind::Puzzle {
                puzzle: "a".into(),
                solved: false
            }) > 0
        );
        assert_eq!(
            of(GameKind::Match {
                pair: 0,
                candidate: Side::White
            }),
            0
        );
    }
}
