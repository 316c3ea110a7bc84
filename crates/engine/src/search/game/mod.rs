//! Search of one game with many leaves a batch: for play and analysis, where one position has the
//! whole device.
//!
//! ```text
//!              gather                    Evaluator                  apply
//! Searcher ------------> Gathered.batch -----------> Evaluations ------------> Searcher
//! ```
//!
//! Results are always proven, so that mates found are certain. [`lines`] says what was found,
//! [`choice`] which move is best. [`tables`] is what endgame tables know of the root.
//!
//! Nothing here knows of time or threads: the caller gathers, evaluates and applies for as long as
//! it likes.

use std::fmt;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{EndgameTables, GameHistory};
use rookery_common::params::{RootSearch, SearchParams};
use shakmaty::Move;

use super::divergence::Divergence;
use super::{Budget, Exploration, Limits, Proofs, Purpose, Scratch, Search, Settings};
use crate::cache::{CacheKey, EvaluationCache};
use crate::evaluator::{Evaluations, EvaluatorError, Wdl};
use crate::tree::Tree;

mod choice;
mod gathered;
mod lines;
mod reuse;
mod tables;

pub use choice::BestMoveMargin;
pub use gathered::Gathered;
pub use lines::{Line, SearchStats};

/// Walks that end without a place in the batch, for each place.
const FREE_WALKS: usize = 8;
/// Fewest such walks before control goes back.
const LEAST_FREE_WALKS: usize = 64;
/// Visits in turn without a new position after which a search is exhausted.
const MOST_VISITS_WITHOUT_EXPANSION: u32 = 100_000;
/// Most visits of a root, so that those of a batch can still be counted in 32 bits.
const MOST_VISITS: u32 = u32::MAX - (1 << 24);

/// How a [`Searcher`] searches.
#[derive(Debug, Clone, PartialEq)]
pub struct SearcherConfig {
    /// PUCT, policy temperatures and noise, and the `kld_stop` by which a [`SearchStats`] has converged; the root search is PUCT whatever
    /// it says, and its visits are not used. Noise is mixed in if it is there. Results are proven without `solver`, too; with
    /// it, mates in one are seen before they are visited.
    pub params: SearchParams,
    /// Walks of a batch that may meet a leaf under way before the batch is closed.
    pub max_collisions: u32,
    /// Boards before a position that a cached answer must have been given for as well, 0 to 7. With 7, which are all
    /// that an evaluator sees, answers are exact. With fewer, an answer for the same position after other moves is
    /// taken, which saves many evaluations and changes values little.
    pub cache_history: usize,
    /// Bytes for the tree and for the copy that is made of it when a move is played.
    pub tree_bytes: usize,
}

impl Default for SearcherConfig {
    fn default() -> Self {
        Self {
            params: SearchParams {
                noise: None,
                ..SearchParams::default()
            },
            max_collisions: 32,
            cache_history: 7,
            tree_bytes: 64 << 20,
        }
    }
}

/// How much one [`gather`](Searcher::gather) may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherBudget {
    /// Positions to evaluate.
    pub leaves: usize,
    /// Visits, with and without evaluation.
    pub visits: u32,
}

/// A game's search tree and what is needed to go on.
pub struct Searcher {
    config: SearcherConfig,
    settings: Settings,
    cache: Option<Arc<EvaluationCache>>,
    rng: ChaCha8Rng,
    /// Stands at the root.
    game: GameHistory,
    search: Search,
    /// Where a subtree is copied to when a move is played.
    spare: Tree,
    scratch: Scratch,
    /// The root's value if endgame tables know it; its allowed moves keep it.
    known_value: Option<Wdl>,
    /// Changes with the tree, so that answers for another tree are recognized.
    generation: u64,
    divergence: Divergence,
    /// Whether the last look at the divergence found that more visits hardly change anything.
    kld_converged: bool,
}

impl fmt::Debug for Searcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searcher")
            .field("config", &self.config)
            .field("counts", &self.search.counts)
            .finish_non_exhaustive()
    }
}

impl Searcher {
    /// A searcher without a tree. The cache, if there is one, must only hold answers of the
    /// evaluator that will be used; noise is drawn from `seed`.
    pub fn new(config: SearcherConfig, cache: Option<Arc<EvaluationCache>>, seed: u64) -> Self {
        // When to stop is for the caller to say, so there is no plan for sequential halving.
        let params = SearchParams {
            root: RootSearch::Puct,
            kld_stop: None,
            ..config.params.clone()
        };
        Self {
            settings: Settings {
                proofs: Proofs::End,
                ..Settings::new(&params)
            },
            cache,
            rng: ChaCha8Rng::seed_from_u64(seed),
            game: GameHistory::default(),
            search: Search::with_tree(Tree::with_room(config.tree_bytes / 2)),
            spare: Tree::with_room(config.tree_bytes / 2),
            scratch: Scratch::default(),
            known_value: None,
            generation: 0,
            divergence: Divergence::default(),
            kld_converged: false,
            config,
        }
    }

