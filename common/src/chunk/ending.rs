//! Whether a game has ended where, and how, its job's rules end it, where the rules of chess had not.

use shakmaty::{Color, Position};

use super::error::{ChunkError, ChunkErrorCode};
use super::record::{GameKind, GameRecord};
use super::replay::Replayed;
use crate::chess::{EndgameTables, GameHistory, GameResult, Termination, tables};
use crate::params::TableParams;
use crate::play::GameRules;
use crate::play::ending::adjudicated;

fn not_allowed(detail: &str) -> ChunkError {
    ChunkError::new(ChunkErrorCode::TerminationNotAllowed, detail)
}

/// Checks the end of a game, with `own` tables the result of one that tables have ended.
pub(super) fn check(
    replayed: &Replayed,
    rules: &GameRules,
    own: Option<&dyn EndgameTables>,
) -> Result<(), ChunkError> {
    check_passed_over(replayed, rules)?;
    if replayed.history.end().is_some() {
        return Ok(());
    }
    let game = &replayed.game;
    let (plies, end) = (game.plies.as_slice(), game.end);
    let mover = !replayed.history.turn();
    let misses = |detail: &str| Err(ChunkError::new(ChunkErrorCode::FalseTermination, detail));
    if let Some(due) = rules.resignation(plies, mover, plays_on(game)) {
        return if end == due {
            Ok(())
        } else {
            misses("the last search gives up, and the game ends otherwise")
        };
    }
    match end.termination {
        Termination::Resignation => Err(not_allowed(
            "the last search does not give up in this game, or the job has no resignation",
        )),
        Termination::Adjudication => {
            let agreed = rules
                .adjudicated_winner(plies, mover)
                .or_else(|| rules.winner_to_confirm(plies, mover));
            if agreed.is_some_and(|winner| end == adjudicated(GameResult::win_of(winner))) {
                return Ok(());
            }
            check_judges(rules)?;
            check_tables(&replayed.history, end.result, rules.tables.as_ref(), own)
        }
        _ if rules.adjudicated_winner(plies, mover).is_some() => {
            misses("the last searches agree on a winner, and the game ends otherwise")
        }
        _ => Ok(()),
    }
}

const fn plays_on(game: &GameRecord) -> bool {
    matches!(game.kind, GameKind::SelfPlay { play_on: true })
}

/// No ply before the last one ends the game: no game goes on where the job ends games.
fn check_passed_over(replayed: &Replayed, rules: &GameRules) -> Result<(), ChunkError> {
    if rules.resign.is_none() && rules.adjudication.is_none() {
        return Ok(());
    }
    let game = &replayed.game;
    let mut mover = replayed.first;
    for count in 1..game.plies.len() {
        let plies = &game.plies[..count];
        if rules.resignation(plies, mover, plays_on(game)).is_some()
            || rules.adjudicated_winner(plies, mover).is_some()
        {
            let detail = "the searches before this move had ended the game";
            return Err(ChunkError::new(ChunkErrorCode::PlayedPastEnd, detail).at_ply(count));
        }
        mover = !mover;
    }
    Ok(())
}

fn check_judges(rules: &GameRules) -> Result<(), ChunkError> {
    if rules.adjudication.is_none() && rules.tables.is_none() {
        return Err(not_allowed("the job has no adjudication"));
    }
    Ok(())
}

