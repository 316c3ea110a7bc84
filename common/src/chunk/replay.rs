//! One game's message, replayed: columns become plies as the moves are made.

use shakmaty::{Color, Move};

use super::columns::{self, BadColumn};
use super::error::{ChunkError, ChunkErrorCode};
use super::record::{Effort, GameKind, GameRecord, GameStart, PlyRecord, Side, from_thousandths};
use super::{Caps, wire};
use crate::chess::moves::canonical_moves;
use crate::chess::{GameEnd, GameHistory, GameResult, Termination, fen};
use crate::ids::Seed;
use crate::protocol::jobs::WorkKind;

fn error(code: ChunkErrorCode, detail: impl Into<String>) -> ChunkError {
    ChunkError::new(code, detail)
}

/// A game, and what replaying it has shown besides.
pub(super) struct Replayed {
    pub(super) game: GameRecord,
    /// For each searched ply the place of its move in canonical order.
    pub(super) places: Vec<u8>,
    /// Who made the first searched move.
    pub(super) first: Color,
    /// The game as it stands at its end.
    pub(super) history: GameHistory,
}

pub(super) fn game_from_wire(
    game: &wire::Game,
    kind: WorkKind,
    caps: &Caps,
) -> Result<Replayed, ChunkError> {
    let end = end_from_wire(game)?;
    if game.opening.len() + game.moves.len() > caps.plies {
        let detail = format!("the game has more than {} plies", caps.plies);
        return Err(error(ChunkErrorCode::TooLarge, detail));
    }
    let mut history = start_position(game)?;
    let (drawn, chosen) = chosen(game)?;
    let mut chosen_moves = Vec::with_capacity(game.chosen.len());
    let start = GameStart {
        fen: (!game.fen.is_empty()).then(|| game.fen.clone()),
        moves: play_opening(&mut history, &game.opening, drawn, &mut chosen_moves)?,
    };
    let first = history.turn();
    check_unused(game, kind)?;
    let mut columns = Plies::new(game, chosen, chosen_moves)?;
    let plies = columns.replay(&mut history)?;
    check_end(&history, end)?;
    let seed = Seed(game.seed);
    let game = GameRecord {
        index: game.index,
        kind: kind_from_wire(game, kind, columns.chosen_moves)?,
        seed,
        start,
        plies,
        end,
    };
    Ok(Replayed {
        game,
        places: columns.played,
        first,
        history,
    })
}

/// Fields of other kinds of games must be empty: no check reads them, and chunks are kept.
fn check_unused(game: &wire::Game, kind: WorkKind) -> Result<(), ChunkError> {
    let used = |by| kind == by;
    let unused = [
        ("play_on", game.play_on && !used(WorkKind::SelfPlay)),
        (
            "puzzle",
            !game.puzzle.is_empty() && !used(WorkKind::Puzzles),
        ),
        ("solved", game.solved && !used(WorkKind::Puzzles)),
        ("pair", game.pair != 0 && !used(WorkKind::Match)),
        (
            "candidate_black",
            game.candidate_black && !used(WorkKind::Match),
        ),
        ("chosen", !game.chosen.is_empty() && !used(WorkKind::Audit)),
    ];
    match unused.iter().find(|(_, present)| *present) {
        Some((field, _)) => {
            let detail = format!("a {} game has no field `{field}`", kind.name());
            Err(error(ChunkErrorCode::UnusedField, detail))
        }
        None => Ok(()),
    }
}

fn end_from_wire(game: &wire::Game) -> Result<GameEnd, ChunkError> {
    let missing = |what| error(ChunkErrorCode::BadSchema, format!("the game has no {what}"));
    Ok(GameEnd {
        result: game.result().known().ok_or_else(|| missing("result"))?,
        termination: game
            .termination()
            .known()
            .ok_or_else(|| missing("termination"))?,
    })
}

