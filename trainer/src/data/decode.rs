//! From a chunk's bytes to games for the buffers, one game in memory at a time.

use rookery_common::chunk::{Caps, ChunkError, ChunkReader, GameKind, PlayedOn, played_on};
use rookery_common::ids::ContentHash;
use rookery_common::params::ResignParams;

use crate::buffer::StoredGame;

/// The games of a chunk that training may use.
#[derive(Debug)]
pub struct DecodedChunk {
    /// The chunk's SHA-256.
    pub hash: ContentHash,
    /// Its games, in the chunk's order.
    pub games: Vec<StoredGame>,
    /// What those that were played on say of resigning.
    pub played_on: Vec<PlayedOn>,
}

impl DecodedChunk {
    /// Reads a chunk, every move replayed. Match games are left out: their moves are chosen to win,
    /// and two networks played them. `resign` is the rule by which games were played on.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] naming the game and ply.
    pub fn read(
        hash: ContentHash,
        bytes: &[u8],
        resign: Option<&ResignParams>,
    ) -> Result<Self, ChunkError> {
        let mut reader = ChunkReader::open(bytes, &Caps::default())?;
        let (mut games, mut played_on) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next_game()? {
            if matches!(record.kind, GameKind::Match { .. } | GameKind::Audit) {
                continue;
            }
            played_on.extend(resign.and_then(|params| played_on::judge(&record, params)));
            match StoredGame::from_record(&record) {
                Ok(game) => games.push(game),
                Err(error) => {
                    tracing::warn!("game {} of chunk {hash} is left out: {error}", record.index);
                }
            }
        }
        Ok(Self {
            hash,
            games,
            played_on,
        })
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
            DecodedChunk::read(hash, &bytes, None).unwrap().positions()
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
