//! A position as an SVG board.

use askama::Template;
use rookery_common::chunk::Side;
use rookery_common::text::quantity;
use shakmaty::{Chess, Color, Move, Position, Role, Square};

/// Length of a square in the drawing's units.
const SQUARE: u32 = 45;

/// A board that renders itself.
#[derive(Debug, Template)]
#[template(path = "board.html")]
pub(super) struct Board {
    /// By what scripts find it, if it is the page's only one.
    id: Option<&'static str>,
    label: String,
    highlights: Vec<SquareXy>,
    check: Option<SquareXy>,
    pieces: Vec<Piece>,
    files: Vec<(u32, char)>,
    ranks: Vec<(u32, char)>,
}

#[derive(Debug, Clone, Copy)]
struct SquareXy {
    x: u32,
    y: u32,
}

#[derive(Debug)]
struct Piece {
    symbol: &'static str,
    color: &'static str,
    place: SquareXy,
}

impl Board {
    /// The position, the side `below` at the bottom, with these squares marked.
    pub(super) fn new(position: &Chess, marked: &[Square], below: Side) -> Self {
        let place = |square| locate(square, below);
        let turn = position.turn();
        let king = position
            .board()
            .king_of(turn)
            .filter(|_| position.is_check());
        Self {
            id: None,
            label: label(position),
            highlights: marked.iter().copied().map(place).collect(),
            check: king.map(place),
            pieces: position
                .board()
                .iter()
                .map(|(square, piece)| Piece {
                    symbol: symbol(piece.role),
                    color: piece.color.fold_wb("white", "black"),
                    place: place(square),
                })
                .collect(),
            files: (0..8)
                .zip(along("abcdefgh", below == Side::White))
                .collect(),
            ranks: (0..8)
                .zip(along("87654321", below == Side::White))
                .collect(),
        }
    }

    /// The same with an identifier for scripts.
    pub(super) fn named(self, id: &'static str) -> Self {
        let id = Some(id);
        Self { id, ..self }
    }
}

pub(super) fn squares(m: Move) -> Vec<Square> {
    m.from().into_iter().chain([m.to()]).collect()
}

fn along(names: &str, forward: bool) -> Vec<char> {
    if forward {
        names.chars().collect()
    } else {
        names.chars().rev().collect()
    }
}

fn locate(square: Square, below: Side) -> SquareXy {
    let (file, rank) = (u32::from(square.file()), u32::from(square.rank()));
    match below {
        Side::White => SquareXy {
            x: file * SQUARE,
            y: (7 - rank) * SQUARE,
        },
        Side::Black => SquareXy {
            x: (7 - file) * SQUARE,
            y: rank * SQUARE,
        },
    }
}

/// The piece's symbol in `templates/pieces.svg`.
const fn symbol(role: Role) -> &'static str {
    match role {
        Role::Pawn => "pawn",
        Role::Knight => "knight",
        Role::Bishop => "bishop",
        Role::Rook => "rook",
        Role::Queen => "queen",
        Role::King => "king",
    }
}

/// The position for people who do not see it.
fn label(position: &Chess) -> String {
    let side = |color: Color| {
        let pieces = position
            .board()
            .iter()
            .filter(|(_, piece)| piece.color == color);
        let names: Vec<_> = pieces
            .filter(|(_, piece)| piece.role != Role::Pawn)
            .map(|(square, piece)| format!("{} {square}", symbol(piece.role)))
            .collect();
        let pawns = position.board().by_color(color) & position.board().pawns();
        format!(
            "{}, {}",
            names.join(", "),
            quantity(pawns.count() as u64, "pawn")
        )
    };
    let turn = position.turn().fold_wb("White", "Black");
    format!(
        "White: {}. Black: {}. {turn} to move.",
        side(Color::White),
        side(Color::Black)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rookery_common::chess::GameHistory;

    #[test]
    fn the_board_can_be_turned() {
        assert_eq!(
            (
                locate(Square::A1, Side::White).x,
                locate(Square::A1, Side::White).y
            ),
            (0, 315)
        );
        assert_eq!(
            (
                locate(Square::A1, Side::Black).x,
                locate(Square::A1, Side::Black).y
            ),
            (315, 0)
        );
    }

    #[test]
    fn check_is_marked_and_pieces_are_named() {
        let game = GameHistory::from_fen("4k3/8/8/8/8/8/4P3/K3R3 b - - 0 1").unwrap();
        assert!(
            Board::new(game.position(), &[], Side::White)
                .check
                .is_none()
        );
        let game = GameHistory::from_fen("4k3/8/8/8/8/8/3P4/K3R3 b - - 0 1").unwrap();
        let board = Board::new(game.position(), &[], Side::White);
        assert!(board.check.is_some());
        assert_eq!(
            board.label,
            "White: king a1, rook e1, 1 pawn. Black: king e8, 0 pawns. Black to move."
        );
    }
}
