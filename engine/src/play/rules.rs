//! Where self-play, puzzles and matches differ.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{GameEnd, GameHistory, GameResult, Termination, tables};
use rookery_common::chunk::record::{Effort, PlyRecord};
use rookery_common::network::Program;
use rookery_common::params::{
    AdjudicationParams, MatchParams, PuzzleParams, ResignParams, RootSearch, SearchParams,
    SelfPlayParams, TableParams, Temperature,
};
use rookery_common::protocol::audits::AuditedRules;
use shakmaty::Color;

use super::job::Work;
use super::judges::Judges;
use crate::search::{Exploration, Purpose, Settings};

/// The rules of one kind of game, the same for all games of a job.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) search: Settings,
    fast_visits: u32,
    full_share: f32,
    temperature: Temperature,
    pub(super) reuse: Reuse,
    ply_limit: u32,
    pub(super) opening_plies: u32,
    resign: Option<ResignParams>,
    adjudication: Option<AdjudicationParams>,
    tables: Option<TableParams>,
    players: Players,
    /// The seats of a match, candidate's and opponent's, that have a program instead of a network.
    pub(super) programs: [Option<Program>; 2],
}

/// Whether subtrees are kept from move to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Keep,
    Drop,
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

/// How a move is chosen when its search is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Choice {
    /// The move with most visits.
    Best,
    /// By visits, at this temperature.
    Sample(f32),
}

/// A subtree can be kept for a PUCT root; sequential halving needs all its visits to be its own.
const fn reuse(search: &SearchParams) -> Reuse {
    match search.root {
        RootSearch::Puct => Reuse::Keep,
        RootSearch::Gumbel(_) => Reuse::Drop,
    }
}

impl Rules {
    pub(super) fn of(work: &Work) -> Self {
        match work {
            Work::SelfPlay { params, .. } => Self::self_play(params),
            Work::Puzzles { params, .. } => Self::puzzles(params),
            Work::Match { params, .. } => Self::rivals(params),
            Work::Audit { rules, .. } => Self::audit(rules),
        }
    }

    /// The rules of the audited games, but that nothing is chosen and nothing ends early.
    fn audit(rules: &AuditedRules) -> Self {
        let played = match rules {
            AuditedRules::SelfPlay { params, .. } => Self::self_play(params),
            AuditedRules::Puzzles { params, .. } => Self::puzzles(params),
            AuditedRules::Match { params, .. } => Self::rivals(params),
        };
        Self {
            opening_plies: 0,
            resign: None,
            adjudication: None,
            tables: None,
            ply_limit: u32::MAX,
            ..played
        }
    }

    fn self_play(params: &SelfPlayParams) -> Self {
        Self {
            search: Settings::new(&params.search),
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
            programs: [None; 2],
        }
    }

    fn puzzles(params: &PuzzleParams) -> Self {
        let (search, temperature) = (&params.search, params.temperature.clone());
        let players = Players::Solver;
        Self {
            ply_limit: params.ply_limit,
            ..Self::plain(search, temperature, players)
        }
    }

