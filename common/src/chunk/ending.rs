//! Whether a game may have ended as it says: by the job's rules, where the rules of chess had not
//! ended it.

use super::error::{ChunkError, ChunkErrorCode};
use super::record::{GameKind, GameRecord};
use crate::chess::{EndgameTables, GameHistory, GameResult, Termination, tables};
use crate::params::{AdjudicationParams, MatchParams, SelfPlayParams, TableParams};
use shakmaty::{Color, Position};

/// The endings that a game's job allows beside those of chess.
#[derive(Debug, Default)]
pub(super) struct AllowedEndings<'a> {
    resignation: bool,
    adjudication: Option<&'a AdjudicationParams>,
    tables: Option<&'a TableParams>,
}

impl<'a> AllowedEndings<'a> {
    pub(super) fn of_self_play(game: &GameRecord, params: &'a SelfPlayParams) -> Self {
        let resigns = game.kind == GameKind::SelfPlay { play_on: false };
        Self {
            resignation: params.resign.is_some() && resigns,
            adjudication: params.adjudication.as_ref(),
            tables: params.tables.as_ref(),
        }
    }

    pub(super) const fn of_match(params: &'a MatchParams) -> Self {
        Self {
            resignation: false,
            adjudication: params.adjudication.as_ref(),
            tables: params.tables.as_ref(),
        }
    }
}

fn not_allowed(detail: &str) -> ChunkError {
    ChunkError::new(ChunkErrorCode::TerminationNotAllowed, detail)
}

/// Checks the end of a game, with `tables` the result of one that tables have ended.
pub(super) fn check(
    game: &GameRecord,
    allowed: &AllowedEndings<'_>,
    tables: Option<&dyn EndgameTables>,
) -> Result<(), ChunkError> {
    match game.end.termination {
        Termination::Resignation if !allowed.resignation => {
            Err(not_allowed("the job has no resignation in this game"))
        }
        Termination::Adjudication => check_adjudicated(game, allowed, tables),
        _ => Ok(()),
    }
}

/// Somebody must have been allowed to judge, and have had what he judges by. What an engine said
/// cannot be seen here, and what tables said only with tables.
fn check_adjudicated(
    game: &GameRecord,
    allowed: &AllowedEndings<'_>,
    tables: Option<&dyn EndgameTables>,
) -> Result<(), ChunkError> {
    if allowed.adjudication.is_none() && allowed.tables.is_none() {
        return Err(not_allowed("the job has no adjudication"));
    }
    let mut history = game
        .start
        .history()
        .map_err(|error| ChunkError::new(ChunkErrorCode::BadStart, error.to_string()))?;
    let first = history.turn();
    if (allowed.adjudication).is_some_and(|params| agreed(game, first, params)) {
        return Ok(());
    }
    game.plies.iter().for_each(|ply| history.push(ply.played));
    match allowed.tables {
        Some(params) => check_tables(&history, game.end.result, params, tables),
        None => Err(not_allowed(
            "the last searches do not agree that this side wins",
        )),
    }
}

/// Whether the last searches all give the winner at least the agreed value; `first` is the side
/// whose search was the game's first.
fn agreed(game: &GameRecord, first: Color, params: &AdjudicationParams) -> bool {
    let count = params.plies as usize;
    let from = game.plies.len().saturating_sub(count);
    // Thousandths are rounded, so half of one is forgiven.
    let least = params.win_value - 0.000_51;
    let mut last = game.plies.iter().enumerate().skip(from);
    game.plies.len() >= count
        && last.all(|(ply, record)| {
            let mover = if ply % 2 == 0 { first } else { !first };
            record.root_q * f32::from(game.end.result.score_for(mover)) >= least
        })
}

/// Whether tables may have ended the game here, with this result.
fn check_tables(
    game: &GameHistory,
    result: GameResult,
    params: &TableParams,
    own: Option<&dyn EndgameTables>,
) -> Result<(), ChunkError> {
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
    use crate::chunk::record::{Effort, GameStart, PlyRecord};
    use crate::ids::Seed;

    /// A game of these moves that White, whose searches all say `q`, has won by adjudication.
    fn game(fen: &str, moves: &[&str], q: f32, result: GameResult) -> GameRecord {
        let mut history = GameHistory::from_fen(fen).unwrap();
        let mut plies = Vec::new();
        for text in moves {
            let legal = canonical_moves(history.position());
            let played = parse_uci(history.position(), text).unwrap();
            plies.push(PlyRecord {
                played,
                effort: Effort::Full,
                visits: vec![1; legal.len()],
                target: None,
                root_q: history.turn().fold_wb(q, -q),
                root_draw: 0.0,
                best_q: 0.0,
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
        let game = game(PAWN, moves, q, result);
        check(&game, &AllowedEndings::of_self_play(&game, &params), None).is_ok()
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
        let game = game(PAWN, CAPTURE, 0.0, WON);
        let allowed = AllowedEndings::of_self_play(&game, &params);
        let with = |answer| check(&game, &allowed, Some(&Answer(answer)));
        assert_eq!(with(Some(WON)), Ok(()));
        assert_eq!(with(None), Ok(()), "a position that they do not hold");
        let error = with(Some(GameResult::Draw)).unwrap_err();
        assert_eq!(error.code, ChunkErrorCode::FalseResult);
    }
}