/// Whether tables may have ended the game here, with this result.
fn check_tables(
    game: &GameHistory,
    result: GameResult,
    params: Option<&TableParams>,
    own: Option<&dyn EndgameTables>,
) -> Result<(), ChunkError> {
    let Some(params) = params else {
        return Err(not_allowed(
            "the last searches do not agree that this side wins",
        ));
    };
    if !tables::decide(game.position(), params.pieces) {
        return Err(not_allowed(
            "neither do the last searches agree nor can tables decide this position",
        ));
    }
    let winners = [Color::White, Color::Black].into_iter();
    let mut bare = winners.filter(|side| game.position().has_insufficient_material(*side));
    if bare.any(|side| result == GameResult::win_of(side)) {
        return Err(not_allowed("the winner has too little to give mate"));
    }
    match own.and_then(|tables| tables.result(game.position())) {
        Some(true_result) if true_result != result => {
            let detail = format!("claimed {result:?}, the tables say {true_result:?}");
            Err(ChunkError::new(ChunkErrorCode::FalseResult, detail))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::GameEnd;
    use crate::chess::moves::{canonical_moves, parse_uci};
    use crate::chunk::record::{GameStart, PlyRecord};
    use crate::ids::Seed;
    use crate::params::{AdjudicationParams, EngineParams, ResignParams, SelfPlayParams};

    /// A game of these moves that White, whose searches all say `q`, has won by adjudication.
    fn game(fen: &str, moves: &[&str], q: f32, result: GameResult) -> GameRecord {
        let mut history = GameHistory::from_fen(fen).unwrap();
        let mut plies = Vec::new();
        for text in moves {
            let legal = canonical_moves(history.position());
            let played = parse_uci(history.position(), text).unwrap();
            plies.push(PlyRecord {
                visits: vec![1; legal.len()],
                root_q: history.turn().fold_wb(q, -q),
                ..PlyRecord::new(played)
            });
            history.push(played);
        }
        GameRecord {
            index: 0,
            kind: GameKind::SelfPlay { play_on: false },
            seed: Seed(0),
            start: GameStart {
                fen: Some(fen.to_owned()),
                moves: Vec::new(),
            },
            plies,
            end: GameEnd {
                result,
                termination: Termination::Adjudication,
            },
        }
    }

    const PAWN: &str = "8/8/8/4k3/8/3p4/3KP3/8 w - - 0 1";

    fn is_allowed(
        moves: &[&str],
        q: f32,
        result: GameResult,
        adjudication: Option<AdjudicationParams>,
        tables: Option<TableParams>,
    ) -> bool {
        let params = SelfPlayParams {
            adjudication,
            tables,
            ..SelfPlayParams::default()
        };
        let game = replayed(game(PAWN, moves, q, result));
        check(&game, &GameRules::self_play(&params), None).is_ok()
    }

    fn replayed(game: GameRecord) -> Replayed {
        let mut history = game.start.history().unwrap();
        let first = history.turn();
        game.plies.iter().for_each(|ply| history.push(ply.played));
        Replayed {
            places: Vec::new(),
            first,
            history,
            game,
        }
    }

    const CAPTURE: &[&str] = &["d2d3"];
    const LATER: &[&str] = &["d2d3", "e5d5"];
    const WON: GameResult = GameResult::WhiteWins;

    #[test]
    fn nobody_judges_where_the_job_has_no_judge() {
        assert!(!is_allowed(CAPTURE, 1.0, WON, None, None));
        assert!(!is_allowed(CAPTURE, 1.0, GameResult::Draw, None, None));
    }

    #[test]
    fn tables_judge_only_where_they_decide() {
        let tables = |pieces| Some(TableParams { pieces });
        assert!(is_allowed(CAPTURE, 0.0, WON, None, tables(3)));
        assert!(is_allowed(CAPTURE, 0.0, GameResult::Draw, None, tables(3)));
        assert!(!is_allowed(LATER, 0.0, WON, None, tables(3)), "too late");
        let bare = GameResult::BlackWins;
        assert!(
            !is_allowed(CAPTURE, 0.0, bare, None, tables(3)),
            "a bare king"
        );
        assert!(
            !is_allowed(&["e2e3"], 0.0, WON, None, tables(3)),
            "too many pieces"
        );
    }

    #[test]
    fn searches_judge_only_if_they_agreed_for_long_enough() {
        let agreement = |plies| {
            Some(AdjudicationParams {
                plies,
                win_value: 0.9,
                engine: None,
            })
        };
        assert!(is_allowed(LATER, 0.9, WON, agreement(2), None));
        assert!(!is_allowed(LATER, 0.8, WON, agreement(2), None));
        assert!(!is_allowed(LATER, 0.9, WON, agreement(3), None));
        assert!(!is_allowed(
            LATER,
            0.9,
            GameResult::BlackWins,
            agreement(2),
            None
        ));
        assert!(!is_allowed(
            LATER,
            0.9,
            GameResult::Draw,
            agreement(2),
            None
        ));
    }

    /// Knows one answer.
    #[derive(Debug)]
    struct Answer(Option<GameResult>);

    impl EndgameTables for Answer {
        fn result(&self, _position: &shakmaty::Chess) -> Option<GameResult> {
            self.0
        }
    }

    #[test]
    fn whoever_has_tables_checks_what_they_are_said_to_say() {
        let params = SelfPlayParams {
            tables: Some(TableParams { pieces: 3 }),
            ..SelfPlayParams::default()
        };
        let game = replayed(game(PAWN, CAPTURE, 0.0, WON));
        let rules = GameRules::self_play(&params);
        let with = |answer| check(&game, &rules, Some(&Answer(answer)));
        assert_eq!(with(Some(WON)), Ok(()));
        assert_eq!(with(None), Ok(()), "a position that they do not hold");
        let error = with(Some(GameResult::Draw)).unwrap_err();
        assert_eq!(error.code, ChunkErrorCode::FalseResult);
    }

    /// Kings that go to and fro, six plies; what the searches say of their movers.
    fn walk(values: [f32; 6], end: GameEnd) -> Replayed {
        let moves = ["d2c1", "e5d5", "c1d2", "d5e5", "d2c1", "e5d5"];
        let mut game = game(PAWN, &moves, 0.0, end.result);
        for (ply, value) in game.plies.iter_mut().zip(values) {
            (ply.root_q, ply.best_q) = (value, value);
        }
        game.end = end;
        replayed(game)
    }

    const LIMIT: GameEnd = GameEnd {
        result: GameResult::Draw,
        termination: Termination::PlyLimit,
    };

    fn resigned(result: GameResult) -> GameEnd {
        GameEnd {
            result,
            termination: Termination::Resignation,
        }
    }

    fn verdict(
        params: &SelfPlayParams,
        values: [f32; 6],
        end: GameEnd,
    ) -> Option<(ChunkErrorCode, Option<u32>)> {
        let found = check(&walk(values, end), &GameRules::self_play(params), None);
        found.err().map(|error| (error.code, error.ply))
    }

    #[test]
    fn a_game_ends_with_the_first_search_that_gives_up() {
        let params = SelfPlayParams {
            resign: Some(ResignParams {
                threshold: -0.9,
                play_on_share: 0.0,
            }),
            ..SelfPlayParams::default()
        };
        let verdict = |values, end| verdict(&params, values, end);
        let lost = [-0.95, 0.0, 0.0, 0.0, 0.0, -0.95];
        assert_eq!(
            verdict(lost, resigned(WON)),
            None,
            "never with the first search"
        );
        let other = resigned(GameResult::BlackWins);
        assert_eq!(
            verdict(lost, other),
            Some((ChunkErrorCode::FalseTermination, None))
        );
        assert_eq!(
            verdict(lost, LIMIT),
            Some((ChunkErrorCode::FalseTermination, None))
        );
        let level = [0.0; 6];
        assert_eq!(
            verdict(level, resigned(WON)),
            Some((ChunkErrorCode::TerminationNotAllowed, None))
        );
        let passed_over = [0.0, 0.0, -0.95, 0.0, 0.0, 0.0];
        assert_eq!(
            verdict(passed_over, LIMIT),
            Some((ChunkErrorCode::PlayedPastEnd, Some(3)))
        );
    }

    #[test]
    fn a_game_ends_as_soon_as_both_sides_agree() {
        let params = |engine| SelfPlayParams {
            adjudication: Some(AdjudicationParams {
                plies: 2,
                win_value: 0.9,
                engine,
            }),
            ..SelfPlayParams::default()
        };
        let won = adjudicated(WON);
        let late = [0.9, -0.9, 0.0, 0.0, 0.9, -0.9];
        assert_eq!(
            verdict(&params(None), late, won),
            Some((ChunkErrorCode::PlayedPastEnd, Some(2)))
        );
        assert_eq!(
            verdict(&params(Some(EngineParams::default())), late, won),
            None
        );
        let due = [0.0, 0.0, 0.0, 0.0, 0.9, -0.9];
        assert_eq!(verdict(&params(None), due, won), None);
        assert_eq!(
            verdict(&params(None), due, LIMIT),
            Some((ChunkErrorCode::FalseTermination, None))
        );
        let between = [0.0, 0.0, 0.0, 0.9, -0.9, 0.0];
        assert_eq!(
            verdict(&params(None), between, won),
            Some((ChunkErrorCode::PlayedPastEnd, Some(5)))
        );
    }
}