fn kind_from_wire(
    game: &wire::Game,
    kind: WorkKind,
    chosen: Vec<Move>,
) -> Result<GameKind, ChunkError> {
    match kind {
        WorkKind::SelfPlay => Ok(GameKind::SelfPlay {
            play_on: game.play_on,
        }),
        WorkKind::Puzzles if game.puzzle.len() > 32 => Err(error(
            ChunkErrorCode::BadSchema,
            "the puzzle's name is longer than 32 bytes",
        )),
        WorkKind::Puzzles => Ok(GameKind::Puzzle {
            puzzle: game.puzzle.clone(),
            solved: game.solved,
        }),
        WorkKind::Match => {
            let candidate = if game.candidate_black {
                Side::Black
            } else {
                Side::White
            };
            Ok(GameKind::Match {
                pair: game.pair,
                candidate,
            })
        }
        WorkKind::Audit => Ok(GameKind::Audit { chosen }),
    }
}

fn start_position(game: &wire::Game) -> Result<GameHistory, ChunkError> {
    if game.fen.is_empty() {
        return Ok(GameHistory::default());
    }
    GameHistory::from_fen(&game.fen).map_err(|e| error(ChunkErrorCode::BadStart, e.to_string()))
}

/// `drawn` are the places of moves that an audit has drawn in the place of the last ones.
fn play_opening(
    history: &mut GameHistory,
    places: &[u8],
    drawn: &[u8],
    drawn_moves: &mut Vec<Move>,
) -> Result<Vec<Move>, ChunkError> {
    let given = places.len() - drawn.len();
    let mut moves = Vec::with_capacity(places.len());
    for (index, place) in places.iter().enumerate() {
        let legal = canonical_moves(history.position());
        let ended = history.draw_by_rule().is_some();
        let chosen = legal
            .get(usize::from(*place))
            .filter(|_| !ended)
            .ok_or_else(|| {
                error(
                    ChunkErrorCode::BadStart,
                    format!("given move {index} cannot be played"),
                )
            })?;
        if let Some(place) = index.checked_sub(given) {
            drawn_moves.push(nth(&legal, drawn[place])?);
        }
        history.push(*chosen);
        moves.push(*chosen);
    }
    Ok(moves)
}

/// The columns of a game, being read.
struct Plies<'a> {
    places: &'a [u8],
    visits: &'a [u8],
    targets: Option<&'a [u8]>,
    effort: Vec<Effort>,
    values: Values<'a>,
    /// Of an audit: places of the moves that follow from the searches.
    chosen: &'a [u8],
    /// The places of the moves played so far.
    played: Vec<u8>,
    chosen_moves: Vec<Move>,
}

impl<'a> Plies<'a> {
    fn new(
        game: &'a wire::Game,
        chosen: &'a [u8],
        chosen_moves: Vec<Move>,
    ) -> Result<Self, ChunkError> {
        Ok(Self {
            places: &game.moves,
            visits: &game.visits,
            targets: (!game.targets.is_empty()).then_some(&game.targets),
            effort: efforts(&game.fast, game.moves.len())?,
            values: Values::split(&game.values, game.moves.len())?,
            chosen,
            played: Vec::with_capacity(game.moves.len()),
            chosen_moves,
        })
    }

    fn replay(&mut self, history: &mut GameHistory) -> Result<Vec<PlyRecord>, ChunkError> {
        let mut plies = Vec::with_capacity(self.places.len());
        for ply in 0..self.places.len() {
            plies.push(self.ply(history, ply).map_err(|error| error.at_ply(ply))?);
        }
        let rest = self.visits.len() + self.targets.map_or(0, <[u8]>::len);
        if rest > 0 {
            let detail = format!("{rest} bytes of visits or targets follow the last ply");
            return Err(error(ChunkErrorCode::BadSchema, detail));
        }
        Ok(plies)
    }

