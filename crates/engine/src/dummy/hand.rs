//! A hand-made evaluator: material, piece placement, and a liking for captures and checks.
//!
//! It reads the planes and policy indices of the batch as a network would, so it works with every
//! encoding, whose first twelve planes are the mover's and the opponent's pieces.

use rookery_common::encoding::policy::all_moves;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use shakmaty::attacks::attacks;
use shakmaty::{Bitboard, Color, Move, Piece, Rank, Role, Square};

use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};

/// Knows what pieces are worth; plays captures and checks rather than quiet moves.
#[derive(Debug, Clone)]
pub struct HandEvaluator {
    input: InputEncoding,
    policy: PolicyEncoding,
    /// What each policy index means, as the mover sees it.
    moves: Vec<Option<Move>>,
}

/// Pieces as the mover sees them, in the order pawn, knight, bishop, rook, queen, king.
struct Pieces<'a> {
    own: &'a [u64],
    other: &'a [u64],
}

/// Pawns' worth of pawn, knight, bishop, rook, queen, king.
const WORTH: [f32; 6] = [1.0, 3.0, 3.25, 5.0, 9.0, 0.0];
/// How many pawns ahead make a score of about three quarters.
const PAWNS: f32 = 3.0;

impl HandEvaluator {
    /// An evaluator that takes these encodings.
    pub fn new(input: InputEncoding, policy: PolicyEncoding) -> Self {
        let mut moves = vec![None; policy.size()];
        for m in all_moves() {
            let known = &mut moves[usize::from(policy.index(m, Color::White))];
            // Where a promotion shares its index with a plain move, keep the plain one.
            if known.is_none() || m.promotion().is_none() {
                *known = Some(m);
            }
        }
        Self {
            input,
            policy,
            moves,
        }
    }

    /// What a pawn becomes whose move to the last rank names no promotion.
    const fn plain_promotion(&self) -> Role {
        match self.policy {
            PolicyEncoding::Lc01858 => Role::Knight,
            PolicyEncoding::Az73 | PolicyEncoding::Flat1968 => Role::Queen,
        }
    }

    fn logit(&self, pieces: &Pieces<'_>, index: u16) -> f32 {
        let Some(Move::Normal {
            from,
            to,
            promotion,
            ..
        }) = self.moves[usize::from(index)]
        else {
            return 0.0;
        };
        let Some(mover) = role_at(pieces.own, from) else {
            return 0.0;
        };
        let promotes = mover == Role::Pawn && to.rank() == Rank::Eighth;
        let promotion = promotion.or(promotes.then_some(self.plain_promotion()));
        let victim = role_at(pieces.other, to);
        let capture = victim.map_or(0.0, |role| 1.0 + (worth(role) - worth(mover) / 4.0) / 4.0);
        let promoted = promotion.unwrap_or(mover);
        let queens = if promotion == Some(Role::Queen) {
            2.0
        } else {
            0.0
        };
        let check = if gives_check(pieces, promoted, from, to) {
            1.0
        } else {
            0.0
        };
        capture + queens + check + (centrality(to) - centrality(from)) * 0.3
    }
}

impl Default for HandEvaluator {
    fn default() -> Self {
        Self::new(InputEncoding::Classic19, PolicyEncoding::Lc01858)
    }
}

impl Evaluator for HandEvaluator {
    fn input(&self) -> InputEncoding {
        self.input
    }

    fn policy(&self) -> PolicyEncoding {
        self.policy
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        answer.clear();
        for index in 0..batch.len() {
            let (own, other) = batch.binary_of(index)[..12].split_at(6);
            let pieces = Pieces { own, other };
            let balance = side_worth(own, Color::White) - side_worth(other, Color::Black);
            answer
                .values
                .push(Wdl::from_q((balance / PAWNS).tanh() * 0.95));
            let logits = batch
                .moves_of(index)
                .iter()
                .map(|m| self.logit(&pieces, *m));
            answer.logits.extend(logits);
        }
        Ok(())
    }
}

fn role_at(planes: &[u64], square: Square) -> Option<Role> {
    let index = planes
        .iter()
        .position(|plane| plane >> u32::from(square) & 1 == 1)?;
    Role::ALL.get(index).copied()
}

fn worth(role: Role) -> f32 {
    WORTH[role as usize - Role::Pawn as usize]
}

/// Material, and a little for each piece in the centre and each pawn that has advanced.
fn side_worth(planes: &[u64], color: Color) -> f32 {
    let mut sum = 0.0;
    for (index, (plane, worth)) in planes.iter().zip(WORTH).enumerate() {
        for square in Bitboard(*plane) {
            sum += worth;
            sum += match index {
                0 => 0.03 * u32::from(color.relative_rank(square.rank())) as f32,
                5 => 0.0,
                _ => 0.1 * centrality(square),
            };
        }
    }
    sum
}

/// From 0 on the rim's corners to 1 in the centre.
fn centrality(square: Square) -> f32 {
    let distance = |coordinate: u32| (2 * coordinate).abs_diff(7) as f32;
    1.0 - (distance(u32::from(square.file())) + distance(u32::from(square.rank()))) / 14.0
}

/// Whether the moved piece itself attacks the opponent's king.
fn gives_check(pieces: &Pieces<'_>, role: Role, from: Square, to: Square) -> bool {
    let all = pieces
        .own
        .iter()
        .chain(pieces.other)
        .fold(0, |all, plane| all | plane);
    let occupied = Bitboard(all).without(from).with(to);
    let piece = Piece {
        color: Color::White,
        role,
    };
    !(attacks(to, piece, occupied) & Bitboard(pieces.other[5])).is_empty()
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;
    use crate::testing::fen;

    fn evaluate(
        input: InputEncoding,
        policy: PolicyEncoding,
        text: &str,
    ) -> (Evaluations, Vec<Move>) {
        let game = fen(text);
        let moves = game.position().legal_moves();
        let mut batch = Batch::new(input, policy);
        batch.push(&game, &moves);
        let mut answer = Evaluations::default();
        HandEvaluator::new(input, policy)
            .evaluate(&batch, &mut answer)
            .unwrap();
        (answer, moves.to_vec())
    }

    #[test]
    fn all_encodings_are_read_alike() {
        let text = "r3k2r/pPpp1ppp/8/3Pp3/4n3/8/PPP2PPP/R3K2R w KQkq e6 0 1";
        let (reference, _) = evaluate(InputEncoding::Classic19, PolicyEncoding::Flat1968, text);
        for input in InputEncoding::ALL {
            for policy in [PolicyEncoding::Flat1968, PolicyEncoding::Az73] {
                assert_eq!(
                    evaluate(input, policy, text).0,
                    reference,
                    "{input:?} {policy:?}"
                );
            }
        }
    }

    #[test]
    fn values_and_moves_are_seen_by_the_mover() {
        for text in [
            "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1",
            "4k3/8/8/4p3/3Q4/8/8/4K3 b - - 0 1",
        ] {
            let (answer, moves) = evaluate(InputEncoding::Lc0112, PolicyEncoding::Lc01858, text);
            assert!(answer.values[0].q() < -0.5, "a queen down");
            let best = answer
                .logits
                .iter()
                .copied()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(&b.1));
            assert!(moves[best.unwrap().0].is_capture());
        }
    }
}
