//! Monte-Carlo tree search as it was before networks: UCT (Kocsis and Szepesvari 2006) with random playouts.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::canonical_moves;
use shakmaty::{Chess, Move, Position};

/// The weight of exploration: the square root of 2, for rewards from 0 to 1.
const EXPLORATION: f64 = std::f64::consts::SQRT_2;
/// Plies after which a playout is a draw.
const PLAYOUT_PLIES: usize = 200;

/// A position in the tree.
#[derive(Debug)]
struct Node {
    position: Chess,
    /// Moves that have no node yet, the next one last.
    untried: Vec<Move>,
    children: Vec<(Move, usize)>,
    visits: f64,
    /// Points of the side that moved here.
    points: f64,
}

impl Node {
    fn new(position: Chess, rng: &mut ChaCha8Rng) -> Self {
        let mut untried = if position.is_insufficient_material() {
            Vec::new()
        } else {
            canonical_moves(&position)
        };
        for place in (1..untried.len()).rev() {
            untried.swap(place, rng.random_range(0..=place));
        }
        Self {
            position,
            untried,
            children: Vec::new(),
            visits: 0.0,
            points: 0.0,
        }
    }
}

/// The most visited move after this many playouts; none where the game is over. The same seed and position always give
/// the same move.
pub fn best(game: &GameHistory, playouts: u32, seed: u64) -> Option<Move> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&game.repetition_key().to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    let mut nodes = vec![Node::new(game.position().clone(), &mut rng)];
    for _ in 0..playouts {
        visit(&mut nodes, &mut rng);
    }
    let children = nodes[0].children.iter();
    let most = children.max_by(|a, b| nodes[a.1].visits.total_cmp(&nodes[b.1].visits));
    most.map(|(m, _)| *m)
        .or_else(|| nodes[0].untried.last().copied())
}

/// One playout: down the tree, one new node, random moves, and the result up again.
fn visit(nodes: &mut Vec<Node>, rng: &mut ChaCha8Rng) {
    let mut path = vec![0];
    let mut at = 0;
    while nodes[at].untried.is_empty() && !nodes[at].children.is_empty() {
        at = select(nodes, at);
        path.push(at);
    }
    if let Some(m) = nodes[at].untried.pop() {
        let mut position = nodes[at].position.clone();
        position.play_unchecked(m);
        let child = nodes.len();
        nodes.push(Node::new(position, rng));
        nodes[at].children.push((m, child));
        path.push(child);
        at = child;
    }
    let white = playout(nodes[at].position.clone(), rng);
    for at in path {
        let node = &mut nodes[at];
        node.visits += 1.0;
        // The side that moved here is the one that is not to move.
        node.points += if node.position.turn().is_white() {
            1.0 - white
        } else {
            white
        };
    }
}

/// UCT's value of a position that was visited before: its mean, and more the fewer of its parent's visits were its own.
fn uct(node: &Node, parent_visits: f64) -> f64 {
    node.points / node.visits + EXPLORATION * (parent_visits.ln() / node.visits).sqrt()
}

fn select(nodes: &[Node], parent: usize) -> usize {
    let value = |place: usize| uct(&nodes[place], nodes[parent].visits);
    let children = nodes[parent].children.iter().map(|(_, child)| *child);
    children
        .max_by(|a, b| value(*a).total_cmp(&value(*b)))
        .unwrap_or(parent)
}

/// White's points after random moves to the end.
fn playout(mut position: Chess, rng: &mut ChaCha8Rng) -> f64 {
    for _ in 0..PLAYOUT_PLIES {
        if position.is_insufficient_material() || position.halfmoves() >= 100 {
            return 0.5;
        }
        let moves = position.legal_moves();
        if moves.is_empty() {
            return match (position.is_check(), position.turn().is_white()) {
                (false, _) => 0.5,
                (true, white_is_mated) => f64::from(u8::from(!white_is_mated)),
            };
        }
        position.play_unchecked(moves[rng.random_range(0..moves.len())]);
    }
    0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(fen: &str) -> GameHistory {
        GameHistory::from_fen(fen).unwrap()
    }

    #[test]
    fn a_mate_in_one_is_found_and_a_seed_repeats() {
        let mate = game("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1");
        let m = best(&mate, 600, 1).unwrap();
        assert_eq!(m.to_string(), "Ra1-a8");
        assert_eq!(best(&mate, 30, 7), best(&mate, 30, 7));
        assert!(
            best(&mate, 0, 1).is_some(),
            "any legal move without playouts"
        );
        assert_eq!(best(&game("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1"), 10, 1), None);
    }

    #[test]
    fn uct_is_as_counted_by_hand_and_chooses() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut node = |points, visits| Node {
            points,
            visits,
            ..Node::new(Chess::default(), &mut rng)
        };
        let mut nodes = vec![node(0.0, 10.0), node(3.0, 4.0), node(1.0, 2.0)];
        let m = nodes[0].untried[0];
        nodes[0].children = vec![(m, 1), (m, 2)];
        // 3/4 + sqrt(2 * 2.302585 / 4); 1/2 + sqrt(2 * 2.302585 / 2).
        for (place, expected) in [(1, 1.822_980), (2, 2.017_427)] {
            let found = uct(&nodes[place], 10.0);
            assert!((found - expected).abs() < 1e-5, "{place}: {found}");
        }
        assert_eq!(select(&nodes, 0), 2, "few visits");
        nodes[0].visits = 2.0;
        assert_eq!(select(&nodes, 0), 1, "a better mean");
    }

    #[test]
    fn a_mated_side_gets_nothing() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mated = |fen: &str, rng: &mut ChaCha8Rng| playout(game(fen).position().clone(), rng);
        assert_eq!(mated("7k/6Q1/5K2/8/8/8/8/8 b - - 0 1", &mut rng), 1.0);
        assert_eq!(mated("7K/6q1/5k2/8/8/8/8/8 w - - 0 1", &mut rng), 0.0);
        assert_eq!(mated("7k/8/5K2/8/8/8/8/8 b - - 0 1", &mut rng), 0.5);
    }

    #[test]
    fn values_are_of_the_side_that_moved() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mate = game("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1");
        let mut nodes = vec![Node::new(mate.position().clone(), &mut rng)];
        for _ in 0..200 {
            visit(&mut nodes, &mut rng);
        }
        let (_, child) = nodes[0]
            .children
            .iter()
            .find(|(m, _)| m.to_string() == "Ra1-a8")
            .unwrap();
        assert_eq!(nodes[*child].points, nodes[*child].visits);
    }
}
