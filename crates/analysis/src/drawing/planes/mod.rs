//! What a network sees of a position, and its policy with and without illegal moves, as boards.
//!
//! Boards are as the mover sees them, the own side at the bottom.

use std::io::{self, Write};

use rookery_common::chess::GameHistory;
use rookery_engine::{Evaluator, EvaluatorError};

use super::canvas::{Canvas, Color};
use super::font;

mod input;
mod policy;

const CELL: usize = 8;
const BOARD: usize = 8 * CELL;
/// A board with the space to its neighbours.
const TILE: (usize, usize) = (BOARD + 12, BOARD + 22);
const MARGIN: usize = 24;
const TITLE: usize = 40;

const PAPER: Color = [246, 247, 249];
const INK: Color = [40, 48, 58];
const FAINT: Color = [104, 114, 126];
const DARK_SQUARE: Color = [222, 227, 233];
const LIGHT_SQUARE: Color = [236, 239, 243];
const ON: Color = [32, 92, 168];

/// One plane: what it is, and a number from 0 to 1 for each square, a1 first; none for a square
/// that stands for no move.
struct Plane {
    name: String,
    cells: [Option<f32>; 64],
}

/// Why planes were not drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlanesError {
    /// The network did not answer.
    #[error(transparent)]
    Evaluate(#[from] EvaluatorError),
    /// The picture cannot be written.
    #[error("the picture cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Draws the position on the board as `evaluator` sees it, and what it makes of it, into a PNG.
///
/// # Errors
///
/// [`PlanesError`] if the evaluator fails or the picture cannot be written.
pub fn draw(
    game: &GameHistory,
    evaluator: &mut dyn Evaluator,
    target: impl Write,
) -> Result<(), PlanesError> {
    let encodings = (evaluator.input(), evaluator.policy());
    let policies = policy::evaluate(game, evaluator)?;
    let columns = input::columns(encodings.0);
    let sheets = [
        Sheet {
            title: format!("input {}", encodings.0.name()),
            planes: input::planes(encodings.0, game),
            columns,
            place: Box::new(move |plane| (plane % columns, plane / columns)),
        },
        Sheet::of_policy(
            format!("policy {}, all moves", encodings.1.name()),
            policy::planes(encodings.1, &policies.all),
        ),
        Sheet::of_policy(
            "legal moves only".to_owned(),
            policy::planes(encodings.1, &policies.legal),
        ),
    ];
    Ok(draw_sheets(&sheets).write_png(target)?)
}

/// Planes with their places in a grid.
struct Sheet {
    title: String,
    planes: Vec<Plane>,
    columns: usize,
    /// Column and row of a plane.
    place: Box<dyn Fn(usize) -> (usize, usize)>,
}

impl Sheet {
    fn of_policy(title: String, planes: Vec<Plane>) -> Self {
        Self {
            title,
            planes,
            columns: policy::COLUMNS,
            place: Box::new(policy::place),
        }
    }

    const fn width(&self) -> usize {
        self.columns * TILE.0 + MARGIN
    }

    fn rows(&self) -> usize {
        let rows = (0..self.planes.len()).map(|plane| (self.place)(plane).1 + 1);
        rows.max().unwrap_or_default()
    }

    fn draw(&self, canvas: &mut Canvas, left: usize) {
        canvas.write(left, 14, 2, INK, &self.title);
        for (index, plane) in self.planes.iter().enumerate() {
            let (column, row) = (self.place)(index);
            let (x, y) = (left + column * TILE.0, TITLE + row * TILE.1);
            canvas.write(x, y, 1, FAINT, &plane.name);
            draw_board(canvas, x, y + font::HEIGHT + 3, plane);
        }
    }
}

/// Sheets side by side.
fn draw_sheets(sheets: &[Sheet]) -> Canvas {
    let width = MARGIN + sheets.iter().map(Sheet::width).sum::<usize>();
    let rows = sheets.iter().map(Sheet::rows).max().unwrap_or_default();
    let mut canvas = Canvas::new(width, TITLE + rows * TILE.1 + MARGIN / 2, PAPER);
    let mut left = MARGIN;
    for sheet in sheets {
        sheet.draw(&mut canvas, left);
        left += sheet.width();
    }
    canvas
}

fn draw_board(canvas: &mut Canvas, x: usize, y: usize, plane: &Plane) {
    for (square, value) in plane.cells.iter().enumerate() {
        let (file, rank) = (square % 8, square / 8);
        let (left, top) = (x + file * CELL, y + (7 - rank) * CELL);
        let ground = if (file + rank).is_multiple_of(2) {
            DARK_SQUARE
        } else {
            LIGHT_SQUARE
        };
        let color = value.map_or(PAPER, |value| mix(ground, ON, value));
        canvas.fill(left, top, CELL, CELL, color);
    }
}

fn mix(from: Color, to: Color, share: f32) -> Color {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|i| {
        let (from, to) = (f32::from(from[i]), f32::from(to[i]));
        f32::mul_add(share, to - from, from).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use rookery_common::encoding::{InputEncoding, PolicyEncoding};
    use rookery_engine::dummy::HandEvaluator;

    use super::*;

    #[test]
    fn pictures_are_written_for_every_encoding() {
        for input in InputEncoding::ALL {
            for policy in PolicyEncoding::ALL {
                let mut evaluator = HandEvaluator::new(input, policy);
                let mut picture = Vec::new();
                draw(&GameHistory::default(), &mut evaluator, &mut picture).unwrap();
                assert!(picture.starts_with(b"\x89PNG"));
            }
        }
    }

    #[test]
    fn a_piece_is_dark_on_its_square() {
        let planes = input::planes(InputEncoding::Classic19, &GameHistory::default());
        let mut canvas = Canvas::new(BOARD, BOARD, PAPER);
        draw_board(&mut canvas, 0, 0, &planes[5]);
        // The own king stands on e1: fifth file, lowest rank.
        assert_eq!(canvas.dot(4 * CELL + 1, 7 * CELL + 1), ON);
        assert_ne!(canvas.dot(3 * CELL + 1, 7 * CELL + 1), ON);
    }
}
