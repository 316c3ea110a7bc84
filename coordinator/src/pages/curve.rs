//! A game's value over its plies, as paths in a drawing of one unit a ply and 100 units from a
//! win of Black (below) to a win of White (above).

use std::fmt::Write as _;

use shakmaty::Position as _;

use super::steps::Step;

/// Who judges the positions of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judges {
    /// One network, on both sides.
    One,
    /// Two networks that may differ.
    Two,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Curve {
    /// White's share of the expected result, as an area from below. It is the mean of what both
    /// sides last found, so that it does not flicker where two networks disagree.
    pub(super) area: String,
    /// What White's and Black's network found, where they are two.
    pub(super) opinions: Option<[String; 2]>,
}

impl Curve {
    pub(super) fn of(positions: &[Step], judges: Judges) -> Self {
        let heights = heights(positions);
        let last = positions.len().saturating_sub(1);
        let mean = path(
            heights
                .iter()
                .map(|[white, black]| f64::midpoint(*white, *black)),
        );
        let line = |side: usize| path(heights.iter().map(|both| both[side]));
        Self {
            area: format!("{mean}L{last} 100L0 100Z"),
            opinions: (judges == Judges::Two).then(|| [line(0), line(1)]),
        }
    }
}

/// For each position the heights of what White and Black last found. Before a side's first search
/// it is what the other found first; without any, an even game.
fn heights(positions: &[Step]) -> Vec<[f64; 2]> {
    let height = |step: &Step| {
        let search = step.search.as_ref()?;
        Some(50.0 - 50.0 * f64::from(search.white.clamp(-1.0, 1.0)))
    };
    let first = positions.iter().find_map(height).unwrap_or(50.0);
    let mut both = [first; 2];
    let mut heights = Vec::with_capacity(positions.len());
    for step in positions {
        if let Some(found) = height(step) {
            both[step.position.turn().fold_wb(0, 1)] = found;
        }
        heights.push(both);
    }
    heights
}

fn path(heights: impl Iterator<Item = f64>) -> String {
    let mut path = String::new();
    for (ply, height) in heights.enumerate() {
        let command = if ply == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(path, "{command}{ply} {height:.1}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::steps::Search;
    use super::*;
    use shakmaty::Chess;

    fn steps(values: &[Option<f32>]) -> Vec<Step> {
        let search = |white| Search {
            white,
            draw: 0.0,
            visits: 1,
            full: true,
            top: Vec::new(),
        };
        let mut position = Chess::default();
        let mut steps = Vec::new();
        for value in values {
            steps.push(Step {
                position: position.clone(),
                arrived: None,
                search: value.map(search),
            });
            let m = position.legal_moves()[0];
            position.play_unchecked(m);
        }
        steps
    }

    #[test]
    fn networks_that_disagree_give_two_lines_and_a_calm_area() {
        let steps = steps(&[Some(1.0), Some(0.0), Some(1.0), None]);
        let curve = Curve::of(&steps, Judges::Two);
        assert_eq!(curve.area, "M0 0.0L1 25.0L2 25.0L3 25.0L3 100L0 100Z");
        let [white, black] = curve.opinions.unwrap();
        assert_eq!(white, "M0 0.0L1 0.0L2 0.0L3 0.0");
        assert_eq!(black, "M0 0.0L1 50.0L2 50.0L3 50.0");
        assert_eq!(Curve::of(&steps, Judges::One).opinions, None);
    }

    #[test]
    fn a_game_without_searches_is_even() {
        assert_eq!(
            Curve::of(&steps(&[None]), Judges::One).area,
            "M0 50.0L0 100L0 100Z"
        );
    }
}
