//! Where self-play, puzzles and matches differ, and what the plies of a game are given.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::chunk::record::Effort;
use crate::ids::Seed;
use crate::params::{
    AdjudicationParams, MatchParams, PuzzleParams, ResignParams, RootSearch, SearchParams,
    SelfPlayParams, TableParams, Temperature,
};
use crate::protocol::audits::AuditedRules;
use crate::protocol::jobs::Work;

/// Whether a search may be random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exploration {
    /// Noise as the parameters say.
    Noisy,
    /// No noise: the same search every time.
    Plain,
}

/// What a search's visits are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// All of them matter: they are a policy target, or the move is sampled from them.
    Target,
    /// Only which move has most.
    Move,
}

/// Whether subtrees are kept from move to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// They are.
    Keep,
    /// Every search begins from nothing.
    Drop,
}

/// How a move is chosen when its search is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MoveChoice {
    /// A move with most visits.
    Best,
    /// By visits, at this temperature.
    Sample(f32),
}

/// Who plays how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Players {
    /// Both sides explore.
    Explorers,
    /// The side to move at the start plays its best moves, the other explores.
    Solver,
    /// Both sides play for the result: no noise.
    Rivals,
}

/// The rules of one kind of game, the same for all games of a job.
#[derive(Debug, Clone)]
pub struct GameRules {
    /// The search of every move.
    pub search: SearchParams,
    /// Whether subtrees are kept.
    pub reuse: Reuse,
    /// Plies after which a game is a draw.
    pub ply_limit: u32,
    /// Plies that are sampled from the policy before the first search.
    pub opening_plies: u32,
    /// When a lost game is given up.
    pub resign: Option<ResignParams>,
    /// When a game that both sides' searches call won is ended.
    pub adjudication: Option<AdjudicationParams>,
    /// Whether endgame tables end games.
    pub tables: Option<TableParams>,
    fast_visits: u32,
    full_share: f32,
    temperature: Temperature,
    players: Players,
}

/// A subtree can be kept for a PUCT root; sequential halving needs all its visits to be its own.
const fn reuse(search: &SearchParams) -> Reuse {
    match search.root {
        RootSearch::Puct => Reuse::Keep,
        RootSearch::Gumbel(_) => Reuse::Drop,
    }
}

impl GameRules {
    /// The rules of the games that this work asks for.
    pub fn of(work: &Work) -> Self {
        match work {
            Work::SelfPlay { params, .. } => Self::self_play(params),
            Work::Puzzles { params, .. } => Self::puzzles(params),
            Work::Match { params, .. } => Self::rivals(params),
            Work::Audit { rules, .. } => Self::audit(rules),
        }
    }

    /// The rules of the audited games, but that nothing is chosen and nothing ends early. Whether a game was
    /// played on is drawn as it was, since other numbers follow.
    pub fn audit(rules: &AuditedRules) -> Self {
        let played = match rules {
            AuditedRules::SelfPlay { params, .. } => Self::self_play(params),
            AuditedRules::Puzzles { params, .. } => Self::puzzles(params),
            AuditedRules::Match { params, .. } => Self::rivals(params),
        };
        Self {
            opening_plies: 0,
            adjudication: None,
            tables: None,
            ply_limit: u32::MAX,
            ..played
        }
    }

    /// Self-play.
    pub fn self_play(params: &SelfPlayParams) -> Self {
        Self {
            search: params.search.clone(),
            fast_visits: params.fast_visits.min(params.search.visits),
            full_share: params.full_search_share,
            temperature: params.temperature.clone(),
            reuse: if params.reuse_tree {
                reuse(&params.search)
            } else {
                Reuse::Drop
            },
            ply_limit: params.ply_limit,
            opening_plies: params.opening_plies,
            resign: params.resign.clone(),
            adjudication: params.adjudication.clone(),
            tables: params.tables.clone(),
            players: Players::Explorers,
        }
    }

