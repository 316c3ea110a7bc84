//! The one search: Monte Carlo tree search by PUCT or Gumbel, with proofs and virtual loss.
//!
//! ```text
//!               .-- known: the game is over, proven, in tables, or evaluated before: back up --.
//!               v                                                                              |
//! gather: walk down the tree to a leaf, look at it --------------------------------------------+
//!               ^                '-- to be evaluated: into the batch, with virtual loss        |
//!               '------------------------------------------------------------------------------'
//! (the caller evaluates the batch)
//! apply: expand each leaf with its priors, back up, take the virtual loss off
//! ```
//!
//! [`Search`] never evaluates. Self-play gathers one leaf of each of many games, so a game does not
//! depend on the size of a batch. Play and analysis of one position gather many of its leaves. A
//! search is a function of its tree, its [`Settings`], its [`Budget`] and random numbers.
//!
//! In the order of a visit:
//!
//! - `gather`: the loop above;
//! - `root`: noise and temperature; `early`, `divergence`: ending before the budget is spent;
//! - `walk`: to a leaf; `puct`, `gumbel`, `forced`: which move; `leaf`: what the leaf is;
//! - `softmax`: priors; `solver`: values and proofs on their way to the root;
//! - `summary`: what was found.
//!
//! Built on it: [`search_position`] (`position`) and [`Searcher`] (`game`).

use std::sync::Arc;

use rookery_common::chess::{EndgameTables, GameHistory, PackedMove};
use rookery_common::params::{RootSearch, SearchParams};
pub(crate) use rookery_common::play::{Exploration, Purpose};
use shakmaty::Move;

use crate::evaluator::Wdl;
use crate::tree::{NodeId, NodeKind, Proof, Tree};

mod divergence;
mod early;
mod forced;
mod game;
mod gather;
mod gumbel;
mod leaf;
mod position;
mod puct;
mod root;
mod softmax;
mod solver;
mod summary;
#[cfg(test)]
mod testing;
mod walk;

use early::EarlyStop;
pub use game::{
    BestMoveMargin, GatherBudget, Gathered, Line, SearchStats, Searcher, SearcherConfig,
};
pub(crate) use gather::{Limits, Pending, Scratch};
use gumbel::GumbelRoot;
pub use position::{MoveReport, Report, search_position, search_positions};
use puct::Puct;
pub(crate) use summary::{MoveSummary, Summary};

/// Search parameters with what is computed from them once.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) params: SearchParams,
    pub(crate) proofs: Proofs,
    /// What tables know of a leaf is its value.
    pub(crate) tables: Option<Arc<dyn EndgameTables>>,
    puct: Puct,
}

/// What a search does with proven results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proofs {
    /// It has none.
    Ignored,
    /// It ends once the root is won or lost. A drawn one is searched on, as its visits are recorded.
    EndIfDecisive,
    /// It ends once the root's result is proven.
    End,
}

impl Settings {
    /// The settings of games that are recorded: proofs as the parameters say, and no tables.
    pub(crate) fn new(params: &SearchParams) -> Self {
        Self {
            params: params.clone(),
            proofs: if params.solver {
                Proofs::EndIfDecisive
            } else {
                Proofs::Ignored
            },
            tables: None,
            puct: Puct::new(&params.puct),
        }
    }
}

/// How one position is to be searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget<'a> {
    pub(crate) settings: &'a Settings,
    /// Visits of the root's moves, together; what a kept subtree brings counts. With 0 the
    /// position is only evaluated.
    pub(crate) visits: u32,
    pub(crate) exploration: Exploration,
    pub(crate) purpose: Purpose,
    /// Of one gather.
    pub(crate) limits: Limits,
}

/// A search tree with what is needed to go on.
#[derive(Debug, Default)]
pub(crate) struct Search {
    tree: Tree,
    root: RootState,
    /// Moves that the root may play; empty for all.
    allowed: Vec<PackedMove>,
    /// Leaves that wait for their evaluation.
    in_flight: u32,
    counts: Counts,
    gumbel: GumbelRoot,
    early_stop: EarlyStop,
    /// Of forced playouts: `k`, while they are forced at this root.
    forced: Option<f32>,
    /// What is proven of the root; none before the solver has looked at it.
    proof: Option<Proof>,
}

