//! A tidy layout for search trees: a column for each ply, a row for each leaf, every node at the
//! middle of its children.

use rookery_engine::branch::Branch;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Color, Position as _};

/// A node with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    /// Plies from the root.
    pub(super) column: usize,
    /// In rows from the top; children of an even number stand at a half.
    pub(super) row: f32,
    /// Its parent's index in the layout.
    pub(super) parent: Option<usize>,
    /// The move in algebraic notation, with its number; empty at the root.
    pub(super) label: String,
    /// Who made the move; at the root, who is to move.
    pub(super) mover: Color,
    /// Whether it is on the line of most visits.
    pub(super) is_main: bool,
    pub(super) visits: u32,
    pub(super) q: f32,
    pub(super) prior: f32,
    pub(super) hidden_visits: u32,
}

/// A tree's nodes, parents before children.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub(super) nodes: Vec<Placed>,
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Layout {
    /// Places a tree whose root is `position`.
    pub(super) fn new(tree: &Branch, position: &Chess) -> Self {
        let mut layout = Self {
            nodes: Vec::new(),
            columns: 0,
            rows: 0,
        };
        let root = Place {
            column: 0,
            parent: None,
            is_main: true,
            label: String::new(),
            mover: position.turn(),
        };
        layout.place(tree, position, root);
        layout
    }

    /// Places a branch, its children first, and gives its row.
    fn place(&mut self, branch: &Branch, position: &Chess, at: Place) -> f32 {
        let index = self.nodes.len();
        let (column, is_main) = (at.column, at.is_main);
        self.columns = self.columns.max(column + 1);
        self.nodes.push(Placed {
            column,
            row: 0.0,
            parent: at.parent,
            label: at.label,
            mover: at.mover,
            is_main,
            visits: branch.visits,
            q: branch.q,
            prior: branch.prior,
            hidden_visits: branch.hidden_visits,
        });
        let mut rows = Vec::new();
        for child in &branch.children {
            let Some(m) = child.m else { continue };
            let mut after = position.clone();
            let label = label(
                position,
                &SanPlus::from_move_and_play_unchecked(&mut after, m),
            );
            let place = Place {
                column: column + 1,
                parent: Some(index),
                is_main: is_main && rows.is_empty(),
                label,
                mover: position.turn(),
            };
            rows.push(self.place(child, &after, place));
        }
        let row = match (rows.first(), rows.last()) {
            (Some(first), Some(last)) => f32::midpoint(*first, *last),
            _ => {
                self.rows += 1;
                self.rows as f32 - 1.0
            }
        };
        self.nodes[index].row = row;
        row
    }
}

/// Where a branch hangs.
struct Place {
    column: usize,
    parent: Option<usize>,
    is_main: bool,
    label: String,
    mover: Color,
}

/// A move with its number: `12. Nf3`, `12… Nf6`.
fn label(position: &Chess, san: &SanPlus) -> String {
    let dots = position.turn().fold_wb(".", "…");
    format!("{}{dots} {san}", position.fullmoves())
}

#[cfg(test)]
pub(super) mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::params::SearchParams;
    use rookery_engine::dummy::HandEvaluator;
    use rookery_engine::search::search_position;

    use super::*;

    pub(in crate::drawing) fn tree() -> (Branch, Chess) {
        let game = GameHistory::default();
        let mut evaluator = HandEvaluator::default();
        let params = SearchParams::default();
        let report = search_position(&game, &params, 400, &mut evaluator, 30).unwrap();
        (report.tree.unwrap(), game.position().clone())
    }

    #[test]
    fn nodes_of_a_column_never_meet() {
        let (tree, position) = tree();
        let layout = Layout::new(&tree, &position);
        assert_eq!(layout.nodes.len(), 30);
        for column in 0..layout.columns {
            let mut rows: Vec<f32> = layout
                .nodes
                .iter()
                .filter(|node| node.column == column)
                .map(|node| node.row)
                .collect();
            rows.sort_by(f32::total_cmp);
            assert!(
                rows.windows(2).all(|pair| pair[1] - pair[0] >= 1.0),
                "{rows:?}"
            );
            assert!(
                rows.iter()
                    .all(|row| (0.0..layout.rows as f32).contains(row))
            );
        }
    }

    #[test]
    fn moves_are_numbered_and_the_main_line_is_marked() {
        let (tree, position) = tree();
        let layout = Layout::new(&tree, &position);
        let main: Vec<&Placed> = layout.nodes.iter().filter(|node| node.is_main).collect();
        assert!(main[1].label.starts_with("1. ") && main[2].label.starts_with("1… "));
        assert!(
            main.iter()
                .enumerate()
                .all(|(column, node)| node.column == column)
        );
    }
}
