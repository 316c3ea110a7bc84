//! Whether the moves played are those that the searches give.

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::{GameRecord, PlyRecord};
use super::fail;
use crate::chess::GameHistory;
use crate::chess::moves::canonical_moves;
use crate::params::Temperature;

/// At which plies a temperature samples moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// At all.
    Every,
    /// At every second, not the first: a puzzle's solver plays its best moves.
    EverySecond,
}

/// Where moves are not sampled, the played move is one with most visits.
pub(super) fn check_best_played(
    game: &GameRecord,
    temperature: &Temperature,
    sampling: Sampling,
) -> Result<(), ChunkError> {
    let mut history = game
        .start
        .history()
        .map_err(|error| fail(ChunkErrorCode::BadStart, error.to_string()))?;
    for (ply, record) in game.plies.iter().enumerate() {
        let best = temperature.at(ply as u32) <= 0.0
            || (sampling == Sampling::EverySecond && ply % 2 == 0);
        if best && played_visits(&history, record) < record.visits.iter().copied().max() {
            let detail = "the move played is not one with most visits";
            return Err(fail(ChunkErrorCode::WrongChoice, detail).at_ply(ply));
        }
        history.push(record.played);
    }
    Ok(())
}

fn played_visits(history: &GameHistory, record: &PlyRecord) -> Option<u32> {
    let legal = canonical_moves(history.position());
    let place = legal.iter().position(|m| *m == record.played)?;
    record.visits.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{GameEnd, Termination};
    use crate::chunk::record::{Effort, GameKind, GameStart, Side};
    use crate::chunk::testing::{SEED, network, verify_for};
    use crate::ids::{ContentHash, MatchId};
    use crate::params::{MatchParams, PuzzleParams};
    use crate::protocol::jobs::{Opening, PairTask, Work};
    use crate::puzzle::Puzzle;

    const PLIES: usize = 6;

    /// Samples at every ply.
    const WARM: Temperature = Temperature {
        start: 1.0,
        end: 1.0,
        plies: 0,
    };

    fn a_match(temperature: Temperature) -> Work {
        Work::Match {
            match_id: MatchId(1),
            candidate: network(),
            opponent: ContentHash::of(b"opponent"),
            pairs: vec![PairTask {
                pair: 0,
                opening: Opening::default(),
            }],
            params: MatchParams {
                temperature,
                ply_limit: PLIES as u32,
                ..MatchParams::default()
            },
        }
    }

    fn a_puzzle(temperature: Temperature) -> Work {
        let puzzle = Puzzle {
            id: "x".to_owned(),
            fen: "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1".to_owned(),
            moves: vec!["e2e4".to_owned()],
            setup: 0,
            rating: 0,
            themes: Vec::new(),
        };
        Work::Puzzles {
            network: network(),
            puzzles: vec![puzzle],
            params: PuzzleParams {
                temperature,
                ply_limit: PLIES as u32,
                ..PuzzleParams::default()
            },
        }
    }

    /// The first game of this work. Searches visit the last legal move most, and at some plies the
    /// first as often; the last is played, but the first at `others`.
    fn game(work: &Work, others: &[usize], ties: &[usize]) -> GameRecord {
        let (start, kind) = match work {
            Work::Puzzles { puzzles, .. } => {
                let start = GameStart {
                    fen: Some(puzzles[0].fen.clone()),
                    moves: Vec::new(),
                };
                let (puzzle, solved) = (puzzles[0].id.clone(), false);
                (start, GameKind::Puzzle { puzzle, solved })
            }
            _ => {
                let (pair, candidate) = (0, Side::White);
                (GameStart::default(), GameKind::Match { pair, candidate })
            }
        };
        let mut history = start.history().unwrap();
        let mut plies = Vec::new();
        for ply in 0..PLIES {
            let legal = canonical_moves(history.position());
            let last = legal.len() - 1;
            let mut visits = vec![0; legal.len()];
            visits[last] = 9;
            visits[0] = if ties.contains(&ply) { 9 } else { 8 };
            let played = legal[if others.contains(&ply) { 0 } else { last }];
            history.push(played);
            plies.push(PlyRecord {
                played,
                effort: Effort::Full,
                visits,
                target: None,
                root_q: 0.0,
                root_draw: 0.0,
                best_q: 0.0,
            });
        }
        GameRecord {
            index: 0,
            kind,
            seed: SEED.of_game(0),
            start,
            plies,
            end: GameEnd::draw(Termination::PlyLimit),
        }
    }

    /// At which ply the coordinator refuses the game for a move that its search does not give.
    fn refused_at(work: &Work, others: &[usize], ties: &[usize]) -> Option<u32> {
        match verify_for(&[game(work, others, ties)], work) {
            Ok(_) => None,
            Err(error) => {
                assert_eq!(error.code, ChunkErrorCode::WrongChoice, "{error}");
                assert_eq!(error.game, Some(0), "{error}");
                error.ply
            }
        }
    }

    #[test]
    fn both_sides_of_a_match_play_a_move_with_most_visits() {
        let work = a_match(Temperature::NONE);
        assert_eq!(refused_at(&work, &[], &[]), None);
        for ply in 0..PLIES {
            assert_eq!(refused_at(&work, &[ply], &[]), Some(ply as u32));
            assert_eq!(refused_at(&work, &[ply], &[ply]), None, "one of the best");
        }
    }

    #[test]
    fn moves_are_free_as_long_as_they_are_sampled() {
        let cooling = a_match(Temperature {
            start: 1.0,
            end: 0.0,
            plies: 2,
        });
        assert_eq!(refused_at(&cooling, &[0, 1], &[]), None);
        assert_eq!(refused_at(&cooling, &[0, 1, 2], &[]), Some(2));
        assert_eq!(refused_at(&a_match(WARM), &[0, 1, 2, 3], &[]), None);
    }

    #[test]
    fn a_puzzles_solver_plays_a_move_with_most_visits_even_where_its_opponent_does_not() {
        let warm = a_puzzle(WARM);
        assert_eq!(refused_at(&warm, &[1, 3, 5], &[]), None);
        for ply in [0, 2, 4] {
            assert_eq!(refused_at(&warm, &[ply], &[]), Some(ply as u32));
        }
        let cold = a_puzzle(Temperature::NONE);
        assert_eq!(refused_at(&cold, &[], &[]), None);
        assert_eq!(refused_at(&cold, &[3], &[]), Some(3));
    }
}