/// What was done so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Visits of the root's moves, kept ones included.
    spent: u32,
    /// Visits of this game, or of this search.
    visits: u64,
    /// Plies from the root, all those visits together.
    depths: u64,
    /// Most plies from the root.
    deepest: usize,
    /// Positions that endgame tables knew.
    table_hits: u64,
    /// Visits since one came to a new position.
    visits_without_expansion: u32,
}

/// What was done to the root's priors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RootState {
    /// They are as the evaluator gave them.
    #[default]
    Raw,
    /// Temperature and noise are in; selection by PUCT.
    Puct,
    /// Temperature is in; sequential halving.
    Gumbel,
}

impl Search {
    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        self.tree.clear();
        self.begin_root();
    }

    /// Forgets what belongs to the last root.
    fn begin_root(&mut self) {
        self.root = RootState::Raw;
        self.forced = None;
        self.proof = None;
        self.counts.spent = self.tree.child_visits().sum();
    }

    /// A search whose tree has this memory.
    fn with_tree(tree: Tree) -> Self {
        Self {
            tree,
            ..Self::default()
        }
    }

    /// Begins to count anew at the root that it has, on which `game` stands. Leaves in flight are
    /// forgotten, and all is proven that follows from what the tree holds.
    fn begin(&mut self, game: &mut GameHistory, settings: &Settings) {
        self.in_flight = 0;
        self.proof = None;
        self.counts = Counts {
            spent: self.counts.spent,
            ..Counts::default()
        };
        self.tree.clear_virtual_loss();
        solver::prove_all(&mut self.tree);
        if !self.tree.is_empty() && self.tree.root().kind == NodeKind::Open {
            self.prove_root(game, settings);
        }
    }

    /// The tree.
    pub(crate) const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Also forgets how many visits there were: for another game.
    pub(crate) fn reset(&mut self) {
        self.clear();
        self.in_flight = 0;
        self.counts = Counts::default();
    }

    /// Visits of the root's moves so far.
    pub(crate) const fn spent(&self) -> u32 {
        self.counts.spent
    }

    /// Visits of the root's moves, those in flight included.
    const fn planned(&self) -> u32 {
        self.counts.spent + self.in_flight
    }

    /// Visits since the last [`reset`](Self::reset).
    pub(crate) const fn visits(&self) -> u64 {
        self.counts.visits
    }

    /// What the root is worth to its mover after a search of this kind: the mean over the visits, but of a
    /// Gumbel search what its improved policy expects, and what is proven.
    pub(crate) fn value(&self, root: &RootSearch) -> Wdl {
        if let Some(value) = self.proof.and_then(Proof::value) {
            return value;
        }
        match root {
            RootSearch::Puct => self.tree.root().value(),
            RootSearch::Gumbel(params) => self.improved_value(params),
        }
    }

    /// Follows a move that was played: keeps what is known of the position after it.
    pub(crate) fn play(&mut self, m: Move, spare: &mut Tree) {
        let packed = PackedMove::pack(m);
        let edges = self.tree.edges_of_root();
        let place = edges.iter().position(|edge| edge.packed == packed);
        self.descend(place, spare);
    }

    /// Makes the position after the root's move at `place` the root, or forgets the tree.
    fn descend(&mut self, place: Option<usize>, spare: &mut Tree) {
        match place {
            Some(place) => self
                .tree
                .reroot(self.tree.edge_id(NodeId::ROOT, place), spare),
            None => self.tree.clear(),
        }
        if !self.tree.is_empty() {
            // The root's own proof stands in the search.
            self.tree.node_mut(NodeId::ROOT).proof = Proof::Open;
        }
        self.begin_root();
    }
}

#[cfg(test)]
mod tests;
