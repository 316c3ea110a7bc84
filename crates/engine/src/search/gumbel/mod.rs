//! Gumbel AlphaZero: Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with
//! Gumbel", ICLR 2022. Names and details follow mctx's `gumbel_muzero_policy`, with Q from -1 to 1
//! and not rescaled.
//!
//! The root samples `considered` moves without replacement (the highest of logit + Gumbel noise)
//! and halves them again and again; a node below the root visits the move whose share of visits
//! lags most behind the improved policy, which is deterministic.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rookery_common::params::GumbelParams;
use rookery_common::play::halving::fill_schedule;

use super::{Budget, Exploration, Search};
use crate::evaluator::Wdl;
use crate::tree::{Edge, NodeId, Tree};

/// What a root keeps for one search; edges are in the order of the tree.
#[derive(Debug, Default)]
pub(super) struct GumbelRoot {
    /// Gumbel noise of each move.
    noise: Vec<f32>,
    /// How many visits a move must have to be visited next, for each visit of the root.
    schedule: Vec<u32>,
}

impl GumbelRoot {
    /// Draws the noise and makes the schedule.
    pub(super) fn prepare(
        &mut self,
        tree: &Tree,
        budget: &Budget<'_>,
        params: &GumbelParams,
        rng: &mut ChaCha8Rng,
    ) {
        let moves = tree.edges_of_root().len();
        self.noise.clear();
        self.noise
            .extend((0..moves).map(|_| match budget.exploration {
                Exploration::Noisy => gumbel(rng),
                Exploration::Plain => 0.0,
            }));
        let considered = moves.min(params.considered as usize);
        fill_schedule(&mut self.schedule, considered, budget.visits as usize);
    }

    /// The root's move to visit after `planned` visits, those in flight included.
    pub(super) fn select(&self, tree: &Tree, planned: u32, params: &GumbelParams) -> usize {
        let wanted = self
            .schedule
            .get(planned as usize)
            .copied()
            .unwrap_or_default();
        self.best_with(tree, wanted, params, Exploration::Noisy)
    }

    /// The move with the highest noise + logit + sigma(q) among the root's moves with `visits`.
    fn best_with(
        &self,
        tree: &Tree,
        visits: u32,
        params: &GumbelParams,
        exploration: Exploration,
    ) -> usize {
        let q = CompletedQ::new(tree, NodeId::ROOT, params);
        let (mut best, mut best_score) = (0, f32::NEG_INFINITY);
        for (offset, edge) in tree.edges_of_root().iter().enumerate() {
            if tree.planned_visits(edge) != visits {
                continue;
            }
            let noise = match exploration {
                Exploration::Noisy => self.noise.get(offset).copied().unwrap_or_default(),
                Exploration::Plain => 0.0,
            };
            let score = if tree.is_refuted(edge) {
                f32::MIN
            } else {
                noise + logit(edge) + q.sigma(tree, edge)
            };
            if score > best_score {
                (best, best_score) = (offset, score);
            }
        }
        best
    }
}

impl Search {
    /// The place among the root's edges of the move that sequential halving leaves: of those with
    /// most visits the one with the highest logit + sigma(q), and noise if [`Exploration::Noisy`]. If the
    /// root's result is proven, the move that is.
    pub(crate) fn gumbel_choice(&self, params: &GumbelParams, exploration: Exploration) -> usize {
        if let Some(edge) = self.decided_edge() {
            return edge;
        }
        let most = self.tree.child_visits().max().unwrap_or_default();
        self.gumbel.best_with(&self.tree, most, params, exploration)
    }

    /// What the root is worth to a mover who follows the improved policy: `sum(pi' completed_q)`.
    ///
    /// The mean over the visits is worth less than that: sequential halving gives every considered move its
    /// visits, the bad ones too.
    pub(crate) fn improved_value(&self, params: &GumbelParams) -> Wdl {
        let tree = &self.tree;
        let completed = CompletedQ::new(tree, NodeId::ROOT, params);
        let (mut q, mut draw) = (0.0, 0.0);
        for (edge, p) in tree
            .edges_of_root()
            .iter()
            .zip(self.improved_policy(params))
        {
            let child = edge.child().map(|child| tree.node(child));
            q += p * child.map_or(completed.mixed, |child| -child.q);
            draw += p * child.map_or(tree.root().draw, |child| child.draw);
        }
        let q = q.clamp(-1.0, 1.0);
        Wdl::from_q_and_draw(q, draw.clamp(0.0, 1.0 - q.abs()))
    }

