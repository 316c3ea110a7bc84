//! One running game.
//!
//! ```text
//! Opening: sample moves from the bare policy        Searching: visit until the budget is spent
//!   | plies drawn, or the game would end              |  ^ choose, record, play, keep subtree
//!   '------------------------------------------------>'  '--- not over yet ---
//!                                                         over: a GameRecord
//! ```
//!
//! In a match a seat may have a program instead of a network: it moves at once, and its ply is
//! recorded as a search with one visit, of the move that it chose, and without any expectation.

use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameHistory, PackedMove, Termination};
use rookery_common::chunk::record::{Effort, GameKind, GameRecord, GameStart, PlyRecord, Side};
use rookery_common::ids::Seed;
use rookery_common::network::Program;
use rookery_common::params::RootSearch;
use rookery_common::play::rules::{begin_ply, game_rng};
use rookery_common::play::{
    Chosen, Exploration, MoveChoice, Purpose, Reuse, quantize, visit_weights,
};
use shakmaty::Move;

use super::choose::sample;
use super::job::{GamePlan, PlanKind};
use super::judges::Judges;
use super::pool::GameInHand;
use super::rules::Rules;
use crate::evaluator::{Evaluations, Wdl};
use crate::players::ProgramPlayer;
use crate::search::{self, Budget, Limits, Pending, Search, Summary};
use crate::tree::Tree;

/// A game with its searches: one for both sides, or one for each network of a match.
#[derive(Debug)]
pub(super) struct GameDriver {
    index: u32,
    seed: Seed,
    kind: PlanKind,
    start: GameStart,
    rng: ChaCha8Rng,
    game: GameHistory,
    plies: Vec<PlyRecord>,
    /// The walk of a search whose leaf waits for its evaluation.
    pending: Pending,
    /// Of an audit: the moves that follow from its searches.
    chosen: Vec<Move>,
    phase: Phase,
    play_on: bool,
    searches: Vec<Search>,
    /// Whose turn it is among the searches.
    seat: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The number of opening moves still to be sampled.
    Opening(u32),
    Searching(Effort),
}

/// Why a driver stopped.
#[derive(Debug)]
pub(super) enum Step {
    /// A leaf waits for its evaluation.
    NeedsEvaluation,
    /// The game is over.
    Over(Box<GameRecord>),
}

/// What the drivers of a pool share while they work, one at a time: memory, and the judges.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    search: search::Scratch,
    spare: Tree,
    pub(super) judges: Judges,
}

impl GameDriver {
    /// A driver that plays this game; `used` is an earlier game's driver whose memory it takes over.
    pub(super) fn new(plan: GamePlan, seed: Seed, rules: &Rules, used: Option<Self>) -> Self {
        let mut rng = game_rng(seed);
        let two = match plan.kind {
            PlanKind::Match { .. } => true,
            PlanKind::Audit { candidate, .. } => candidate.is_some(),
            PlanKind::SelfPlay | PlanKind::Puzzle { .. } => false,
        };
        let seats = if two { 2 } else { 1 };
        let mut searches = used.map(|driver| driver.searches).unwrap_or_default();
        searches.resize_with(seats, Search::default);
        searches.iter_mut().for_each(Search::reset);
        let mut play_on = rules.game.draw_play_on(&mut rng);
        let mut opening = rules.game.opening_plies;
        if let PlanKind::Audit { drawn, .. } = &plan.kind {
            // An audit's games have no resignation.
            (play_on, opening) = (true, drawn.len() as u32);
        }
        let phase = Phase::Opening(opening);
        let (index, kind, start, game) = (plan.index, plan.kind, plan.start, plan.game);
        let plies = Vec::new();
        Self {
            index,
            seed,
            kind,
            start,
            rng,
            game,
            plies,
            pending: Pending::default(),
            chosen: Vec::new(),
            phase,
            play_on,
            searches,
            seat: 0,
        }
    }

