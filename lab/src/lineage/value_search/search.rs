//! Best-first search by values.
//!
//! All moves of a position that is looked into are valued by the network. A queue over the whole tree says which of them
//! is looked into next: the one with the smallest `f(x) * d^depth`, where `x` is its value for the side to move there,
//! so that what is bad for that side, and near the root, comes first. There, values count less the mean of the root's moves after
//! which the game goes on. In the end the best move is found by minimax over what was looked into, and other moves are not played.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameHistory, GameResult};
use shakmaty::{Move, Position};

use super::{DISCOUNT, MATE, ValueSearch};
use crate::lineage::neural::Workspace;

/// The factor for each ply of depth.
const DEPTH_FACTOR: f32 = 0.3;

/// A logarithm that keeps the sign.
fn h(x: f32) -> f32 {
    x.signum() * (x.abs() + 1.0).ln()
}

fn f(x: f32) -> f32 {
    -h(-x).exp()
}

/// The place in the queue, the smallest first, of a position that is worth `y` to White.
fn priority(y: f32, white_to_move: bool, depth: i32) -> f32 {
    let own = if white_to_move { y } else { -y };
    f(own) * DEPTH_FACTOR.powi(depth)
}

/// A position in the tree.
#[derive(Debug)]
struct Node {
    game: GameHistory,
    /// The move that led here.
    m: Option<Move>,
    depth: i32,
    /// What it is worth to White by itself.
    value: f32,
    visited: bool,
    children: Vec<usize>,
}

/// The best move after looking into `looks` positions besides the root; none where the game is over. `predict` says what
/// positions in which the game goes on are worth to White.
fn search(
    game: &GameHistory,
    looks: u32,
    predict: &mut impl FnMut(&[&GameHistory]) -> Vec<f32>,
) -> Option<Move> {
    let root = Node {
        game: game.clone(),
        m: None,
        depth: 0,
        value: 0.0,
        visited: true,
        children: Vec::new(),
    };
    let mut nodes = vec![root];
    expand(&mut nodes, 0, predict);
    let moves = &nodes[0].children;
    let mean = mean(moves.iter().map(|child| &nodes[*child]));
    let place = |node: &Node| priority(node.value - mean, node.game.turn().is_white(), node.depth);
    let mut queue: Vec<(f32, usize)> = moves
        .iter()
        .map(|child| (place(&nodes[*child]), *child))
        .collect();
    for _ in 0..looks.max(1) {
        let first = (0..queue.len()).min_by(|a, b| queue[*a].0.total_cmp(&queue[*b].0));
        let Some(first) = first else { break };
        let (_, at) = queue.swap_remove(first);
        nodes[at].visited = true;
        expand(&mut nodes, at, predict);
        queue.extend(
            nodes[at]
                .children
                .iter()
                .map(|child| (place(&nodes[*child]), *child)),
        );
    }
    let sign = if game.turn().is_white() { 1.0 } else { -1.0 };
    let looked_into = nodes[0]
        .children
        .iter()
        .filter(|child| nodes[**child].visited);
    let best = looked_into
        .max_by(|a, b| (sign * minimax(&nodes, **a)).total_cmp(&(sign * minimax(&nodes, **b))));
    best.and_then(|child| nodes[*child].m)
}

