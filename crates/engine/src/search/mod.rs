//! Search of one position, evaluation by evaluation.
//!
//! ```text
//!            .-- terminal: back up, walk again --.
//!            v                                   |
//! step: walk down the tree to a leaf, look at it-+-- to be evaluated: Step::Ask, game at the leaf
//!            ^                                               |
//!            '-- answer: expand with the priors, back up <---'   (rewind takes the game back)
//! ```
//!
//! [`Search`] never evaluates: [`step`](Search::step) stops where an evaluation is needed, and
//! [`answer`](Search::answer) goes on from there, so that the leaves of many games make a batch.
//! Apart from the position to walk on, the budget and the random numbers, everything it does is a
//! function of its tree.

use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::params::{RootSearch, SearchParams};
pub(crate) use rookery_common::play::{Exploration, Purpose};
use shakmaty::Move;

use crate::evaluator::Wdl;
use crate::tree::{NodeId, NodeKind, Proof, Tree};

mod divergence;
mod early;
mod expand;
mod forced;
mod game;
mod gumbel;
mod leaf;
mod position;
mod puct;
mod root;
mod softmax;
pub(crate) mod solver;
mod summary;
#[cfg(test)]
mod testing;

pub(crate) use divergence::Divergence;
use early::Watch;
pub(crate) use expand::expand;
pub use game::{Config, Gathered, Lead, Line, Room, Searcher, Standing};
use gumbel::GumbelRoot;
pub(crate) use leaf::{classify, list_moves};
pub use position::{MoveReport, Report, search_position, search_positions};
pub(crate) use puct::Puct;
pub(crate) use root::{add_noise, heat};
pub(crate) use summary::{MoveSummary, Summary};

/// Search parameters with what is computed from them once.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) params: SearchParams,
    puct: Puct,
}

