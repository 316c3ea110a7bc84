//! A game as the viewer steps through it: every position with the search that was made in it.

use rookery_common::chess::moves::{canonical_moves, castling_mode, uci};
use rookery_common::chess::{StartError, fen};
use rookery_common::chunk::{Effort, GameRecord, PlyRecord};
use serde::Serialize;
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Chess, Move, Position};

/// Most moves that are shown of a search.
const TOP: usize = 6;

/// A game from its start to its end.
#[derive(Debug)]
pub(super) struct Steps {
    /// Positions, one more than moves.
    pub positions: Vec<Step>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub position: Chess,
    /// The move that led to it; none at the start.
    pub arrived: Option<Arrival>,
    /// The search that was made in it, if there was one.
    pub search: Option<Search>,
}

/// A move and the number that stands before it.
#[derive(Debug)]
pub(super) struct Arrival {
    pub m: Move,
    /// In standard algebraic notation.
    pub san: String,
    /// The number of the move, counted as score sheets do.
    pub number: u32,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Search {
    /// The root's value for White, -1 to 1.
    pub white: f32,
    /// The root's probability of a draw.
    pub draw: f32,
    /// Visits in all.
    pub visits: u64,
    pub full: bool,
    /// Moves with most visits.
    pub top: Vec<TopMove>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct TopMove {
    /// In UCI, castling as king takes rook only in Chess960.
    pub uci: String,
    /// In standard algebraic notation.
    pub san: String,
    /// Its share of the visits, in percent.
    pub share: f64,
    pub played: bool,
}

/// What the viewer's script needs of a position.
#[derive(Debug, Serialize)]
pub(super) struct StepJson<'a> {
    fen: String,
    last: Option<[String; 2]>,
    check: bool,
    search: Option<&'a Search>,
}

impl Steps {
    /// Plays a game through.
    /// It is an error if the game's start is not a position; in games read from a chunk it always is one.
    pub(super) fn of(record: &GameRecord) -> Result<Self, StartError> {
        let start = record.start.origin()?.position().clone();
        let mode = castling_mode(&start);
        let mut steps = Self {
            positions: vec![Step {
                position: start,
                arrived: None,
                search: None,
            }],
        };
        record.start.moves.iter().for_each(|m| steps.play(*m));
        for ply in &record.plies {
            if let Some(step) = steps.positions.last_mut() {
                step.search = Some(Search::of(ply, &step.position, mode));
            }
            steps.play(ply.played);
        }
        Ok(steps)
    }

    fn play(&mut self, m: Move) {
        let Some(last) = self.positions.last() else {
            return;
        };
        let mut position = last.position.clone();
        let number = position.fullmoves().get();
        let san = SanPlus::from_move_and_play_unchecked(&mut position, m).to_string();
        let arrived = Some(Arrival { m, san, number });
        self.positions.push(Step {
            position,
            arrived,
            search: None,
        });
    }
}

impl Search {
    fn of(ply: &PlyRecord, position: &Chess, mode: CastlingMode) -> Self {
        let visits: u64 = ply.visits.iter().map(|n| u64::from(*n)).sum();
        let mut moves: Vec<(Move, u32)> = canonical_moves(position)
            .into_iter()
            .zip(ply.visits.iter().copied())
            .collect();
        moves.sort_by_key(|(m, n)| (std::cmp::Reverse(*n), *m != ply.played));
        moves.truncate(TOP);
        let top = moves
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(m, n)| TopMove {
                uci: uci(m, mode),
                san: SanPlus::from_move(position.clone(), m).to_string(),
                share: (1_000.0 * f64::from(n) / visits.max(1) as f64).round() / 10.0,
                played: m == ply.played,
            });
        Self {
            white: ply.root_q * position.turn().fold_wb(1.0, -1.0),
            draw: ply.root_draw,
            visits,
            full: ply.effort == Effort::Full,
            top: top.collect(),
        }
    }

    /// White's, the drawn and Black's share of the expected result, in percent.
    pub(super) fn shares(&self) -> [f64; 3] {
        let (value, draw) = (f64::from(self.white), f64::from(self.draw).clamp(0.0, 1.0));
        let white = ((1.0 - draw + value) / 2.0).clamp(0.0, 1.0 - draw);
        [white, draw, 1.0 - draw - white].map(|share| 100.0 * share)
    }
}

impl Step {
    /// What the viewer's script needs.
    pub(super) fn json(&self) -> StepJson<'_> {
        let squares = |m: Move| m.from().map(|from| [from.to_string(), m.to().to_string()]);
        StepJson {
            fen: fen(&self.position),
            last: self.arrived.as_ref().and_then(|arrived| squares(arrived.m)),
            check: self.position.is_check(),
            search: self.search.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::tests::record;

    #[test]
    fn searches_stand_in_the_positions_where_they_were_made() {
        let mut record = record(None, 1, "e2e4 e7e5");
        let legal = canonical_moves(record.start.history().unwrap().position());
        let reply = &mut record.plies[0];
        let place = legal.iter().position(|m| *m == reply.played).unwrap();
        reply.visits.fill(0);
        (reply.visits[0], reply.visits[place]) = (10, 30);
        (reply.root_q, reply.root_draw) = (0.5, 0.25);
        let steps = Steps::of(&record).unwrap();
        assert_eq!(steps.positions.len(), 3);
        assert!(steps.positions[0].search.is_none(), "the opening was given");
        let search = steps.positions[1].search.as_ref().unwrap();
        assert_eq!(search.white, -0.5, "Black thinks well of Black");
        let top: Vec<_> = search
            .top
            .iter()
            .map(|m| (m.san.as_str(), m.share, m.played))
            .collect();
        assert_eq!(top, [("e5", 75.0, true), ("a5", 25.0, false)]);
        assert_eq!(search.shares(), [12.5, 25.0, 62.5]);
        let arrived = steps.positions[2].arrived.as_ref().unwrap();
        assert_eq!((arrived.san.as_str(), arrived.number), ("e5", 1));
    }
}
