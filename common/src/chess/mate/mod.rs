//! The search for forced mates in one and two, by which puzzles are mined from a run's own games.
//!
//! A position comes in; the shortest mate goes out, with every first move that forces it and the
//! line in which the defender lasts as long as possible. The search is exhaustive, so "unique"
//! means unique. It is fast because a move is played only if it may give check and no reply is seen
//! at once (a flight, a capture, a block), and because the reply that refuted one first move is tried
//! first against the next (a killer move).

mod checks;
mod proof_visits;

use shakmaty::{Chess, Move, Position};

use checks::Checks;
pub use proof_visits::ProofVisits;

/// How many moves of the mating side a search looks ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MateDepth {
    /// Mate with the next move.
    One,
    /// Mate with the move after the next, whatever the reply.
    Two,
}

impl MateDepth {
    /// Moves of the mating side.
    pub const fn moves(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// The theme under which Lichess files such puzzles.
    pub const fn theme(self) -> &'static str {
        match self {
            Self::One => "mateIn1",
            Self::Two => "mateIn2",
        }
    }
}

/// A mate that cannot be prevented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForcedMate {
    /// How long it takes against the best defence; no shorter mate exists.
    pub depth: MateDepth,
    /// Every first move that forces it, checks first; never empty.
    pub first_moves: Vec<Move>,
    /// One way it goes: the first of `first_moves`, a reply that delays mate, the mate. One move
    /// for a mate in one, three for a mate in two.
    pub line: Vec<Move>,
}

impl ForcedMate {
    /// Whether only one first move forces the mate.
    pub fn is_unique(&self) -> bool {
        self.first_moves.len() == 1
    }
}

/// The shortest forced mate for the side to move, no longer than `longest`.
///
/// A line in which the fifty-move rule draws before mate does not count. Repetitions are not seen:
/// a position does not know its history.
pub fn find(position: &Chess, longest: MateDepth) -> Option<ForcedMate> {
    let mates = mates_in_one(position);
    if let Some(&mate) = mates.first() {
        return Some(ForcedMate {
            depth: MateDepth::One,
            first_moves: mates,
            line: vec![mate],
        });
    }
    match longest {
        MateDepth::One => None,
        MateDepth::Two => mate_in_two(position),
    }
}

/// Every move that mates at once, in the order in which they are generated.
fn mates_in_one(position: &Chess) -> Vec<Move> {
    let checks = Checks::of(position);
    let moves = position.legal_moves();
    moves
        .into_iter()
        .filter(|m| checks.may_mate(*m) && mates(position, *m))
        .collect()
}

/// The first of a position's legal moves that mates at once, if one does.
///
/// # Examples
///
/// ```
/// use rookery_common::chess::GameHistory;
/// use rookery_common::chess::mate::find_mate;
/// use shakmaty::Position;
///
/// let game = GameHistory::from_fen("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1").unwrap();
/// let legal = game.position().legal_moves();
/// let mate = find_mate(game.position(), &legal).unwrap();
/// assert_eq!(mate.to_string(), "Ra1-a8");
/// ```
pub fn find_mate(position: &Chess, legal: &[Move]) -> Option<Move> {
    let checks = Checks::of(position);
    let from = checks.may_mate_from(position);
    if from.is_empty() {
        return None;
    }
    let moves = legal.iter().copied();
    let mut candidates = moves.filter(|m| m.from().is_some_and(|square| from.contains(square)));
    candidates.find(|m| checks.may_mate(*m) && mates(position, *m))
}

fn mate_in_one(position: &Chess) -> Option<Move> {
    find_mate(position, &position.legal_moves())
}

/// The mate in two of a position without a mate in one.
fn mate_in_two(position: &Chess) -> Option<ForcedMate> {
    let checks = Checks::of(position);
    let mut moves: Vec<Move> = position.legal_moves().into_iter().collect();
    moves.sort_by_key(|m| !checks.may_check(*m));
    let mut killer = None;
    let mut first_moves = Vec::new();
    let mut line = Vec::new();
    for first in moves {
        let after = played(position, first);
        match defence(&after, killer) {
            Defence::Holds(reply) => killer = Some(reply),
            Defence::None => {}
            Defence::Fails { reply, mate } => {
                if first_moves.is_empty() {
                    line = vec![first, reply, mate];
                }
                first_moves.push(first);
            }
        }
    }
    let depth = MateDepth::Two;
    (!first_moves.is_empty()).then_some(ForcedMate {
        depth,
        first_moves,
        line,
    })
}

/// What the side to move can do against mate by the opponent's next move.
enum Defence {
    /// This reply prevents it.
    Holds(Move),
    /// Every reply is mated; `reply` is one of them, `mate` what follows.
    Fails {
        /// A legal reply.
        reply: Move,
        /// The mate after it.
        mate: Move,
    },
    /// There is no reply to mate after: the game is over here.
    None,
}

fn defence(position: &Chess, killer: Option<Move>) -> Defence {
    if position.halfmoves() >= 100 {
        return Defence::None;
    }
    let mut replies: Vec<Move> = position.legal_moves().into_iter().collect();
    if let Some(at) = replies.iter().position(|m| Some(*m) == killer) {
        replies.swap(0, at);
    }
    let mut mated = None;
    for reply in replies {
        let after = played(position, reply);
        let drawn = after.halfmoves() >= 100;
        match if drawn { None } else { mate_in_one(&after) } {
            Some(mate) => mated = Some((reply, mate)),
            None => return Defence::Holds(reply),
        }
    }
    mated.map_or(Defence::None, |(reply, mate)| Defence::Fails {
        reply,
        mate,
    })
}

