//! Whether the searches of a game are such as its seed and its parameters give: how much each was given, how
//! many visits it has made, how a Gumbel root has spread them, and what its policy target may be.

use shakmaty::Color;

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::{Effort, GameKind, PlyRecord, Side};
use super::super::replay::Replayed;
use super::fail;
use super::proofs::{self, Proven};
use crate::chess::mate::ProofVisits;
use crate::network::Program;
use crate::params::RootSearch;
use crate::play::halving::VisitCounts;
use crate::play::rules::{begin_ply, game_rng};
use crate::play::{Exploration, GameRules, Purpose};
use crate::play::{TARGET_UNITS, visit_weights};
use crate::protocol::jobs::Work;

/// Positions that are looked at to check the proofs of a game. Honest games took 11 on average, and never more than 2,507.
const POSITIONS_A_GAME: u32 = 4000;

/// The searches of one job's games.
pub(super) struct SearchCheck {
    rules: GameRules,
    /// What a Gumbel root makes of full and of fast searches.
    schedules: Option<[VisitCounts; 2]>,
    /// Whether the candidate and its opponent are programs.
    programs: [bool; 2],
}

impl SearchCheck {
    pub(super) fn new(work: &Work) -> Self {
        let rules = GameRules::of(work);
        let schedules = match &rules.search.root {
            RootSearch::Puct => None,
            RootSearch::Gumbel(gumbel) => Some(
                [Effort::Full, Effort::Fast]
                    .map(|effort| VisitCounts::new(gumbel.considered, rules.visits(effort))),
            ),
        };
        let programs = match work.networks().as_slice() {
            [candidate, opponent] => {
                [candidate, opponent].map(|hash| Program::of_file(hash).is_some())
            }
            _ => [false; 2],
        };
        Self {
            rules,
            schedules,
            programs,
        }
    }

    /// The rules of the job's games.
    pub(super) const fn rules(&self) -> &GameRules {
        &self.rules
    }

    /// Checks the searches of a game whose first one is that of ply `first`; `candidate` is the candidate's
    /// side in a match.
    pub(super) fn check(
        &mut self,
        replayed: &Replayed,
        first: u32,
        candidate: Option<Side>,
    ) -> Result<(), ChunkError> {
        let game = &replayed.game;
        let mut rng = (self.rules.has_fast_searches()).then(|| game_rng(game.seed));
        let mut mover = replayed.first;
        let mut proven = Proven::default();
        let mut bounds = ProofVisits::within(POSITIONS_A_GAME);
        // Moves of an audit are those of its task.
        let is_chosen = !matches!(game.kind, GameKind::Audit { .. });
        for (ply, record) in (first..).zip(&game.plies) {
            let effort = rng.as_mut().map_or(Effort::Full, |rng| {
                begin_ply(rng, ply);
                self.rules.draw_effort(rng)
            });
            let place = (ply - first) as usize;
            let checked = if self.is_program(mover, candidate) {
                self.check_program(record, effort)
            } else {
                self.check_search(record, effort, ply)
                    .and_then(|()| self.check_proof(replayed, place, &mut bounds))
            };
            checked
                .and_then(|()| match is_chosen {
                    true => proven.follow(mover, record),
                    false => Ok(()),
                })
                .map_err(|error| error.at_ply(place))?;
            mover = !mover;
        }
        proven.check_end(&replayed.history)
    }

    /// Checks what the search at this place says of proofs.
    fn check_proof(
        &self,
        replayed: &Replayed,
        place: usize,
        bounds: &mut ProofVisits,
    ) -> Result<(), ChunkError> {
        let plies = &replayed.game.plies;
        let Some((position, _)) = replayed.history.look_back(plies.len() - place) else {
            return Ok(());
        };
        if !self.rules.search.solver {
            return Ok(());
        }
        let visits = self.rules.visits(plies[place].effort);
        proofs::check(position, &plies[place], visits, bounds)
    }

    fn is_program(&self, mover: Color, candidate: Option<Side>) -> bool {
        candidate.is_some_and(|side| self.programs[usize::from(Side::from(mover) != side)])
    }

    fn check_search(
        &mut self,
        record: &PlyRecord,
        effort: Effort,
        ply: u32,
    ) -> Result<(), ChunkError> {
        check_effort(record, effort)?;
        if self.rules.search.solver && record.is_decided() {
            return self.check_decided(record);
        }
        self.check_visits(record, ply)?;
        self.check_target(record)
    }

    /// The policy target of a search whose result is proven is the move that decides.
    fn check_decided(&self, record: &PlyRecord) -> Result<(), ChunkError> {
        self.check_target(record)?;
        let target = record.target.iter().flatten();
        if target.zip(&record.visits).any(|(w, n)| *w > 0 && *n == 0) {
            let detail = "a proven search learns another move than it plays";
            return Err(fail(ChunkErrorCode::BadTarget, detail));
        }
        Ok(())
    }

