//! Whether the moves played are those that the searches and the seed give.

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::replay::Replayed;
use super::fail;
use crate::play::{Chosen, GameRules};

/// The played move is the one that is drawn from the recorded visits, or one with most visits: which of
/// these, audits find.
pub(super) fn check_choice(replayed: &Replayed, rules: &GameRules) -> Result<(), ChunkError> {
    let game = &replayed.game;
    for (ply, (record, place)) in game.plies.iter().zip(&replayed.places).enumerate() {
        let place = usize::from(*place);
        let (visits, target) = (&record.visits, record.target.as_deref());
        let wrong = match rules.choose(game.seed, ply as u32, visits, target, record.effort) {
            Chosen::Place(chosen) => (place != chosen)
                .then_some("the move played is not the one that the seed draws from the visits"),
            Chosen::MostVisited => (Some(visits[place]) < visits.iter().copied().max())
                .then_some("the move played is not one with most visits"),
        };
        if let Some(detail) = wrong {
            return Err(fail(ChunkErrorCode::WrongChoice, detail).at_ply(ply));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::moves::canonical_moves;
    use crate::chess::{GameEnd, Termination};
    use crate::chunk::record::{Effort, GameKind, GameRecord, GameStart, PlyRecord, Side};
    use crate::chunk::testing::{SEED, network, verify_for};
    use crate::ids::{ContentHash, MatchId};
    use crate::params::{MatchParams, PuzzleParams, SearchParams, Temperature};
    use crate::protocol::jobs::{Opening, PairTask, Work};
    use crate::puzzle::Puzzle;

    const PLIES: usize = 6;

    /// Samples at every ply.
    const WARM: Temperature = Temperature {
        start: 1.0,
        end: 1.0,
        plies: 0,
    };

    fn search() -> SearchParams {
        SearchParams {
            visits: 18,
            ..SearchParams::default()
        }
    }

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
                search: search(),
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
                search: search(),
            },
        }
    }

    /// The first game of this work. Searches visit the last legal move most, and at some plies the
    /// first as often; what follows from them is played, but at `others` another one of the two.
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
        let (rules, seed) = (GameRules::of(work), SEED.of_game(0));
        let mut history = start.history().unwrap();
        let mut plies = Vec::new();
        for ply in 0..PLIES {
            let legal = canonical_moves(history.position());
            let last = legal.len() - 1;
            let mut visits = vec![0; legal.len()];
            if last < 2 {
                visits[last] = 18;
            } else {
                visits[last] = 9;
                visits[0] = if ties.contains(&ply) { 9 } else { 8 };
                visits[1] = 9 - visits[0];
            }
            let due = match rules.choose(seed, ply as u32, &visits, None, Effort::Full) {
                Chosen::Place(place) => place,
                Chosen::MostVisited => last,
            };
            let place = match due {
                _ if !others.contains(&ply) => due,
                0 => last,
                _ => 0,
            };
            history.push(legal[place]);
            plies.push(PlyRecord {
                visits,
                ..PlyRecord::new(legal[place])
            });
        }
        GameRecord {
            index: 0,
            kind,
            seed,
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
    fn sampled_moves_are_those_that_the_seed_draws() {
        for work in [a_match(WARM), a_puzzle(WARM)] {
            assert_eq!(refused_at(&work, &[], &[]), None);
            for ply in 0..PLIES {
                assert_eq!(refused_at(&work, &[ply], &[]), Some(ply as u32));
            }
        }
        let cooling = a_match(Temperature {
            start: 1.0,
            end: 0.0,
            plies: 2,
        });
        assert_eq!(refused_at(&cooling, &[2], &[2]), None, "one of the best");
        assert_eq!(refused_at(&cooling, &[1], &[]), Some(1));
    }

    #[test]
    fn a_puzzles_solver_plays_a_move_with_most_visits() {
        let warm = a_puzzle(WARM);
        assert_eq!(refused_at(&warm, &[0, 2, 4], &[0, 2, 4]), None);
        let cold = a_puzzle(Temperature::NONE);
        assert_eq!(refused_at(&cold, &[3], &[]), Some(3));
    }
}
