//! Walking to leaves until a batch is full, and taking its answers.
//!
//! ```text
//! walk --> over, proven, or in tables -----> back up ---.
//!  ^ '---> evaluated before: in the cache -> expand -> back up
//!  | '---> under way: a collision ---------> marked, so that the next walk goes elsewhere
//!  | '---> new ----------------------------> into the batch, marked along the way
//!  '-----------------------------------------------------------'
//! ```
//!
//! The first two take no room in the batch: their visits are complete before it is computed.

use rookery_common::chess::{GameHistory, PackedMove};

use super::gathered::Gathered;
use super::select::select;
use super::{Room, Searcher};
use crate::cache::CacheKey;
use crate::evaluator::{Evaluations, EvaluatorError, Wdl};
use crate::search::{classify, expand, list_moves, solver};
use crate::tree::{NodeId, NodeKind};

/// Walks that end without a place in the batch, for each place: so that a tree of known positions
/// gives control back now and then.
const FREE_WALKS: usize = 8;
/// Fewest such walks before control goes back.
const LEAST_FREE_WALKS: usize = 64;

/// Where a walk ended.
enum Arrival {
    /// At a position whose value needs no evaluation.
    Known(Wdl),
    /// At a position to evaluate, its legal moves being in `moves`.
    Leaf,
    /// At a position that is being evaluated.
    Collision,
    /// Nowhere: no move is worth walking.
    Nowhere,
}

impl Searcher {
    /// Walks until `gathered` has `room.leaves` positions to evaluate, or no more can be found
    /// now, or `room.visits` visits are done or under way. The old content of `gathered` is
    /// dropped. With nothing gathered, nothing under way and nothing visited, search is
    /// [over](Self::is_over).
    pub fn gather(&mut self, room: Room, gathered: &mut Gathered) {
        gathered.clear();
        gathered.generation = self.generation;
        let mut game = std::mem::take(&mut self.game);
        let mut moves = std::mem::take(&mut self.moves);
        let mut path = std::mem::take(&mut self.path);
        let mut free_walks = (FREE_WALKS * room.leaves).max(LEAST_FREE_WALKS);
        let mut visits = room.visits;
        while gathered.batch.len() < room.leaves && visits > 0 && free_walks > 0 {
            if self.is_over() || !self.tree.has_room(1) {
                break;
            }
            self.prepare_root();
            let arrival = self.walk(&mut game, &mut path, &mut moves);
            let mut visited = true;
            match arrival {
                Arrival::Known(value) => self.finish(&path, value),
                Arrival::Leaf => {
                    if !self.answer_from_cache(&game, &moves, &path, gathered) {
                        self.virtual_loss.depart(&path);
                        gathered.leaves.push(&path);
                        self.under_way += 1;
                        free_walks += 1;
                    }
                }
                Arrival::Collision => {
                    self.virtual_loss.depart(&path);
                    gathered.collisions.push(&path);
                    visited = false;
                }
                Arrival::Nowhere => break,
            }
            (1..path.len()).for_each(|_| game.pop());
            free_walks -= 1;
            visits -= u32::from(visited && path.len() > 1);
            let root_only = path.len() == 1;
            if gathered.collisions.len() > self.config.max_collisions as usize
                || (root_only && !visited)
            {
                break;
            }
        }
        (self.game, self.moves, self.path) = (game, moves, path);
    }