    /// All visits are made but by searches that may stop early, and sequential halving spreads them in one
    /// way.
    fn check_visits(&mut self, record: &PlyRecord, ply: u32) -> Result<(), ChunkError> {
        let limit = self.rules.visits(record.effort);
        let sum: u64 = record.visits.iter().map(|n| u64::from(*n)).sum();
        if sum > u64::from(limit) {
            let detail = format!("{sum} visits, the job gives {limit}");
            return Err(fail(ChunkErrorCode::TooManyVisits, detail));
        }
        let sum = sum as u32;
        if sum < limit && !self.may_stop(record, ply, sum, limit) {
            let detail = format!("{sum} visits, the job gives {limit}");
            return Err(fail(ChunkErrorCode::TooFewVisits, detail));
        }
        let Some([full, fast]) = &mut self.schedules else {
            return Ok(());
        };
        let schedule = match record.effort {
            Effort::Full => full,
            Effort::Fast => fast,
        };
        if has_counts(&record.visits, schedule.of(record.visits.len())) {
            return Ok(());
        }
        let detail = "sequential halving does not spread visits like this";
        Err(fail(ChunkErrorCode::WrongSchedule, detail))
    }

    /// Whether a search may have stopped with this number of visits: because further ones would hardly have moved
    /// them, or because no other move could get most any more.
    fn may_stop(&self, record: &PlyRecord, ply: u32, sum: u32, limit: u32) -> bool {
        let search = &self.rules.search;
        if search.root != RootSearch::Puct {
            return false;
        }
        let stop = search.kld_stop.as_ref();
        let settled = stop.is_some_and(|stop| sum >= stop.interval.saturating_mul(2));
        let decides = || {
            search.stop_when_decided
                && self.rules.purpose(record.effort, ply) == Purpose::Move
                && lead(&record.visits) > limit - sum
        };
        settled || decides()
    }

    /// The policy target stands beside the visits just where the search gives another one than they.
    fn check_target(&self, record: &PlyRecord) -> Result<(), ChunkError> {
        let expected = self.rules.has_target(record.effort);
        let bad = |detail: &str| Err(fail(ChunkErrorCode::BadTarget, detail));
        let target = match &record.target {
            Some(_) if !expected => return bad("the search's visits are its policy target"),
            None if expected => return bad("the policy target is missing"),
            None => return Ok(()),
            Some(target) => target,
        };
        if self.rules.search.root != RootSearch::Puct {
            let sum: u32 = target.iter().map(|weight| u32::from(*weight)).sum();
            // Each weight is rounded.
            let rounding = 1 + target.len() as u32 / 2;
            if sum.abs_diff(u32::from(TARGET_UNITS)) > rounding {
                return bad("the policy target is no distribution");
            }
            return Ok(());
        }
        if self.rules.exploration(record.effort) == Exploration::Plain {
            if *target != visit_weights(&record.visits) {
                return bad("a search without noise forces nothing that could be pruned");
            }
            return Ok(());
        }
        let most = record.visits.iter().copied().max().unwrap_or_default();
        let mut pairs = target.iter().zip(&record.visits);
        if pairs
            .clone()
            .any(|(weight, visits)| u32::from(*weight) > *visits)
        {
            return bad("a move has more weight than it had visits before pruning");
        }
        if !pairs.any(|(weight, visits)| *visits == most && u32::from(*weight) == most.min(65_535))
        {
            return bad("the move with most visits has lost some by pruning");
        }
        Ok(())
    }

    /// A program's move is a search with one visit that expects nothing.
    fn check_program(&self, record: &PlyRecord, effort: Effort) -> Result<(), ChunkError> {
        check_effort(record, effort)?;
        if !has_counts(&record.visits, &[1]) {
            let detail = "a program's move is one visit";
            return Err(fail(ChunkErrorCode::TooManyVisits, detail));
        }
        if (record.root_q, record.root_draw, record.best_q) != (0.0, 0.0, 0.0) {
            let detail = "a program expects nothing";
            return Err(fail(ChunkErrorCode::BadValue, detail));
        }
        let expected = (self.rules.has_target(effort)).then(|| visit_weights(&record.visits));
        if record.target != expected {
            let detail = "a program's policy target is its move";
            return Err(fail(ChunkErrorCode::BadTarget, detail));
        }
        Ok(())
    }
}

fn check_effort(record: &PlyRecord, effort: Effort) -> Result<(), ChunkError> {
    if record.effort == effort {
        return Ok(());
    }
    let detail = format!(
        "a search is {:?}, by the seed it is {effort:?}",
        record.effort
    );
    Err(fail(ChunkErrorCode::WrongEffort, detail))
}

/// By how much the most visited move leads.
fn lead(visits: &[u32]) -> u32 {
    let (mut most, mut second) = (0, 0);
    for visits in visits {
        if *visits > most {
            (most, second) = (*visits, most);
        } else {
            second = second.max(*visits);
        }
    }
    most - second
}

/// Whether the visited moves have these visits, most first, whichever move has which.
fn has_counts(visits: &[u32], expected: &[u32]) -> bool {
    let mut visited = [0; 256];
    let mut count = 0;
    for visits in visits.iter().filter(|visits| **visits > 0) {
        if count == expected.len() {
            return false;
        }
        visited[count] = *visits;
        count += 1;
    }
    let visited = &mut visited[..count];
    visited.sort_unstable_by(|a, b| b.cmp(a));
    visited == expected
}