impl Settings {
    pub(crate) fn new(params: &SearchParams) -> Self {
        Self {
            params: params.clone(),
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
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The game stands at a leaf that needs an evaluation, its legal moves are in `moves`.
    /// [`Search::rewind`] takes it back to the root.
    Ask,
    /// The budget is spent.
    Done,
}

/// A search tree with what is needed to go on.
#[derive(Debug, Default)]
pub(crate) struct Search {
    tree: Tree,
    /// From the root to the leaf last walked to.
    path: Vec<NodeId>,
    root: RootState,
    /// Visits of the root's moves so far.
    spent: u32,
    /// Visits of this game.
    visits: u64,
    gumbel: GumbelRoot,
    watch: Watch,
    /// Of forced playouts: `k`, while they are forced at this root.
    forced: Option<f32>,
    /// What is proven of the root; none before the solver has looked at it.
    proof: Option<Proof>,
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
        self.root = RootState::Raw;
        self.forced = None;
        self.proof = None;
        self.spent = 0;
    }

    /// The tree.
    pub(crate) const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Also forgets how many visits there were: for another game.
    pub(crate) fn reset(&mut self) {
        self.clear();
        self.visits = 0;
    }

    /// Visits of the root's moves so far.
    pub(crate) const fn spent(&self) -> u32 {
        self.spent
    }

    /// Visits since the last [`reset`](Self::reset).
    pub(crate) const fn visits(&self) -> u64 {
        self.visits
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

    /// Goes on until an evaluation is needed or the budget is spent. `game` stands at the root.
    pub(crate) fn step(
        &mut self,
        game: &mut GameHistory,
        budget: &Budget<'_>,
        rng: &mut ChaCha8Rng,
        moves: &mut Vec<PackedMove>,
    ) -> Step {
        if self.tree.is_empty() {
            self.tree.plant(game.entry());
        }
        loop {
            if self.tree.root().kind == NodeKind::Open {
                if budget.settings.params.solver && budget.visits > 0 {
                    self.prove_root(game);
                }
                if self.spent >= budget.visits || self.is_decided() {
                    return Step::Done;
                }
                if self.root == RootState::Raw {
                    self.prepare_root(budget, rng);
                }
                if self.watch.is_enough(&self.tree, self.spent, budget) {
                    return Step::Done;
                }
            }
            self.walk(game, budget.settings);
            let value = self.look(game, moves, budget.settings);
            let Some(value) = value else {
                return Step::Ask;
            };
            self.rewind(game);
            self.back_up(value);
            if budget.settings.params.solver && solver::conclude(&mut self.tree, &self.path) {
                self.proof = Some(self.tree.prove(NodeId::ROOT, |_| true));
            }
        }
    }

    /// Takes the game from the leaf back to the root.
    pub(crate) fn rewind(&self, game: &mut GameHistory) {
        (1..self.path.len()).for_each(|_| game.pop());
    }

    /// Takes the evaluation of the leaf that was asked for: a logit for each of its legal moves
    /// in the order given, and its value.
    pub(crate) fn answer(&mut self, logits: &[f32], value: Wdl, settings: &Settings) {
        if let Some(leaf) = self.path.last() {
            let temperature = settings.params.policy_temperature;
            expand::expand(&mut self.tree, *leaf, logits, temperature, value);
            self.back_up(value);
        }
    }

    /// Walks from the root to a node without an evaluation, adding it if it is new.
    fn walk(&mut self, game: &mut GameHistory, settings: &Settings) {
        self.path.clear();
        self.path.push(NodeId::ROOT);
        let mut at = NodeId::ROOT;
        while self.tree.node(at).is_searched() {
            let edge = self.tree.edge_id(at, self.select(at, settings));
            at = match self.tree.edge(edge).child() {
                Some(child) => {
                    game.push_entry(self.tree.place(child));
                    child
                }
                None => {
                    let m = self.tree.edge(edge).packed.unpack(game.position());
                    game.push(m);
                    self.tree.add_child(edge, at, game.entry())
                }
            };
            self.path.push(at);
        }
    }

    /// Which of a node's moves to walk.
    fn select(&self, at: NodeId, settings: &Settings) -> usize {
        match (&settings.params.root, at) {
            (RootSearch::Gumbel(gumbel), NodeId::ROOT) => {
                self.gumbel.select(&self.tree, self.spent, gumbel)
            }
            (RootSearch::Gumbel(gumbel), _) => gumbel::select_inner(&self.tree, at, gumbel),
            (RootSearch::Puct, NodeId::ROOT) => {
                let forced = |k| forced::select(&self.tree, k, self.spent);
                if let Some(forced) = self.forced.and_then(forced) {
                    return forced;
                }
                puct::select(&self.tree, at, &settings.puct, puct::Visited::Anywhere)
            }
            (RootSearch::Puct, _) => {
                puct::select(&self.tree, at, &settings.puct, puct::Visited::First)
            }
        }
    }

    /// Looks at the leaf: its value if it ends the game, else it is to be evaluated.
    fn look(
        &mut self,
        game: &mut GameHistory,
        moves: &mut Vec<PackedMove>,
        settings: &Settings,
    ) -> Option<Wdl> {
        let leaf = *self.path.last()?;
        if let Some(value) = self.tree.node(leaf).known_value() {
            return Some(value);
        }
        let mate = leaf::list_moves(game, moves, &settings.params);
        leaf::classify(&mut self.tree, &self.path, game, moves);
        let asked = self.tree.node(leaf).kind == NodeKind::Asked;
        // The root is evaluated in any case.
        if let Some(mate) = mate
            && asked
            && leaf != NodeId::ROOT
        {
            solver::add_mate(&mut self.tree, leaf, game, mate);
            return Some(Wdl::WIN);
        }
        self.tree.node(leaf).kind.terminal()
    }

    /// Counts one visit along the path, `value` being the leaf mover's.
    fn back_up(&mut self, value: Wdl) {
        solver::back_up(&mut self.tree, &self.path, value);
        self.visits += 1;
        self.spent += u32::from(self.path.len() > 1);
    }

    /// Follows a move that was played: keeps what is known of the position after it.
    pub(crate) fn play(&mut self, m: Move, spare: &mut Tree) {
        let packed = PackedMove::pack(m);
        let edges = self.tree.edges_of_root();
        match edges.iter().position(|edge| edge.packed == packed) {
            Some(offset) => self
                .tree
                .reroot(self.tree.edge_id(NodeId::ROOT, offset), spare),
            None => self.tree.clear(),
        }
        if !self.tree.is_empty() {
            // The root's own proof stands in the search.
            self.tree.node_mut(NodeId::ROOT).proof = Proof::Open;
        }
        self.root = RootState::Raw;
        self.forced = None;
        self.proof = None;
        self.spent = self.tree.child_visits().sum();
    }
}

#[cfg(test)]
mod tests;