    /// Takes the evaluations of what was gathered.
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if `answer` does not fit; what was gathered is then [given
    /// up](Self::abandon).
    pub fn apply(
        &mut self,
        gathered: &mut Gathered,
        answer: &Evaluations,
    ) -> Result<(), EvaluatorError> {
        let batch = &gathered.batch;
        if answer.values.len() != batch.len() || answer.logits.len() != batch.moves().len() {
            self.abandon(gathered);
            return Err(EvaluatorError(
                "the answer does not fit the question".to_owned(),
            ));
        }
        if gathered.generation != self.generation {
            gathered.clear();
            return Ok(());
        }
        for (index, path) in gathered.leaves.iter().enumerate() {
            let (logits, value) = (
                &answer.logits[batch.move_range(index)],
                answer.values[index],
            );
            if let (Some(cache), Some(key)) = (&self.cache, gathered.keys.get(index)) {
                cache.insert(*key, logits, value);
            }
            self.virtual_loss.arrive(path);
            self.open(path, logits, value);
        }
        self.end(gathered);
        self.look_at_divergence();
        Ok(())
    }

    fn look_at_divergence(&mut self) {
        let stop = self.config.params.kld_stop.as_ref();
        let visits = self.counts.visits;
        let calm = stop.and_then(|stop| self.divergence.look(&self.tree, visits, stop));
        self.calm = calm.unwrap_or(self.calm);
    }

    /// Forgets what was gathered, as if it never was: for evaluations that failed.
    pub fn abandon(&mut self, gathered: &mut Gathered) {
        if gathered.generation == self.generation {
            gathered
                .leaves
                .iter()
                .for_each(|path| self.virtual_loss.arrive(path));
            self.end(gathered);
        }
        gathered.clear();
    }

    /// What remains to do when all leaves have arrived.
    fn end(&mut self, gathered: &mut Gathered) {
        for path in gathered.collisions.iter() {
            self.virtual_loss.arrive(path);
        }
        self.under_way -= gathered.leaves.len() as u32;
        gathered.clear();
    }

    /// Walks from the root to the first node without an evaluation, adding it if it is new.
    fn walk(
        &mut self,
        game: &mut GameHistory,
        path: &mut Vec<NodeId>,
        moves: &mut Vec<PackedMove>,
    ) -> Arrival {
        path.clear();
        path.push(NodeId::ROOT);
        let mut at = NodeId::ROOT;
        loop {
            let node = self.tree.node(at);
            if let Some(value) = node.known_value() {
                return Arrival::Known(value);
            }
            match node.kind {
                NodeKind::Open => {}
                NodeKind::Asked if self.virtual_loss.in_flight(at) > 0 => {
                    return Arrival::Collision;
                }
                _ => return self.look(game, path, moves),
            }
            let selected = select(
                &self.tree,
                &self.virtual_loss,
                at,
                &self.puct,
                &self.allowed,
            );
            let Some(place) = selected else {
                return Arrival::Nowhere;
            };
            at = self.follow(game, at, place);
            path.push(at);
        }
    }

    /// Plays the move at a place of a node's edges.
    fn follow(&mut self, game: &mut GameHistory, at: NodeId, place: usize) -> NodeId {
        let edge = self.tree.edge_id(at, place);
        if let Some(child) = self.tree.edge(edge).child() {
            game.push_entry(self.tree.place(child));
            return child;
        }
        game.push(self.tree.edge(edge).packed.unpack(game.position()));
        let child = self.tree.add_child(edge, at, game.entry());
        self.virtual_loss.grow(self.tree.len());
        child
    }

    /// Looks at a leaf for the first time.
    fn look(
        &mut self,
        game: &mut GameHistory,
        path: &[NodeId],
        moves: &mut Vec<PackedMove>,
    ) -> Arrival {
        let Some(leaf) = path.last() else {
            return Arrival::Nowhere;
        };
        self.counts.barren = 0;
        let mate = list_moves(game, moves, &self.config.params);
        classify(&mut self.tree, path, game, moves);
        self.look_up(*leaf, game);
        if let Some(mate) = mate
            && *leaf != NodeId::ROOT
            && self.tree.node(*leaf).kind == NodeKind::Asked
        {
            solver::add_mate(&mut self.tree, *leaf, game, mate);
            self.virtual_loss.grow(self.tree.len());
            return Arrival::Known(Wdl::WIN);
        }
        let known = self.tree.node(*leaf).kind.terminal();
        known.map_or(Arrival::Leaf, Arrival::Known)
    }

    /// Backs up a value that needed no evaluation.
    fn finish(&mut self, path: &[NodeId], value: Wdl) {
        self.back_up(path, value);
        self.conclude(path);
    }

    /// Puts a leaf into the batch, or answers it from the cache. Gives whether it was answered.
    fn answer_from_cache(
        &mut self,
        game: &GameHistory,
        moves: &[PackedMove],
        path: &[NodeId],
        gathered: &mut Gathered,
    ) -> bool {
        gathered.batch.push_packed(game, moves.iter().copied());
        let Some(cache) = &self.cache else {
            return false;
        };
        let (last, earlier) = (gathered.batch.len() - 1, self.config.cache_history);
        let key = CacheKey::of_newest(&gathered.batch, last, earlier);
        let mut known = std::mem::take(&mut self.known);
        known.clear();
        let found = cache.get(key, &mut known);
        if found {
            gathered.batch.pop();
            self.open(path, &known.logits, known.values[0]);
        } else {
            gathered.keys.push(key);
        }
        self.known = known;
        found
    }

    /// Gives a leaf its priors and counts its visit.
    fn open(&mut self, path: &[NodeId], logits: &[f32], value: Wdl) {
        let Some(leaf) = path.last() else { return };
        let temperature = self.config.params.policy_temperature;
        expand(&mut self.tree, *leaf, logits, temperature, value);
        self.back_up(path, value);
    }
}