    fn ply(&mut self, history: &mut GameHistory, ply: usize) -> Result<PlyRecord, ChunkError> {
        let legal = canonical_moves(history.position());
        if legal.is_empty() || history.draw_by_rule().is_some() {
            let detail = "the rules had ended the game before this move";
            return Err(error(ChunkErrorCode::PlayedPastEnd, detail));
        }
        let visits = self.take_visits(legal.len())?;
        let target = self.take_target(legal.len(), ply)?;
        let place = nth_by_visits(&visits, usize::from(self.places[ply])).ok_or_else(|| {
            let detail = format!("move {} of {}", self.places[ply], legal.len());
            error(ChunkErrorCode::IllegalMove, detail)
        })?;
        let (root_q, root_draw, best_q) = self.values.next(history)?;
        if let Some(place) = self.chosen.get(ply) {
            self.chosen_moves.push(nth(&legal, *place)?);
        }
        let played = legal[place];
        // There are at most 218.
        self.played.push(place as u8);
        history.push(played);
        let effort = self.effort[ply];
        Ok(PlyRecord {
            played,
            effort,
            visits,
            target,
            root_q,
            root_draw,
            best_q,
        })
    }

    fn take_visits(&mut self, moves: usize) -> Result<Vec<u32>, ChunkError> {
        let visits: Vec<u32> =
            columns::take_counts(&mut self.visits, moves).map_err(|BadColumn| {
                error(
                    ChunkErrorCode::BadVisits,
                    format!("no visit counts for {moves} legal moves"),
                )
            })?;
        if visits.iter().all(|n| *n == 0) {
            return Err(error(ChunkErrorCode::BadVisits, "no move was visited"));
        }
        Ok(visits)
    }

    fn take_target(&mut self, moves: usize, ply: usize) -> Result<Option<Vec<u16>>, ChunkError> {
        let Some(column) = &mut self.targets else {
            return Ok(None);
        };
        if self.effort[ply] == Effort::Fast {
            return Ok(None);
        }
        let bad = |detail: &str| error(ChunkErrorCode::BadTarget, detail);
        let weights: Vec<u16> = columns::take_counts(column, moves)
            .map_err(|BadColumn| bad("not as many weights as legal moves, or one above 65535"))?;
        if weights.iter().all(|w| *w == 0) {
            return Err(bad("every weight is zero"));
        }
        Ok(Some(weights))
    }
}

/// The place in canonical order of the move that is `rank`-th by visits, most first, ties in
/// canonical order.
fn nth_by_visits(visits: &[u32], rank: usize) -> Option<usize> {
    if rank >= visits.len() {
        return None;
    }
    let key = |(place, visits): (usize, &u32)| u64::from(u32::MAX - visits) << 32 | place as u64;
    let mut keys: Vec<u64> = visits.iter().enumerate().map(key).collect();
    let (_, chosen, _) = keys.select_nth_unstable(rank);
    Some((*chosen & u64::from(u32::MAX)) as usize)
}

/// The rank by visits of the move at `place`: the inverse of [`nth_by_visits`].
pub(super) fn rank_by_visits(visits: &[u32], place: usize) -> usize {
    let own = visits[place];
    let before = visits[..place].iter().filter(|n| **n >= own).count();
    before + visits[place + 1..].iter().filter(|n| **n > own).count()
}

/// The moves that an audit draws before its first search, and those that follow from each of its searches;
/// none in games of other kinds.
fn chosen(game: &wire::Game) -> Result<(&[u8], &[u8]), ChunkError> {
    if game.chosen.is_empty() {
        return Ok((&[], &[]));
    }
    match game.chosen.len().checked_sub(game.moves.len()) {
        Some(drawn) if drawn <= game.opening.len() => Ok(game.chosen.split_at(drawn)),
        _ => {
            let detail = "not one chosen move for each ply";
            Err(error(ChunkErrorCode::BadSchema, detail))
        }
    }
}

/// The legal move at a place of which an audit says that it follows there.
fn nth(legal: &[Move], place: u8) -> Result<Move, ChunkError> {
    legal.get(usize::from(place)).copied().ok_or_else(|| {
        let detail = format!("chosen move {place} of {}", legal.len());
        error(ChunkErrorCode::IllegalMove, detail)
    })
}

fn efforts(fast: &[u32], plies: usize) -> Result<Vec<Effort>, ChunkError> {
    let mut efforts = vec![Effort::Full; plies];
    let mut next = 0_usize;
    for distance in fast {
        next = next.saturating_add(*distance as usize);
        let effort = efforts.get_mut(next).ok_or_else(|| {
            error(
                ChunkErrorCode::BadSchema,
                "a fast ply lies behind the last ply",
            )
        })?;
        *effort = Effort::Fast;
        next += 1;
    }
    Ok(efforts)
}