    /// Puzzles.
    pub fn puzzles(params: &PuzzleParams) -> Self {
        let (search, temperature) = (&params.search, params.temperature.clone());
        let players = Players::Solver;
        Self {
            ply_limit: params.ply_limit,
            ..Self::plain(search, temperature, players)
        }
    }

    /// Matches.
    pub fn rivals(params: &MatchParams) -> Self {
        let (search, temperature) = (&params.search, params.temperature.clone());
        Self {
            ply_limit: params.ply_limit,
            adjudication: params.adjudication.clone(),
            tables: params.tables.clone(),
            ..Self::plain(search, temperature, Players::Rivals)
        }
    }

    fn plain(search: &SearchParams, temperature: Temperature, players: Players) -> Self {
        Self {
            fast_visits: search.visits,
            reuse: reuse(search),
            search: search.clone(),
            full_share: 1.0,
            temperature,
            ply_limit: 0,
            opening_plies: 0,
            resign: None,
            adjudication: None,
            tables: None,
            players,
        }
    }

    /// Whether a game that begins now, with the stream of [`game_rng`], would be played on after a
    /// resignation.
    pub fn draw_play_on(&self, rng: &mut ChaCha8Rng) -> bool {
        self.resign
            .as_ref()
            .is_some_and(|resign| rng.random::<f32>() < resign.play_on_share)
    }

    /// How much the search of the ply to which [`begin_ply`] has set the stream is given.
    pub fn draw_effort(&self, rng: &mut ChaCha8Rng) -> Effort {
        if self.full_share >= 1.0 || rng.random::<f32>() < self.full_share {
            Effort::Full
        } else {
            Effort::Fast
        }
    }

    /// Whether some searches are fast: else no effort is drawn.
    pub(crate) fn has_fast_searches(&self) -> bool {
        self.full_share < 1.0
    }

    /// Visits of a search of this effort.
    pub const fn visits(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Full => self.search.visits,
            Effort::Fast => self.fast_visits,
        }
    }

    /// Whether a search is noisy. A fast one, which gives no policy target, has no Dirichlet
    /// noise; a Gumbel root's own noise is what makes its games differ and stays.
    pub fn exploration(&self, effort: Effort) -> Exploration {
        let gumbel = matches!(self.search.root, RootSearch::Gumbel(_));
        match (self.players, effort) {
            (Players::Rivals, _) => Exploration::Plain,
            (_, Effort::Fast) if !gumbel => Exploration::Plain,
            _ => Exploration::Noisy,
        }
    }

    /// What the visits of the search at `ply`, counted from the first searched one, are for: in
    /// training games, those of a full search are a policy target.
    pub fn purpose(&self, effort: Effort, ply: u32) -> Purpose {
        let target = self.players != Players::Rivals && effort == Effort::Full;
        if !target && self.choice(ply) == MoveChoice::Best {
            Purpose::Move
        } else {
            Purpose::Target
        }
    }

    /// How the move at `ply`, counted from the first searched one, is chosen.
    pub fn choice(&self, ply: u32) -> MoveChoice {
        let temperature = self.temperature.at(ply);
        let solver = self.players == Players::Solver && ply.is_multiple_of(2);
        if solver || temperature <= 0.0 {
            MoveChoice::Best
        } else {
            MoveChoice::Sample(temperature)
        }
    }

    /// Whether a search of this effort has a policy target beside its visits.
    pub fn has_target(&self, effort: Effort) -> bool {
        effort == Effort::Full && self.search.has_target()
    }
}

/// The random numbers of a game before its first search: whether it is played on, and its opening plies.
pub fn game_rng(seed: Seed) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed.0)
}

/// Sets a game's random numbers to those of a searched ply: every ply has a stream of its own, so that its
/// search can be made again without those before it. The first number is its effort's, the others are the
/// search's noise.
pub fn begin_ply(rng: &mut ChaCha8Rng, ply: u32) {
    rng.set_stream(1 + u64::from(ply));
    rng.set_word_pos(0);
}
