//! Search of one game with many leaves a batch: for play and analysis, where one position has the
//! whole device.
//!
//! ```text
//!              gather                    Evaluator                  apply
//! Searcher ------------> Gathered.batch -----------> Evaluations ------------> Searcher
//!    ^  walks, marks visits under way                  expands, backs up, takes marks off  |
//!    '-------------------------------------------------------------------------------------'
//! ```
//!
//! The tree is that of self-play's search, and with one leaf a batch so are the visits. Beside it
//! stands [`virtual_loss`]: visits under way, which send the walks of one batch to different leaves.
//! The solver is always on, so that mates found are certain. The parts in order: [`select`],
//! [`gather`], [`backup`]; [`lines`] says what was found. [`tables`] is what endgame tables know of
//! it.
//!
//! Nothing here knows of time or threads: the caller gathers, evaluates and applies for as long as
//! it likes.

use std::fmt;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{EndgameTables, GameHistory, PackedMove};
use rookery_common::params::SearchParams;
use shakmaty::Move;

use crate::cache::EvaluationCache;
use crate::evaluator::{Evaluations, Wdl};
use crate::search::{Divergence, Puct, add_noise, heat, solver};
use crate::tree::{NodeId, NodeKind, Proof, Tree};

mod backup;
mod choice;
mod gather;
mod gathered;
mod lines;
mod reuse;
mod select;
mod tables;
mod virtual_loss;

pub use choice::Lead;
pub use gathered::Gathered;
pub use lines::{Line, Standing};
use virtual_loss::VirtualLoss;

/// After so many visits in turn that came to no new position, a search is exhausted.
const BARREN_VISITS: u32 = 100_000;
/// Most visits of a root, so that those of a batch can still be counted in 32 bits.
const MOST_VISITS: u32 = u32::MAX - (1 << 24);

/// How a [`Searcher`] searches.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// PUCT, policy temperatures and noise, and the `kld_stop` by which a [`Standing`] is calm; the root search is PUCT whatever
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

impl Default for Config {
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
pub struct Room {
    /// Positions to evaluate.
    pub leaves: usize,
    /// Visits, with and without evaluation.
    pub visits: u32,
}

/// A game's search tree and what is needed to go on.
pub struct Searcher {
    config: Config,
    puct: Puct,
    cache: Option<Arc<EvaluationCache>>,
    tables: Option<Arc<dyn EndgameTables>>,
    rng: ChaCha8Rng,
    /// Stands at the root.
    game: GameHistory,
    tree: Tree,
    /// Where a subtree is copied to when a move is played.
    spare: Tree,
    virtual_loss: VirtualLoss,
    /// Moves that the root may play; empty for all.
    allowed: Vec<PackedMove>,
    /// The root's value if endgame tables know it; its allowed moves keep it.
    known_value: Option<Wdl>,
    /// Whether the root's priors have temperature and noise.
    prepared: bool,
    root_proof: Proof,
    /// Leaves that wait for their evaluation.
    under_way: u32,
    /// Changes with the tree, so that answers for another tree are told.
    generation: u64,
    counts: Counts,
    divergence: Divergence,
    /// Whether the last look at the divergence found that more visits hardly change anything.
    calm: bool,
    path: Vec<NodeId>,
    moves: Vec<PackedMove>,
    known: Evaluations,
}

/// What happened since the search of this root began.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Visits of the root's moves, kept ones included.
    visits: u32,
    /// Visits of this search.
    walks: u64,
    /// Plies from the root, all those visits together.
    depths: u64,
    /// Most plies from the root.
    deepest: usize,
    /// Positions that endgame tables knew.
    table_hits: u64,
    /// Visits since one came to a new position.
    barren: u32,
}

impl fmt::Debug for Searcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searcher")
            .field("config", &self.config)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Searcher {
    /// A searcher without a tree. The cache, if there is one, must only hold answers of the
    /// evaluator that will be used; noise is drawn from `seed`.
    pub fn new(config: Config, cache: Option<Arc<EvaluationCache>>, seed: u64) -> Self {
        Self {
            puct: Puct::new(&config.params.puct),
            cache,
            tables: None,
            rng: ChaCha8Rng::seed_from_u64(seed),
            game: GameHistory::default(),
            tree: Tree::with_room(config.tree_bytes / 2),
            spare: Tree::with_room(config.tree_bytes / 2),
            virtual_loss: VirtualLoss::default(),
            allowed: Vec::new(),
            known_value: None,
            prepared: false,
            root_proof: Proof::Open,
            under_way: 0,
            generation: 0,
            counts: Counts::default(),
            divergence: Divergence::default(),
            calm: false,
            path: Vec::new(),
            moves: Vec::new(),
            known: Evaluations::default(),
            config,
        }
    }

    /// Lets these endgame tables say what they know of positions from here on.
    pub fn with_tables(mut self, tables: Option<Arc<dyn EndgameTables>>) -> Self {
        self.tables = tables;
        self
    }

    /// Begins the search of the position on the board, which must have legal moves, keeping what
    /// is known of it if the game goes on from the one searched before. With `only`, the root
    /// plays only these moves; of a position that endgame tables hold, only the best of them.
    pub fn begin(&mut self, game: &GameHistory, only: &[Move]) {
        let (allowed, known_value) = self.root_moves(game, only);
        self.generation += 1;
        self.under_way = 0;
        // Visits that were kept away from some moves say nothing about the others.
        if allowed != self.allowed || self.config.params.noise.is_some() {
            self.tree.clear();
        }
        (self.allowed, self.known_value) = (allowed, known_value);
        self.come_to(game);
        self.virtual_loss.reset(self.tree.len());
        solver::prove_all(&mut self.tree);
        self.prove_root();
        self.divergence.begin();
        self.calm = false;
        self.counts = Counts {
            visits: self.tree.child_visits().sum(),
            table_hits: u64::from(known_value.is_some()),
            ..Counts::default()
        };
    }

    /// Forgets the tree: for another game.
    pub fn forget(&mut self) {
        self.tree.clear();
        self.virtual_loss.reset(0);
        self.generation += 1;
        self.under_way = 0;
    }

    /// How it searches.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Whether nothing is left to search: the result is proven.
    pub fn is_over(&self) -> bool {
        self.root_proof != Proof::Open
    }

    /// Whether more visits bring nothing: none has come to a new position for long, as in small
    /// endings that are drawn, or as many are counted as can be.
    pub fn is_exhausted(&self) -> bool {
        let visits = if self.tree.is_empty() {
            0
        } else {
            self.tree.root().visits
        };
        self.counts.barren >= BARREN_VISITS || visits >= MOST_VISITS
    }

    /// Whether the tree has no room for a batch of this many leaves.
    pub const fn is_full(&self, leaves: usize) -> bool {
        !self.tree.has_room(leaves)
    }

    /// Visits of the root's moves, kept ones and those under way included.
    pub const fn planned_visits(&self) -> u32 {
        self.counts.visits + self.under_way
    }

    /// Does what is done to a root before its first move is walked.
    fn prepare_root(&mut self) {
        if self.prepared || self.tree.root().kind != NodeKind::Open {
            return;
        }
        self.prepared = true;
        self.tree.sort_root();
        heat(
            self.tree.edges_mut(NodeId::ROOT),
            self.config.params.root_policy_temperature,
        );
        if let Some(noise) = &self.config.params.noise {
            add_noise(&mut self.tree, noise, &mut self.rng);
        }
    }
}

#[cfg(test)]
mod tests;