    fn rivals(params: &MatchParams) -> Self {
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
            search: Settings::new(search),
            full_share: 1.0,
            temperature,
            ply_limit: 0,
            opening_plies: 0,
            resign: None,
            adjudication: None,
            tables: None,
            players,
            programs: [None; 2],
        }
    }

    /// Whether a game that begins now would be played on after a resignation.
    pub(super) fn draw_play_on(&self, rng: &mut ChaCha8Rng) -> bool {
        self.resign
            .as_ref()
            .is_some_and(|resign| rng.random::<f32>() < resign.play_on_share)
    }

    /// How much the next search is given.
    pub(super) fn draw_effort(&self, rng: &mut ChaCha8Rng) -> Effort {
        if self.full_share >= 1.0 || rng.random::<f32>() < self.full_share {
            Effort::Full
        } else {
            Effort::Fast
        }
    }

    pub(super) const fn visits(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Full => self.search.params.visits,
            Effort::Fast => self.fast_visits,
        }
    }

    /// Whether a search is noisy. A fast one, which gives no policy target, has no Dirichlet
    /// noise; a Gumbel root's own noise is what makes its games differ and stays.
    pub(super) fn exploration(&self, effort: Effort) -> Exploration {
        let gumbel = matches!(self.search.params.root, RootSearch::Gumbel(_));
        match (self.players, effort) {
            (Players::Rivals, _) => Exploration::Plain,
            (_, Effort::Fast) if !gumbel => Exploration::Plain,
            _ => Exploration::Noisy,
        }
    }

    /// What the visits of the search at `ply`, counted from the first searched one, are for: in
    /// training games, those of a full search are a policy target.
    pub(super) fn purpose(&self, effort: Effort, ply: usize) -> Purpose {
        let target = self.players != Players::Rivals && effort == Effort::Full;
        if !target && self.choice(ply) == Choice::Best {
            Purpose::Move
        } else {
            Purpose::Target
        }
    }

    /// How the move at `ply`, counted from the first searched one, is chosen.
    pub(super) fn choice(&self, ply: usize) -> Choice {
        let temperature = self.temperature.at(ply as u32);
        let solver = self.players == Players::Solver && ply.is_multiple_of(2);
        if solver || temperature <= 0.0 {
            Choice::Best
        } else {
            Choice::Sample(temperature)
        }
    }

    /// Whether the mover gives up after this search.
    pub(super) fn resigns(&self, root_q: f32, best_q: f32) -> bool {
        self.resign
            .as_ref()
            .is_some_and(|resign| resign.is_lost(root_q, best_q))
    }

    /// Whether a search of this effort has a policy target beside its visits.
    pub(super) fn has_target(&self, effort: Effort) -> bool {
        effort == Effort::Full && self.search.params.has_target()
    }

    /// How the game is ended from outside after these plies, the last of them by `mover`.
    pub(super) fn stop(
        &self,
        game: &GameHistory,
        plies: &[PlyRecord],
        mover: Color,
        judges: &Judges,
    ) -> Option<GameEnd> {
        let judged = self
            .ask_tables(game, judges)
            .or_else(|| self.ask_searches(game, plies, mover, judges));
        match judged {
            Some(result) => Some(GameEnd {
                result,
                termination: Termination::Adjudication,
            }),
            None => (plies.len() >= self.ply_limit as usize)
                .then_some(GameEnd::draw(Termination::PlyLimit)),
        }
    }

    /// What endgame tables say of the position.
    fn ask_tables(&self, game: &GameHistory, judges: &Judges) -> Option<GameResult> {
        let (params, tables) = (self.tables.as_ref()?, judges.tables.as_ref()?);
        let position = game.position();
        if tables::decide(position, params.pieces) {
            tables.result(position)
        } else {
            None
        }
    }

    /// The winner on whom both sides have agreed for long enough, and the engine with them if it
    /// is to be asked. A program expects nothing, so that it never agrees.
    fn ask_searches(
        &self,
        game: &GameHistory,
        plies: &[PlyRecord],
        mover: Color,
        judges: &Judges,
    ) -> Option<GameResult> {
        let params = self.adjudication.as_ref()?;
        let winner = agreed_winner(plies, mover, params)?;
        let Some(engine) = &params.engine else {
            return Some(GameResult::win_of(winner));
        };
        // An engine that does not agree is asked again only after as many plies.
        if !plies.len().is_multiple_of(params.plies as usize) {
            return None;
        }
        let named = judges.referee.as_ref()?.winner(game, engine)?;
        (named == winner).then_some(GameResult::win_of(winner))
    }
}

/// The winner on whom the searches of the last plies have agreed.
fn agreed_winner(plies: &[PlyRecord], mover: Color, params: &AdjudicationParams) -> Option<Color> {
    let last = plies.len().checked_sub(params.plies as usize)?;
    let values = plies[last..].iter().rev().enumerate().map(|(back, ply)| {
        // As the last mover sees it.
        if back % 2 == 0 {
            ply.root_q
        } else {
            -ply.root_q
        }
    });
    if values.clone().all(|q| q >= params.win_value) {
        Some(mover)
    } else if values.clone().all(|q| q <= -params.win_value) {
        Some(!mover)
    } else {
        None
    }
}
