//! What games say of a network's tactics: pieces that are left to be taken, and what material is worth.
//!
//! - A move **hangs** if it loses three pawns' worth or more by [exchange](super::exchange): the opponent's best capture
//!   after it, less what the move itself took. It must be avoidable: another legal move loses less. It is **punished** if the
//!   reply is a capture that wins as much.
//! - A side **is ahead** by the material of a quiet position: the side to move is not in check, and no capture wins
//!   anything. A game counts once for each side and each number of pawns, at the first such position.

use std::ops::AddAssign;

use rookery_common::chess::{GameHistory, GameResult, StartError};
use rookery_common::chunk::{GameKind, GameRecord};
use serde::Serialize;
use shakmaty::{Chess, Color, Move, Position};

use super::exchange::{balance, best_capture, gain, worth};

/// A piece's worth in pawns, from which on a loss counts.
const PIECE: i32 = 3;
/// Cap of the material difference, in pawns.
const MOST_AHEAD: usize = 9;

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    games: u64,
    moves: u64,
    hangs: u64,
    punished: u64,
    ahead: [Ahead; MOST_AHEAD],
}

/// Games of a side that was so far ahead.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    games: u64,
    points: f64,
    /// The side's expectation by its searches, in points.
    believed: f64,
}

/// What there is to report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GamesReport {
    /// Games that were read.
    pub games: u64,
    /// Searched moves in them.
    pub moves: u64,
    /// Moves that hang.
    pub hangs: u64,
    /// Their share of all moves.
    pub hang_rate: Option<f64>,
    /// The share of the hanging moves that were punished.
    pub punished: Option<f64>,
    /// What sides ahead came to, by pawns.
    pub balance: Vec<AheadReport>,
}

/// What sides came to that were so far ahead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AheadReport {
    /// Pawns ahead; the last line holds all above it, too.
    pub ahead: usize,
    /// Games.
    pub games: u64,
    /// Points that the side made, 0 to 1.
    pub score: f64,
    /// Points that its searches expected there.
    pub believed: f64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.games += other.games;
        self.moves += other.moves;
        self.hangs += other.hangs;
        self.punished += other.punished;
        for (one, other) in self.ahead.iter_mut().zip(other.ahead) {
            one.games += other.games;
            one.points += other.points;
            one.believed += other.believed;
        }
    }
}

impl Counts {
    /// Counts a game. Searches that were made again for an audit are no game.
    ///
    /// # Errors
    ///
    /// If its start is no position.
    pub fn add(&mut self, game: &GameRecord) -> Result<(), StartError> {
        if matches!(game.kind, GameKind::Audit { .. }) {
            return Ok(());
        }
        self.games += 1;
        let mut history = game.start.history()?;
        let mut seen = [[false; MOST_AHEAD]; 2];
        let mut hung = false;
        for ply in &game.plies {
            let position = history.position();
            if hung && ply.played.is_capture() && gain(position, ply.played) >= PIECE {
                self.punished += 1;
            }
            self.add_balance(&history, ply.root_q, game.end.result, &mut seen);
            hung = hangs(position, ply.played);
            self.hangs += u64::from(hung);
            self.moves += 1;
            history.push(ply.played);
        }
        Ok(())
    }

    fn add_balance(
        &mut self,
        history: &GameHistory,
        root_q: f32,
        result: GameResult,
        seen: &mut [[bool; MOST_AHEAD]; 2],
    ) {
        let position = history.position();
        let white = balance(position.board());
        if white == 0 || position.is_check() || best_capture(position) > 0 {
            return;
        }
        let side = Color::from_white(white > 0);
        let place = (white.unsigned_abs() as usize).min(MOST_AHEAD) - 1;
        let first = &mut seen[usize::from(side.is_black())][place];
        if std::mem::replace(first, true) {
            return;
        }
        let q = f64::from(if side == position.turn() {
            root_q
        } else {
            -root_q
        });
        let ahead = &mut self.ahead[place];
        ahead.games += 1;
        ahead.believed += f64::midpoint(q, 1.0);
        ahead.points += match result {
            GameResult::Draw => 0.5,
            won if won == GameResult::win_of(side) => 1.0,
            _ => 0.0,
        };
    }

    /// The points, 0 to 1, of sides at the first quiet position in which they were a piece ahead, or more; none without one.
    pub fn score_ahead(&self) -> Option<f64> {
        let ahead = &self.ahead[PIECE as usize - 1..];
        let games: u64 = ahead.iter().map(|one| one.games).sum();
        let points: f64 = ahead.iter().map(|one| one.points).sum();
        (games > 0).then(|| points / games as f64)
    }

    /// What was counted, as rates.
    pub fn report(&self) -> GamesReport {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let counted = self
            .ahead
            .iter()
            .enumerate()
            .filter(|(_, ahead)| ahead.games > 0);
        let balance = counted.map(|(place, ahead)| AheadReport {
            ahead: place + 1,
            games: ahead.games,
            score: ahead.points / ahead.games as f64,
            believed: ahead.believed / ahead.games as f64,
        });
        GamesReport {
            games: self.games,
            moves: self.moves,
            hangs: self.hangs,
            hang_rate: share(self.hangs, self.moves),
            punished: share(self.punished, self.hangs),
            balance: balance.collect(),
        }
    }
}