    /// Goes on until an evaluation is needed or the game is over. `ask` is that of
    /// [`Search::gather`], with the number of the evaluator before it.
    pub(super) fn advance(
        &mut self,
        rules: &Rules,
        scratch: &mut Scratch,
        mut ask: impl FnMut(usize, &GameHistory, &[PackedMove], &mut Evaluations) -> bool,
    ) -> Step {
        loop {
            if self.phase == Phase::Opening(0) {
                self.begin_search(rules);
            }
            self.seat = self.seat_of_mover();
            let end = match (self.phase, self.program(rules)) {
                (Phase::Searching(effort), Some(program)) => {
                    let ply = self.program_record(program, effort, rules);
                    self.play(ply, rules, scratch)
                }
                (phase, _) => {
                    let budget = self.budget(rules);
                    let seat = self.seat;
                    self.searches[seat].gather(
                        &mut self.game,
                        &budget,
                        &mut self.rng,
                        &mut self.pending,
                        &mut scratch.search,
                        |game, moves, known| ask(seat, game, moves, known),
                    );
                    if !self.pending.is_empty() {
                        return Step::NeedsEvaluation;
                    }
                    match phase {
                        Phase::Opening(left) => {
                            self.play_opening_move(left, rules, scratch);
                            None
                        }
                        Phase::Searching(effort) => self.play_searched_move(effort, rules, scratch),
                    }
                }
            };
            if let Some(end) = end {
                return Step::Over(Box::new(self.record(end)));
            }
        }
    }

    /// Takes the evaluation for which it waits.
    pub(super) fn answer(&mut self, logits: &[f32], value: Wdl, rules: &Rules) {
        let answers = std::iter::once((logits, value));
        self.searches[self.seat].apply(&mut self.pending, &rules.search, answers);
    }