    /// The improved policy `softmax(logit + sigma(completed q))` of the root's edges. What is proven to lose
    /// has no share of it, and all is on the move that decides.
    pub(crate) fn improved_policy(&self, params: &GumbelParams) -> Vec<f32> {
        let edges = self.tree.edges_of_root();
        if let Some(decided) = self.decided_edge() {
            let share = |place| if place == decided { 1.0 } else { 0.0 };
            return (0..edges.len()).map(share).collect();
        }
        let q = CompletedQ::new(&self.tree, NodeId::ROOT, params);
        let scores = edges.iter().map(|edge| {
            if self.tree.is_refuted(edge) {
                f32::NEG_INFINITY
            } else {
                logit(edge) + q.sigma(&self.tree, edge)
            }
        });
        let mut policy: Vec<f32> = scores.collect();
        let highest = policy.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        policy.iter_mut().for_each(|p| *p = (*p - highest).exp());
        let sum: f32 = policy.iter().sum();
        policy.iter_mut().for_each(|p| *p /= sum);
        policy
    }
}

/// The move of a node below the root: the highest `improved policy - n / (1 + N)`. Unvisited
/// moves share their q, so among them the one with the highest prior leads.
pub(super) fn select_inner(tree: &Tree, at: NodeId, params: &GumbelParams) -> usize {
    let q = CompletedQ::new(tree, at, params);
    let edges = tree.edges(at);
    let visited = edges
        .iter()
        .take_while(|edge| edge.child().is_some())
        .count();
    let unvisited = q.scale * q.mixed;
    let sigmas = edges[..visited].iter().map(|edge| q.sigma(tree, edge));
    let highest = sigmas.fold(unvisited, f32::max);
    let weight = |edge: &Edge| edge.prior * (q.sigma(tree, edge) - highest).exp();
    let rest = (1.0 - q.seen).max(0.0) * (unvisited - highest).exp();
    let sum: f32 = edges[..visited].iter().map(weight).sum::<f32>() + rest;
    let share = 1.0 / (1 + q.visits + q.in_flight) as f32;
    let lag = |edge: &Edge| weight(edge) / sum - tree.planned_visits(edge) as f32 * share;
    let candidates = edges.iter().take(visited + 1).enumerate();
    let scores = candidates.map(|(offset, edge)| (offset, lag(edge)));
    scores
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map_or(0, |best| best.0)
}

/// The completed Q of a node's moves: a visited move's own, else the mixed value.
#[derive(Debug, Clone, Copy)]
struct CompletedQ {
    /// `(v + N * sum(p q) / sum(p)) / (1 + N)`, the sums over visited moves.
    mixed: f32,
    /// `(c_visit + highest n) * c_scale`.
    scale: f32,
    /// N: visits of all moves.
    visits: u32,
    /// Visits in flight of all moves.
    in_flight: u32,
    /// Priors of the moves that have a child, added up.
    seen: f32,
}

impl CompletedQ {
    fn new(tree: &Tree, at: NodeId, params: &GumbelParams) -> Self {
        let (mut visits, mut in_flight, mut most) = (0, 0, 0);
        let (mut seen, mut valued, mut weighted) = (0.0, 0.0, 0.0);
        // Below the root the visited moves are the first ones; at the root they are anywhere.
        for edge in tree.edges(at) {
            let Some(child) = edge.child() else {
                if at == NodeId::ROOT { continue } else { break }
            };
            let child = tree.node(child);
            visits += child.visits;
            in_flight += u32::from(child.in_flight);
            most = most.max(child.visits);
            let prior = edge.prior.max(f32::MIN_POSITIVE);
            seen += prior;
            if child.is_valued() {
                valued += prior;
                weighted -= prior * child.q;
            }
        }
        let raw = tree.node(at).raw_q;
        let mean = if visits > 0 { weighted / valued } else { 0.0 };
        let mixed = (raw + visits as f32 * mean) / (1 + visits) as f32;
        let scale = (params.c_visit + most as f32) * params.c_scale;
        Self {
            mixed,
            scale,
            visits,
            in_flight,
            seen,
        }
    }

    fn sigma(&self, tree: &Tree, edge: &Edge) -> f32 {
        let child = edge.child().map(|child| tree.node(child));
        let valued = child.filter(|child| child.is_valued());
        self.scale * valued.map_or(self.mixed, |child| -child.q)
    }
}

/// The logit of a prior, up to a constant of the node.
fn logit(edge: &Edge) -> f32 {
    edge.prior.max(f32::MIN_POSITIVE).ln()
}

/// A sample of the standard Gumbel distribution.
fn gumbel(rng: &mut ChaCha8Rng) -> f32 {
    // Strictly between 0 and 1.
    let uniform = (f64::from(rng.random::<u32>()) + 0.5) / (f64::from(u32::MAX) + 1.0);
    -(-uniform.ln()).ln() as f32
}

#[cfg(test)]
mod tests;