/// Whether a legal move hangs a piece that another would not.
fn hangs(position: &Chess, m: Move) -> bool {
    loss(position, m) >= PIECE
        && position
            .legal_moves()
            .iter()
            .any(|other| loss(position, *other) < PIECE)
}

/// What the opponent wins after a move, less what the move took.
fn loss(position: &Chess, m: Move) -> i32 {
    let mut after = position.clone();
    after.play_unchecked(m);
    best_capture(&after) - m.capture().map_or(0, worth)
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::moves::{canonical_moves, parse_uci};
    use rookery_common::chess::{GameEnd, Termination};
    use rookery_common::chunk::{Caps, ChunkHeader, ChunkReader, GameStart, PlyRecord, encode};
    use rookery_common::ids::{ContentHash, JobId, Seed};
    use rookery_common::protocol::jobs::{Backend, WorkKind};

    use super::*;

    /// A game of these moves, whose searches gave the mover `root_q`.
    fn game(fen: Option<&str>, moves: &str, root_q: f32, result: GameResult) -> GameRecord {
        let start = GameStart {
            fen: fen.map(str::to_owned),
            moves: Vec::new(),
        };
        let mut history = start.history().unwrap();
        let ply = |text: &str| {
            let played = parse_uci(history.position(), text).unwrap();
            let mut visits = vec![0; canonical_moves(history.position()).len()];
            visits[0] = 1;
            history.push(played);
            PlyRecord {
                visits,
                root_q,
                best_q: root_q,
                ..PlyRecord::new(played)
            }
        };
        let plies = moves.split_whitespace().map(ply).collect();
        let termination = Termination::Resignation;
        let end = match result {
            GameResult::Draw => GameEnd::draw(Termination::PlyLimit),
            result => GameEnd {
                result,
                termination,
            },
        };
        GameRecord {
            index: 0,
            kind: GameKind::SelfPlay { play_on: false },
            seed: Seed(1),
            start,
            plies,
            end,
        }
    }

    /// The report on a chunk of this one game.
    fn probe(game: &GameRecord) -> GamesReport {
        let header = ChunkHeader {
            run: "main".parse().unwrap(),
            job: JobId(uuid::Uuid::from_u128(7)),
            networks: vec![ContentHash::of(b"network")],
            worker_version: "0.1.0".into(),
            backend: Backend::CpuF32,
            kind: WorkKind::SelfPlay,
        };
        let bytes = encode(&header, std::slice::from_ref(game)).unwrap();
        let mut reader = ChunkReader::open(&bytes, &Caps::default()).unwrap();
        let mut counts = Counts::default();
        while let Some(game) = reader.next_game().unwrap() {
            counts.add(&game).unwrap();
        }
        counts.report()
    }

    #[test]
    fn a_queen_left_to_a_pawn_hangs_and_taking_it_punishes() {
        // 1. e4 e5 2. Qg4 d6 attacks the queen, 3. a3 leaves it, Bxg4 takes it.
        let report = probe(&game(
            None,
            "e2e4 e7e5 d1g4 d7d6 a2a3 c8g4",
            0.0,
            GameResult::BlackWins,
        ));
        assert_eq!((report.games, report.moves, report.hangs), (1, 6, 1));
        assert_eq!(report.hang_rate, Some(1.0 / 6.0));
        assert_eq!(report.punished, Some(1.0));
    }

    #[test]
    fn exchanges_and_what_cannot_be_helped_do_not_hang() {
        // Queens are exchanged: 9 is lost for 9.
        let report = probe(&game(
            None,
            "e2e4 e7e5 d2d4 d7d6 d4e5 d6e5 d1d8 e8d8",
            0.0,
            GameResult::Draw,
        ));
        assert_eq!((report.hangs, report.punished), (0, None));
        // A knight forks king and queen; whatever the king does, the queen is lost.
        let forked = "4k3/2N5/q7/8/8/8/8/4K3 b - - 0 1";
        assert_eq!(
            probe(&game(Some(forked), "e8d7", 0.0, GameResult::WhiteWins)).hangs,
            0
        );
    }

    #[test]
    fn a_side_a_piece_ahead_is_counted_once_in_a_quiet_position() {
        // White is a knight ahead and moves; then Black; White believes in 3 of 4 points, and draws.
        let fen = "4k3/p7/8/8/8/8/P7/1N2K3 w - - 0 1";
        let report = probe(&game(
            Some(fen),
            "b1c3 e8d7 c3e4 d7e6",
            0.5,
            GameResult::Draw,
        ));
        let expected = AheadReport {
            ahead: 3,
            games: 1,
            score: 0.5,
            believed: 0.75,
        };
        assert_eq!(report.balance, [expected]);
        // With a capture possible, material does not count yet: the position is not quiet.
        let fen = "4k3/8/8/3n4/8/8/8/3RK3 w - - 0 1";
        let report = probe(&game(Some(fen), "d1d5", 1.0, GameResult::WhiteWins));
        assert_eq!(report.balance, []);
    }
}