    /// The game as it stands.
    pub(super) fn in_hand(&self) -> GameInHand<'_> {
        GameInHand {
            index: self.index,
            start: &self.start,
            plies: &self.plies,
        }
    }

    /// Searched plies so far.
    pub(super) const fn plies(&self) -> usize {
        self.plies.len()
    }

    /// Visits so far.
    pub(super) fn visits(&self) -> u64 {
        self.searches.iter().map(Search::visits).sum()
    }

    /// Which network, and which search, the side to move has.
    fn seat_of_mover(&self) -> usize {
        match self.kind {
            PlanKind::Match { candidate, .. }
            | PlanKind::Audit {
                candidate: Some(candidate),
                ..
            } => usize::from(Side::from(self.game.turn()) != candidate),
            PlanKind::SelfPlay | PlanKind::Puzzle { .. } | PlanKind::Audit { .. } => 0,
        }
    }

    /// The program that has the side to move, if it is not a network.
    fn program(&self, rules: &Rules) -> Option<Program> {
        let two = self.searches.len() > 1;
        rules.programs[self.seat].filter(|_| two)
    }

    fn budget<'a>(&self, rules: &'a Rules) -> Budget<'a> {
        let settings = &rules.search;
        match self.phase {
            Phase::Opening(_) => Budget {
                settings,
                visits: 0,
                exploration: Exploration::Plain,
                purpose: Purpose::Target,
                limits: Limits::ONE_LEAF,
            },
            Phase::Searching(effort) => Budget {
                settings,
                visits: rules.game.visits(effort),
                exploration: rules.game.exploration(effort),
                purpose: rules.game.purpose(effort, self.ply()),
                limits: Limits::ONE_LEAF,
            },
        }
    }

    /// Draws how much the next search is given. No record may show more visits than that, so a
    /// kept subtree that has more is dropped.
    ///
    /// Every ply has random numbers of its own, so that an audit can make its search again
    /// without those before it.
    fn begin_search(&mut self, rules: &Rules) {
        let ply = self.ply();
        begin_ply(&mut self.rng, ply);
        let effort = rules.game.draw_effort(&mut self.rng);
        self.phase = Phase::Searching(effort);
        let seat = self.seat_of_mover();
        if self.searches[seat].spent() > rules.game.visits(effort) {
            self.searches[seat].clear();
        }
    }

    /// The number of the ply that is searched next, among all that the game searches.
    fn ply(&self) -> u32 {
        let before = match self.kind {
            PlanKind::Audit { first_ply, .. } => first_ply,
            _ => 0,
        };
        before + self.plies.len() as u32
    }

    /// Samples a move from the policy. One that would end the game is taken back, and the opening
    /// is over.
    fn play_opening_move(&mut self, left: u32, rules: &Rules, scratch: &mut Scratch) {
        let summary = self.searches[self.seat].summary(self.game.position());
        let priors = summary.moves.iter().map(|m| f64::from(m.prior));
        let own = summary.moves[sample(priors, 1.0, &mut self.rng)].m;
        let m = match &mut self.kind {
            PlanKind::Audit { drawn, .. } => {
                self.chosen.push(own);
                drawn.pop().unwrap_or(own)
            }
            PlanKind::SelfPlay | PlanKind::Puzzle { .. } | PlanKind::Match { .. } => own,
        };
        self.game.push(m);
        if self.game.end().is_some() {
            self.game.pop();
            self.phase = Phase::Opening(0);
            return;
        }
        self.start.moves.push(m);
        self.follow(m, rules, scratch);
        self.phase = Phase::Opening(left - 1);
    }

    /// Chooses and plays a move after its search; how the game ended, if it did.
    fn play_searched_move(
        &mut self,
        effort: Effort,
        rules: &Rules,
        scratch: &mut Scratch,
    ) -> Option<GameEnd> {
        let summary = self.searches[self.seat].summary(self.game.position());
        let ply = self.ply_record(&summary, effort, rules);
        self.play(ply, rules, scratch)
    }

    /// Plays a move and records its ply; how the game ended, if it did.
    fn play(&mut self, ply: PlyRecord, rules: &Rules, scratch: &mut Scratch) -> Option<GameEnd> {
        let mover = self.game.turn();
        self.game.push(ply.played);
        self.follow(ply.played, rules, scratch);
        self.plies.push(ply);
        self.begin_search(rules);
        let judges = &scratch.judges;
        let stop = || rules.stop(&self.game, &self.plies, mover, self.play_on, judges);
        let end = self.game.end().or_else(stop);
        match &self.kind {
            PlanKind::Audit { moves, .. } if moves.is_empty() => {
                end.or(Some(GameEnd::draw(Termination::PlyLimit)))
            }
            _ => end,
        }
    }

    fn ply_record(&mut self, summary: &Summary, effort: Effort, rules: &Rules) -> PlyRecord {
        let search = &self.searches[self.seat];
        let visits: Vec<u32> = summary.moves.iter().map(|m| m.visits).collect();
        let params = &rules.search.params;
        let forces = params.root == RootSearch::Puct && params.forced_playouts.is_some();
        let pruned = forces.then(|| search.pruned_visits(summary, &rules.search));
        let target = match (&params.root, effort) {
            (_, Effort::Fast) => None,
            (RootSearch::Puct, Effort::Full) => pruned.as_deref().map(visit_weights),
            (RootSearch::Gumbel(gumbel), Effort::Full) => {
                let policy = search.improved_policy(gumbel);
                let canonical: Vec<f32> = summary.edges.iter().map(|edge| policy[*edge]).collect();
                Some(quantize(&canonical))
            }
        };
        let best = &summary.moves[summary.most_visited()];
        let value = search.value(&params.root);
        let mut ply = PlyRecord {
            played: best.m,
            effort,
            visits,
            target,
            root_q: PlyRecord::recorded(value.q()),
            root_draw: PlyRecord::recorded(value.draw.max(0.0)),
            best_q: PlyRecord::recorded(best.q.unwrap_or(value.q())),
        };
        let (target, number) = (ply.target.as_deref(), self.ply());
        let game = &rules.game;
        let chosen = game.choose(self.seed, number, &ply.visits, target, effort);
        let own = match chosen {
            Chosen::Place(place) => place,
            Chosen::MostVisited => self.best_place(summary, rules),
        };
        ply.played = self.settle(chosen, summary.moves[own].m);
        ply
    }

    /// The move to play where `own` follows from the search. An audit plays what was played when the game was
    /// first played, and notes its own choice, unless that is drawn from the visits: then whoever has these
    /// draws it, too.
    fn settle(&mut self, chosen: Chosen, own: Move) -> Move {
        let PlanKind::Audit { moves, .. } = &mut self.kind else {
            return own;
        };
        let played = moves.pop().unwrap_or(own);
        self.chosen.push(match chosen {
            Chosen::Place(_) => played,
            Chosen::MostVisited => own,
        });
        played
    }

    /// What a program does, as a search with one visit that expects nothing. Its choice follows from
    /// the game's seed, so that an audit finds it again.
    fn program_record(&mut self, program: Program, effort: Effort, rules: &Rules) -> PlyRecord {
        let legal = canonical_moves(self.game.position());
        let chosen = ProgramPlayer::new(program, self.seed.0).pick(&self.game);
        let place = legal.iter().position(|m| Some(*m) == chosen);
        let place = place.unwrap_or_default();
        let mut visits = vec![0; legal.len()];
        visits[place] = 1;
        let target = rules
            .game
            .has_target(effort)
            .then(|| visit_weights(&visits));
        PlyRecord {
            effort,
            visits,
            target,
            ..PlyRecord::new(self.settle(Chosen::MostVisited, legal[place]))
        }
    }

    /// The place of the best of the moves with most visits. After a Gumbel search that is the move which
    /// sequential halving leaves, its noise standing for the temperature, or what is proven best.
    fn best_place(&self, summary: &Summary, rules: &Rules) -> usize {
        let RootSearch::Gumbel(gumbel) = &rules.search.params.root else {
            return summary.most_visited();
        };
        let exploration = match rules.game.choice(self.ply()) {
            MoveChoice::Best => Exploration::Plain,
            MoveChoice::Sample(_) => Exploration::Noisy,
        };
        let edge = self.searches[self.seat].gumbel_choice(gumbel, exploration);
        let place = summary.edges.iter().position(|e| *e == edge);
        place.unwrap_or_default()
    }

    /// Lets every search follow a move that was played.
    fn follow(&mut self, m: Move, rules: &Rules, scratch: &mut Scratch) {
        for search in &mut self.searches {
            match rules.game.reuse {
                Reuse::Keep => search.play(m, &mut scratch.spare),
                Reuse::Drop => search.clear(),
            }
        }
    }

    fn record(&mut self, end: GameEnd) -> GameRecord {
        let kind = match &self.kind {
            PlanKind::SelfPlay => GameKind::SelfPlay {
                play_on: self.play_on,
            },
            PlanKind::Puzzle { id, puzzle } => {
                let played: Vec<Move> = self.plies.iter().map(|ply| ply.played).collect();
                GameKind::Puzzle {
                    puzzle: id.clone(),
                    solved: puzzle.solved_by(&played),
                }
            }
            PlanKind::Match { pair, candidate } => GameKind::Match {
                pair: *pair,
                candidate: *candidate,
            },
            PlanKind::Audit { .. } => GameKind::Audit {
                chosen: std::mem::take(&mut self.chosen),
            },
        };
        let start = std::mem::take(&mut self.start);
        let plies = std::mem::take(&mut self.plies);
        GameRecord {
            index: self.index,
            kind,
            seed: self.seed,
            start,
            plies,
            end,
        }
    }
}
