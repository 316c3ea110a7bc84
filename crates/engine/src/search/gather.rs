//! Walking to leaves until there are enough, and taking their evaluations.

use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{GameHistory, PackedMove};

use super::walk::Arrival;
use super::{Budget, RootState, Search, Settings};
use crate::evaluator::{Evaluations, Wdl};
use crate::tree::{NodeId, NodeKind};

/// How much one [`gather`](Search::gather) may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Leaves to evaluate.
    pub(crate) leaves: usize,
    /// Walks that end without one, so that a tree of known positions gives control back now and
    /// then.
    pub(crate) other_walks: usize,
    /// Walks that may meet a leaf in flight.
    pub(crate) collisions: usize,
}

impl Limits {
    /// The next leaf, however long it takes: for searches side by side.
    pub(crate) const ONE_LEAF: Self = Self {
        leaves: 1,
        other_walks: usize::MAX,
        collisions: 0,
    };
}

/// Walks in flight: what [`gather`](Search::gather) found and [`apply`](Search::apply) finishes.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Their leaves wait for their evaluation.
    leaves: Paths,
    /// They met such a leaf, and only keep later walks away from there.
    collisions: Paths,
}

impl Pending {
    /// Number of leaves that wait.
    pub(crate) const fn len(&self) -> usize {
        self.leaves.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn clear(&mut self) {
        self.leaves.clear();
        self.collisions.clear();
    }

    /// The index of every leaf among the nodes of its tree.
    #[cfg(test)]
    pub(super) fn leaf_indices(&self) -> impl Iterator<Item = usize> {
        let last = |path: &[NodeId]| path[path.len() - 1].index();
        self.leaves.iter().map(last)
    }
}

/// Walks, one after the other.
#[derive(Debug, Default)]
struct Paths {
    nodes: Vec<NodeId>,
    ends: Vec<usize>,
}

impl Paths {
    fn push(&mut self, path: &[NodeId]) {
        self.nodes.extend_from_slice(path);
        self.ends.push(self.nodes.len());
    }

    const fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[NodeId]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.nodes[start..*end])
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.ends.clear();
    }
}

/// Memory for one walk after the other; searches that take turns can share it.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// From the root to where the walk ended.
    pub(super) path: Vec<NodeId>,
    /// The leaf's legal moves.
    pub(super) moves: Vec<PackedMove>,
    /// An evaluation that was there already.
    known: Evaluations,
}

impl Search {
    /// Walks until as many leaves are `pending` as the budget allows in one go, or no more can be
    /// found now. With none pending and none in flight, the search is over, or its `other_walks`
    /// are. `game` stands at the root.
    ///
    /// `ask` is given each leaf on the board and its legal moves. It takes the leaf into a batch, or
    /// puts an evaluation that is known already into the last argument and says `true`.
    pub(crate) fn gather(
        &mut self,
        game: &mut GameHistory,
        budget: &Budget<'_>,
        rng: &mut ChaCha8Rng,
        pending: &mut Pending,
        scratch: &mut Scratch,
        mut ask: impl FnMut(&GameHistory, &[PackedMove], &mut Evaluations) -> bool,
    ) {
        if self.tree.is_empty() {
            self.tree.plant(game.entry());
        }
        let (settings, limits) = (budget.settings, &budget.limits);
        let mut other_walks = 0;
        while pending.len() < limits.leaves
            && other_walks < limits.other_walks
            && self.tree.has_room(1)
            && !self.is_finished(game, budget, rng)
        {
            let arrival = self.walk(game, settings, scratch);
            let path = &scratch.path;
            let mut goes_on = true;
            other_walks += 1;
            match arrival {
                Arrival::Known(value) => {
                    self.back_up(path, value);
                    self.conclude(path, settings);
                }
                Arrival::Leaf => {
                    let known = &mut scratch.known;
                    known.clear();
                    if ask(game, &scratch.moves, known) {
                        self.open(path, &known.logits, known.values[0], settings);
                    } else {
                        self.tree.add_virtual_loss(path);
                        pending.leaves.push(path);
                        self.in_flight += 1;
                        other_walks -= 1;
                    }
                }
                Arrival::Collision => {
                    self.tree.add_virtual_loss(path);
                    pending.collisions.push(path);
                    goes_on = path.len() > 1 && pending.collisions.len() <= limits.collisions;
                }
                Arrival::Nowhere => goes_on = false,
            }
            (1..path.len()).for_each(|_| game.pop());
            if !goes_on {
                break;
            }
        }
    }

    /// Whether the budget is spent, or more visits are not worth it. Prepares the root for the next.
    fn is_finished(
        &mut self,
        game: &mut GameHistory,
        budget: &Budget<'_>,
        rng: &mut ChaCha8Rng,
    ) -> bool {
        // The root is evaluated in any case.
        if self.tree.root().kind != NodeKind::Open {
            return false;
        }
        if budget.visits > 0 {
            self.prove_root(game, budget.settings);
        }
        if self.planned() >= budget.visits || self.is_proven(budget.settings.proofs) {
            return true;
        }
        if self.root == RootState::Raw {
            self.prepare_root(budget, rng);
        }
        self.early_stop
            .is_enough(&self.tree, self.counts.spent, budget)
    }

    /// Takes the evaluations of what is pending: for each leaf, in the order in which they were
    /// asked for, the logits of its legal moves and its value.
    pub(crate) fn apply<'a>(
        &mut self,
        pending: &mut Pending,
        settings: &Settings,
        answers: impl Iterator<Item = (&'a [f32], Wdl)>,
    ) {
        for (path, (logits, value)) in pending.leaves.iter().zip(answers) {
            self.tree.remove_virtual_loss(path);
            self.open(path, logits, value, settings);
        }
        self.end(pending);
    }

    /// Forgets what is pending, as if it never was: for evaluations that failed.
    pub(crate) fn abandon(&mut self, pending: &mut Pending) {
        for path in pending.leaves.iter() {
            self.tree.remove_virtual_loss(path);
        }
        self.end(pending);
    }

    /// What remains to do when the leaves have no virtual loss any more.
    fn end(&mut self, pending: &mut Pending) {
        for path in pending.collisions.iter() {
            self.tree.remove_virtual_loss(path);
        }
        self.in_flight -= pending.len() as u32;
        pending.clear();
    }
}