/// The mean value of positions in which the game goes on, 0 of none.
fn mean<'a>(nodes: impl Iterator<Item = &'a Node>) -> f32 {
    let values = nodes.filter(|node| node.game.end().is_none());
    let values: Vec<f32> = values.map(|node| node.value).collect();
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

/// What the end of a game is worth to White: a mate as much as one in every position from there on, and a ply less for each
/// ply of depth. It is more than what the network learns of any position in which the game goes on.
fn end_value(result: GameResult, depth: i32) -> f32 {
    let mate = MATE / (1.0 - DISCOUNT) - depth as f32;
    match result {
        GameResult::WhiteWins => mate,
        GameResult::BlackWins => -mate,
        GameResult::Draw => 0.0,
    }
}

/// Values all moves of a position in one batch, if the game goes on there.
fn expand(nodes: &mut Vec<Node>, at: usize, predict: &mut impl FnMut(&[&GameHistory]) -> Vec<f32>) {
    if nodes[at].depth > 0 && nodes[at].game.end().is_some() {
        return;
    }
    let first = nodes.len();
    for m in canonical_moves(nodes[at].game.position()) {
        let mut game = nodes[at].game.clone();
        game.push(m);
        let child = Node {
            game,
            m: Some(m),
            depth: nodes[at].depth + 1,
            value: 0.0,
            visited: false,
            children: Vec::new(),
        };
        let place = nodes.len();
        nodes.push(child);
        nodes[at].children.push(place);
    }
    let children = &mut nodes[first..];
    let ends: Vec<Option<GameResult>> = children
        .iter()
        .map(|one| one.game.end().map(|end| end.result))
        .collect();
    let asked = children.iter().zip(&ends).filter(|(_, end)| end.is_none());
    let asked: Vec<&GameHistory> = asked.map(|(child, _)| &child.game).collect();
    let mut predicted = if asked.is_empty() {
        Vec::new()
    } else {
        predict(&asked)
    }
    .into_iter();
    for (child, end) in children.iter_mut().zip(ends) {
        child.value = match end {
            Some(result) => end_value(result, child.depth),
            None => predicted.next().unwrap_or(0.0),
        };
    }
}

/// What a position is worth to White by what was looked into below it.
fn minimax(nodes: &[Node], at: usize) -> f32 {
    let node = &nodes[at];
    let below = node
        .children
        .iter()
        .filter(|child| nodes[**child].visited)
        .map(|child| minimax(nodes, *child));
    let best = if node.game.turn().is_white() {
        below.reduce(f32::max)
    } else {
        below.reduce(f32::min)
    };
    best.unwrap_or(node.value)
}

impl ValueSearch {
    /// The move that is played after looking into `looks` positions; none where the game is over.
    pub fn best(&self, game: &GameHistory, looks: u32) -> Option<Move> {
        let mut work = Workspace::default();
        search(game, looks, &mut |games| self.values(games, &mut work))
    }

    fn values(&self, games: &[&GameHistory], work: &mut Workspace) -> Vec<f32> {
        self.predict(games.iter().map(|game| game.position()), work)
    }

    /// The same where each prediction is changed by `noise`; a mate in one is played always.
    pub(super) fn best_in_training(
        &self,
        game: &GameHistory,
        looks: u32,
        noise: &mut impl FnMut(f32) -> f32,
        work: &mut Workspace,
    ) -> Option<Move> {
        let mates = |m: &Move| {
            let mut after = game.position().clone();
            after.play_unchecked(*m);
            after.is_checkmate()
        };
        let mate = canonical_moves(game.position()).into_iter().find(mates);
        mate.or_else(|| {
            search(game, looks, &mut |games| {
                let mut values = self.values(games, work);
                values.iter_mut().for_each(|value| *value = noise(*value));
                values
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::super::naive;
    use super::*;

    #[test]
    fn priorities_are_as_counted_by_hand() {
        // h(3) = ln 4; f(-3) = -exp(ln 4) = -4; f(3) = -exp(-ln 4) = -1/4; f(0) = -1.
        assert!((h(3.0) - 4.0_f32.ln()).abs() < 1e-6 && (h(-3.0) + 4.0_f32.ln()).abs() < 1e-6);
        for (y, white, depth, expected) in [
            (-3.0, true, 0, -4.0),
            (3.0, true, 0, -0.25),
            (3.0, false, 1, -1.2),
            (0.0, true, 2, -0.09),
        ] {
            let found = priority(y, white, depth);
            assert!(
                (found - expected).abs() < 1e-5,
                "{y} {white} {depth}: {found}"
            );
        }
    }

    fn material(games: &[&GameHistory]) -> Vec<f32> {
        games.iter().map(|game| naive(game)).collect()
    }

    fn plays(fen: &str, looks: u32) -> String {
        let game = GameHistory::from_fen(fen).unwrap();
        search(&game, looks, &mut material).unwrap().to_string()
    }

    #[test]
    fn what_looks_best_is_looked_into_first_and_refuted_by_the_reply() {
        // The pawn on d6 is defended: one look takes it, a few see the queen being taken.
        let defended = "4k3/2p5/3p4/8/8/8/3Q4/4K3 w - - 0 1";
        assert_eq!(plays(defended, 1), "Qd2xd6");
        assert_ne!(plays(defended, 12), "Qd2xd6");
        let black = "4k3/3q4/8/8/8/3P4/2P5/4K3 b - - 0 1";
        assert_eq!(plays(black, 1), "Qd7xd3");
        assert_ne!(plays(black, 12), "Qd7xd3");
    }

    /// After the likeliest move either another first move or a reply to the first one's answer may come next. By values less
    /// their mean it is the reply's, which is bad for its mover; by values as they are it is the other first move.
    #[test]
    fn values_count_less_the_mean_of_the_roots_moves() {
        let game = GameHistory::from_fen("k7/7p/8/8/8/8/8/K7 w - - 0 1").unwrap();
        let mut to_move = Vec::new();
        let mut predict = |games: &[&GameHistory]| {
            to_move.push(games[0].turn());
            let mut values = vec![6.0; games.len()];
            if to_move.len() == 1 {
                // Of three moves, so that the mean is 8.
                assert_eq!(games.len(), 3);
                values[0] = 12.0;
            }
            values
        };
        search(&game, 2, &mut predict);
        // -0.3 / 3 for the other first moves, and -0.09 * 3 for answers to the first one; with 6 for 6 - 8, -2.1 and -0.01.
        assert_eq!(to_move, [Color::Black, Color::White, Color::Black]);
    }

    #[test]
    fn mates_are_known_without_the_network() {
        let game = GameHistory::from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1").unwrap();
        let best = search(&game, 3, &mut |games| vec![0.0; games.len()]).unwrap();
        assert_eq!(best.to_string(), "Ra1-a8");
        let over = GameHistory::from_fen("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1").unwrap();
        assert_eq!(search(&over, 3, &mut |_| Vec::new()), None);
    }

    #[test]
    fn a_mate_is_worth_more_than_a_won_game_and_the_shorter_one_more() {
        // The network learns up to ten times the material: a won game that goes on is worth more than 100.
        for (fen, won, mate) in [
            ("7k/R7/1R6/8/8/8/8/K7 w - - 0 1", 150.0, "Rb6-b8"),
            ("k7/8/8/8/8/1r6/r7/7K b - - 0 1", -150.0, "Rb3-b1"),
        ] {
            let game = GameHistory::from_fen(fen).unwrap();
            for looks in [1, 3, 200] {
                let best = search(&game, looks, &mut |games| vec![won; games.len()]);
                assert_eq!(best.unwrap().to_string(), mate, "{looks}");
            }
        }
    }

    #[test]
    fn finished_games_do_not_count_in_the_mean() {
        let game = |fen: &str| GameHistory::from_fen(fen).unwrap();
        let node = |fen: &str, value| Node {
            game: game(fen),
            m: None,
            depth: 1,
            value,
            visited: false,
            children: Vec::new(),
        };
        let goes_on = "4k3/P7/8/8/8/8/8/4K3 b - - 0 1";
        let nodes = [
            node(goes_on, 2.0),
            node("7k/6Q1/5K2/8/8/8/8/8 b - - 0 1", 999.0),
            node(goes_on, 4.0),
        ];
        assert_eq!(mean(nodes.iter()), 3.0);
        assert_eq!(mean(nodes[1..2].iter()), 0.0);
    }

    #[test]
    fn a_mate_in_one_is_played_in_training_whatever_the_noise() {
        let agent = ValueSearch::new(1, 1);
        let game = GameHistory::from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1").unwrap();
        let mut places = 0.0;
        let mut noise = |_| {
            places += 1000.0;
            places
        };
        let work = &mut Workspace::default();
        let m = agent.best_in_training(&game, 1, &mut noise, work);
        assert_eq!(m.unwrap().to_string(), "Ra1-a8");
    }
}