    /// Lets these endgame tables say what they know of positions from here on.
    pub fn with_tables(mut self, tables: Option<Arc<dyn EndgameTables>>) -> Self {
        self.settings.tables = tables;
        self
    }

    /// Begins the search of the position on the board, which must have legal moves, keeping what
    /// is known of it if the game goes on from the one searched before. With `only`, the root
    /// plays only these moves; of a position that endgame tables hold, only the best of them.
    pub fn begin(&mut self, game: &GameHistory, only: &[Move]) {
        let (allowed, known_value) = self.root_moves(game, only);
        self.generation += 1;
        // Visits that were kept away from some moves say nothing about the others.
        if allowed != self.search.allowed || self.config.params.noise.is_some() {
            self.search.clear();
        }
        (self.search.allowed, self.known_value) = (allowed, known_value);
        self.come_to(game);
        self.search.begin(&mut self.game, &self.settings);
        self.search.counts.table_hits = u64::from(known_value.is_some());
        self.divergence.begin();
        self.kld_converged = false;
    }

    /// Forgets the tree: for another game.
    pub fn forget(&mut self) {
        self.search.reset();
        self.generation += 1;
    }

    /// How it searches.
    pub const fn config(&self) -> &SearcherConfig {
        &self.config
    }

    /// Whether nothing is left to search: the result is proven.
    pub const fn is_over(&self) -> bool {
        self.search.is_proven(Proofs::End)
    }

    /// Whether more visits bring nothing: none has come to a new position for long, as in small
    /// endings that are drawn, or as many are counted as can be.
    pub fn is_exhausted(&self) -> bool {
        self.search.counts.visits_without_expansion >= MOST_VISITS_WITHOUT_EXPANSION
            || self.visits() >= MOST_VISITS
    }

    /// Whether the tree has no room for a batch of this many leaves.
    pub const fn is_full(&self, leaves: usize) -> bool {
        !self.search.tree().has_room(leaves)
    }

    /// Visits of the root's moves, kept ones and those under way included.
    pub const fn planned_visits(&self) -> u32 {
        self.search.planned()
    }

    /// Visits of the root, kept ones included.
    fn visits(&self) -> u32 {
        let tree = self.search.tree();
        if tree.is_empty() {
            0
        } else {
            tree.root().visits
        }
    }

    /// Walks until `gathered` has `room.leaves` positions to evaluate, or no more can be found
    /// now, or `room.visits` visits are done or under way. The old content of `gathered` is
    /// dropped. With nothing gathered, nothing under way and nothing visited, search is
    /// [over](Self::is_over).
    pub fn gather(&mut self, room: GatherBudget, gathered: &mut Gathered) {
        gathered.clear();
        gathered.generation = self.generation;
        let budget = Budget {
            settings: &self.settings,
            visits: self.search.planned().saturating_add(room.visits),
            exploration: Exploration::Noisy,
            purpose: Purpose::Target,
            limits: Limits {
                leaves: room.leaves,
                other_walks: (FREE_WALKS * room.leaves).max(LEAST_FREE_WALKS),
                collisions: self.config.max_collisions as usize,
            },
        };
        let (batch, keys) = (&mut gathered.batch, &mut gathered.keys);
        let (cache, earlier) = (&self.cache, self.config.cache_history);
        self.search.gather(
            &mut self.game,
            &budget,
            &mut self.rng,
            &mut gathered.pending,
            &mut self.scratch,
            |game, moves, known| {
                batch.push_packed(game, moves.iter().copied());
                let Some(cache) = cache else { return false };
                let key = CacheKey::of_newest(batch, batch.len() - 1, earlier);
                let found = cache.get(key, known);
                if found {
                    batch.pop();
                } else {
                    keys.push(key);
                }
                found
            },
        );
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
        let applied = answer.of_batch(&gathered.batch).map(|answers| {
            if gathered.generation == self.generation {
                let (cache, keys) = (&self.cache, &gathered.keys);
                let answers = answers.enumerate().map(|(index, (logits, value))| {
                    if let (Some(cache), Some(key)) = (cache, keys.get(index)) {
                        cache.insert(*key, logits, value);
                    }
                    (logits, value)
                });
                let pending = &mut gathered.pending;
                self.search.apply(pending, &self.settings, answers);
            }
        });
        match applied {
            Ok(()) => {
                gathered.clear();
                self.look_at_divergence();
            }
            Err(_) => self.abandon(gathered),
        }
        applied
    }

    fn look_at_divergence(&mut self) {
        let stop = self.config.params.kld_stop.as_ref();
        let (tree, visits) = (&self.search.tree, self.search.spent());
        let converged = stop.and_then(|stop| self.divergence.look(tree, visits, stop));
        self.kld_converged = converged.unwrap_or(self.kld_converged);
    }

    /// Forgets what was gathered, as if it never was: for evaluations that failed.
    pub fn abandon(&mut self, gathered: &mut Gathered) {
        if gathered.generation == self.generation {
            self.search.abandon(&mut gathered.pending);
        }
        gathered.clear();
    }
}

#[cfg(test)]
mod tests;