fn played(position: &Chess, m: Move) -> Chess {
    let mut next = position.clone();
    next.play_unchecked(m);
    next
}

fn mates(position: &Chess, m: Move) -> bool {
    played(position, m).is_checkmate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::GameHistory;
    use crate::chess::moves::uci;
    use crate::encoding::testing::{data_folder, random_game};
    use proptest::prelude::*;
    use shakmaty::CastlingMode;

    fn search(fen: &str) -> Option<ForcedMate> {
        find(
            GameHistory::from_fen(fen).unwrap().position(),
            MateDepth::Two,
        )
    }

    fn texts(moves: &[Move]) -> Vec<String> {
        moves
            .iter()
            .map(|m| uci(*m, CastlingMode::Standard))
            .collect()
    }

    fn assert_line_mates(fen: &str, mate: &ForcedMate) {
        let mut game = GameHistory::from_fen(fen).unwrap();
        assert_eq!(mate.line.len(), 2 * mate.depth.moves() - 1, "{fen}");
        for m in &mate.line {
            assert!(game.position().is_legal(*m), "{fen}");
            game.push(*m);
        }
        assert!(game.position().is_checkmate(), "{fen}");
    }

    #[test]
    fn every_kind_of_mating_move_is_found() {
        let cases = [
            ("back rank", "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8"),
            (
                "black mates too",
                "r3k3/8/8/8/8/8/5PPP/6K1 b - - 0 1",
                "a8a1",
            ),
            ("smothered", "6rk/6pp/8/6N1/8/8/8/4K3 w - - 0 1", "g5f7"),
            (
                "promotion to a knight",
                "6br/5Ppk/6pp/8/8/8/8/6K1 w - - 0 1",
                "f7f8n",
            ),
            ("castling", "2rkr3/2p1p3/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1"),
            ("discovered", "6rk/6p1/8/7N/8/8/8/6KR w - - 0 1", "h5f4"),
        ];
        for (name, fen, expected) in cases {
            let position = GameHistory::from_fen(fen).unwrap();
            let found = texts(&mates_in_one(position.position()));
            assert!(found.iter().any(|m| m == expected), "{name}: {found:?}");
        }
    }

    #[test]
    fn a_mate_in_two_comes_with_all_its_first_moves() {
        let ladder = "1k6/8/8/8/8/8/6R1/K6R w - - 0 1";
        let mate = search(ladder).unwrap();
        assert_eq!(mate.depth, MateDepth::Two);
        assert_line_mates(ladder, &mate);
        assert!(!mate.is_unique(), "either rook may begin");
        let key = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1";
        let mate = search(key).unwrap();
        assert_eq!(
            texts(&mate.first_moves),
            ["a1a6"],
            "Morphy's problem has one key"
        );
        assert_line_mates(key, &mate);
    }

    #[test]
    fn a_mate_in_one_is_not_reported_as_two() {
        let mate = search("6k1/5ppp/8/8/8/8/8/RR2K3 w - - 0 1").unwrap();
        assert_eq!(mate.depth, MateDepth::One);
        assert_eq!(texts(&mate.first_moves), ["a1a8", "b1b8"]);
    }

    #[test]
    fn there_is_no_mate_where_there_is_none() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        assert_eq!(search(start), None);
        let stalemates_only = "7k/8/6K1/8/8/8/8/5B2 w - - 0 1";
        assert_eq!(search(stalemates_only), None);
        assert_eq!(
            search("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"),
            None,
            "already mated"
        );
    }

    #[test]
    fn the_fifty_move_rule_comes_before_the_second_move() {
        let at = |halfmoves: u32| search(&format!("kbK5/pp6/1P6/8/8/8/8/R7 w - - {halfmoves} 90"));
        assert!(at(97).is_some(), "the last quiet move is the ninety-ninth");
        assert_eq!(at(98), None, "the defence draws with its bishop");
    }

    /// The suites of the data folder, where it is there: every position has the mate it is filed
    /// under.
    #[test]
    fn suites_agree() {
        for (file, depth) in [
            ("sunfish_mate1.fen", MateDepth::One),
            ("sunfish_mate2.fen", MateDepth::Two),
        ] {
            let Some(folder) = data_folder() else { return };
            let text = std::fs::read_to_string(folder.join("suites").join(file)).unwrap();
            for fen in text.lines().filter(|line| !line.trim().is_empty()) {
                let found = search(fen.trim());
                assert_eq!(found.as_ref().map(|mate| mate.depth), Some(depth), "{fen}");
                assert_line_mates(fen.trim(), &found.unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn no_check_and_no_mate_is_overlooked(game in random_game()) {
            let position = game.position();
            let checks = Checks::of(position);
            for m in position.legal_moves() {
                let after = played(position, m);
                prop_assert!(!after.is_check() || checks.may_check(m), "{m:?}");
                let from = checks.may_mate_from(position);
                let mates_from = m.from().filter(|_| after.is_checkmate());
                prop_assert!(mates_from.is_none_or(|square| from.contains(square)), "{m:?}");
                prop_assert!(!after.is_checkmate() || checks.may_mate(m), "{m:?}");
                if let Move::Normal { role, from, to, promotion, .. } = m
                    && checks.is_answered(promotion.unwrap_or(role), from, to)
                {
                    prop_assert!(!after.legal_moves().is_empty(), "{m:?}");
                }
            }
        }
    }
}
