//! From a chunk's bytes to packed games, one decoded game in memory at a time.

use rookery_analysis::probe::games::Counts;
use rookery_common::chunk::{
    Caps, ChunkError, ChunkReader, GameKind, GameRecord, PlayedOn, played_on,
};
use rookery_common::params::ResignParams;

use crate::buffer::record::{self, RecordError};

/// The games of a chunk that training may use.
#[derive(Debug)]
pub struct DecodedChunk {
    /// Its games, packed, in the chunk's order.
    pub games: Vec<Vec<u8>>,
    /// What those that were played on say of resigning.
    pub played_on: Vec<PlayedOn>,
    /// What its games of self-play say of tactics.
    pub tactics: Counts,
}

impl DecodedChunk {
    /// Reads a chunk, every move replayed. Match games are left out: their moves are chosen to win,
    /// and two networks played them. `name` is what messages call the chunk, `resign` the rule by
    /// which games were played on.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] naming the game and ply.
    pub fn read(
        name: &str,
        bytes: &[u8],
        resign: Option<&ResignParams>,
    ) -> Result<Self, ChunkError> {
        let mut reader = ChunkReader::open(bytes, &Caps::default())?;
        let mut decoded = Self {
            games: Vec::new(),
            played_on: Vec::new(),
            tactics: Counts::default(),
        };
        while let Some(record) = reader.next_game()? {
            if matches!(record.kind, GameKind::Match { .. } | GameKind::Audit { .. }) {
                continue;
            }
            let judged = resign.and_then(|params| played_on::judge(&record, params));
            decoded.played_on.extend(judged);
            if let Err(error) = decoded.add(&record) {
                tracing::warn!(
                    "RK-0721: game {} of {name} is left out: {error}",
                    record.index
                );
            }
        }
        Ok(decoded)
    }

    fn add(&mut self, record: &GameRecord) -> Result<(), RecordError> {
        self.games.push(record::pack(record)?);
        if matches!(record.kind, GameKind::SelfPlay { .. }) {
            self.tactics.add(record)?;
        }
        Ok(())
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
            let (_, bytes) = testing::chunk_of(&[record]);
            DecodedChunk::read("chunk", &bytes, None)
                .unwrap()
                .games
                .len()
        };
        assert_eq!(of(GameKind::SelfPlay { play_on: true }), 1);
        assert_eq!(
            of(GameKind::Puzzle {
                puzzle: "a".into(),
                solved: false
            }),
            1
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