/// The three value columns, one after the other in `values`: root value for White and root draw
/// probability, each less the ply before; best move's value less the root's, for the mover.
struct Values<'a> {
    root: &'a [u8],
    draw: &'a [u8],
    best: &'a [u8],
    last_root: i32,
    last_draw: i32,
}

/// The highest value, in thousandths.
const HIGHEST: i32 = 1000;

fn bad_values() -> ChunkError {
    error(ChunkErrorCode::BadSchema, "not three values for each ply")
}

impl<'a> Values<'a> {
    fn split(column: &'a [u8], plies: usize) -> Result<Self, ChunkError> {
        let mut rest = column;
        let mut part = || {
            let before = rest;
            for _ in 0..plies {
                columns::take_signed(&mut rest).map_err(|BadColumn| bad_values())?;
            }
            Ok(&before[..before.len() - rest.len()])
        };
        let (root, draw, best) = (part()?, part()?, part()?);
        if !rest.is_empty() {
            return Err(bad_values());
        }
        Ok(Self {
            root,
            draw,
            best,
            last_root: 0,
            last_draw: 0,
        })
    }

    fn next(&mut self, history: &GameHistory) -> Result<(f32, f32, f32), ChunkError> {
        let take = |which: &mut &[u8]| columns::take_signed(which).map_err(|_| bad_values());
        self.last_root = self.last_root.saturating_add(take(&mut self.root)?);
        self.last_draw = self.last_draw.saturating_add(take(&mut self.draw)?);
        let root = history
            .turn()
            .fold_wb(self.last_root, -self.last_root.max(-i32::MAX));
        let best = root.saturating_add(take(&mut self.best)?);
        let range = |what: &str, n: i32, low: i32| {
            if (low..=HIGHEST).contains(&n) {
                Ok(from_thousandths(n))
            } else {
                let detail = format!("the {what} is {n} thousandths");
                Err(error(ChunkErrorCode::BadValue, detail))
            }
        };
        Ok((
            range("root value", root, -HIGHEST)?,
            range("draw probability", self.last_draw, 0)?,
            range("best move's value", best, -HIGHEST)?,
        ))
    }
}

/// Compares the claimed end with the board.
fn check_end(history: &GameHistory, claimed: GameEnd) -> Result<(), ChunkError> {
    match history.end() {
        Some(actual) if actual.termination != claimed.termination => {
            let detail = format!("claimed {claimed:?}, the board shows {actual:?}");
            Err(error(ChunkErrorCode::FalseTermination, detail))
        }
        Some(actual) if actual.result != claimed.result => {
            let detail = format!("claimed {claimed:?}, the board shows {actual:?}");
            Err(error(ChunkErrorCode::FalseResult, detail))
        }
        Some(_) => Ok(()),
        None => check_early_end(history, claimed),
    }
}

/// The board shows no end, so only an end by agreement or limit can be true.
fn check_early_end(history: &GameHistory, claimed: GameEnd) -> Result<(), ChunkError> {
    let false_result = |detail: &str| {
        error(
            ChunkErrorCode::FalseResult,
            format!("{detail}: {claimed:?}"),
        )
    };
    match claimed.termination {
        // Who resigned, the job's rules say.
        Termination::Resignation if claimed.result == GameResult::Draw => {
            Err(false_result("a resigned game has a winner"))
        }
        Termination::PlyLimit if claimed.result != GameResult::Draw => {
            Err(false_result("the ply limit makes a draw"))
        }
        Termination::Resignation | Termination::PlyLimit | Termination::Adjudication => Ok(()),
        termination => {
            let shown = fen(history.position());
            let detail = format!("claimed {termination:?}, but the board shows {shown}");
            Err(error(ChunkErrorCode::FalseTermination, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_and_places_are_inverse(visits in prop::collection::vec(0..5_u32, 1..60)) {
            for place in 0..visits.len() {
                let rank = rank_by_visits(&visits, place);
                prop_assert_eq!(nth_by_visits(&visits, rank), Some(place));
            }
        }
    }
}
