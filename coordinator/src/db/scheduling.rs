//! Decisions that follow from what was read, without a database: what to hand out, what a lease
//! allows, what a pair scores.

use rookery_common::params::{RunParams, SchedulingParams};
use rookery_common::protocol::jobs::{JobRequest, WorkKind};
use rookery_common::protocol::matches::MatchPurpose;

use super::types::Chances;

/// What a request gets: the first of these that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preference {
    /// Pairs of an open gate match.
    pub gate: bool,
    /// Pairs of an open rating match.
    pub rating: bool,
    pub training: Training,
}

impl Preference {
    /// Whether pairs of a match for this purpose are wanted.
    pub const fn wants(&self, purpose: MatchPurpose) -> bool {
        match purpose {
            MatchPurpose::Gate => self.gate,
            MatchPurpose::Rating => self.rating,
        }
    }
}

/// Which training games.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Training {
    /// From the start position.
    SelfPlay,
    /// From puzzles, if the run has any.
    Puzzles,
}

/// Searched plies of a game, by kind: what the run's last chunks had.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    /// Of a self-play game.
    pub selfplay: f64,
    /// Of a puzzle game.
    pub puzzle: f64,
    /// Of a match game.
    pub matches: f64,
}

impl Default for Lengths {
    fn default() -> Self {
        Self {
            selfplay: 100.0,
            puzzle: 10.0,
            matches: 100.0,
        }
    }
}

/// How many games a worker plays at once, and how fast it says it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pace {
    /// Games at once.
    pub at_once: u32,
    /// Evaluations a second, 0 if it does not know.
    pub evals_per_second: f64,
}

impl Pace {
    /// What a request says.
    pub fn of(request: &JobRequest) -> Self {
        let speed = f64::from(request.evals_per_second);
        Self {
            at_once: request.concurrent_games,
            evals_per_second: if speed.is_finite() { speed } else { 0.0 },
        }
    }
}

/// Games of each kind of job for one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobSizes {
    pub selfplay: u32,
    pub puzzle: u32,
    pub matches: u32,
}

impl JobSizes {
    /// The sizes that keep this worker busy for as long as the run says.
    pub fn new(params: &RunParams, pace: Pace, lengths: &Lengths) -> Self {
        Self::of_seconds(params, pace, lengths, params.scheduling.job_seconds.into())
    }

    /// The sizes for a contributor on probation: no larger than the run says, whatever the worker says of itself.
    pub fn on_probation(self, params: &RunParams) -> Self {
        let scheduling = &params.scheduling;
        Self {
            selfplay: self.selfplay.min(scheduling.selfplay_games.max(1)),
            puzzle: self.puzzle.min(scheduling.puzzle_games.max(1)),
            ..self
        }
    }

    /// The sizes for an auditor of the operator's: a worker asks for its next job, which may be an audit, when the games of
    /// the last one are begun.
    pub fn between_audits(params: &RunParams, pace: Pace, lengths: &Lengths) -> Self {
        let pace = Pace { at_once: 0, ..pace };
        Self::of_seconds(params, pace, lengths, SECONDS_BETWEEN_AUDITS)
    }

    fn of_seconds(params: &RunParams, pace: Pace, lengths: &Lengths, seconds: f64) -> Self {
        let (selfplay, scheduling) = (&params.selfplay, &params.scheduling);
        let full = f64::from(selfplay.full_search_share);
        let visits = full * f64::from(selfplay.search.visits)
            + (1.0 - full) * f64::from(selfplay.fast_visits);
        let puzzle = f64::from(params.puzzle.search.visits);
        let matches = f64::from(params.matches.search.visits);
        let size = |run_says, evaluations| job_size(run_says, pace, seconds, evaluations);
        // Others wait for the end of a match, and a slow worker plays many games at once for long.
        let known = pace.evals_per_second > 0.0;
        let hurry = Pace {
            at_once: if known { 0 } else { pace.at_once },
            ..pace
        };
        let (match_games, each) = (scheduling.match_games, lengths.matches * matches);
        let most_of_match = match_games.saturating_mul(LARGEST_MATCH_JOB);
        Self {
            selfplay: size(scheduling.selfplay_games, lengths.selfplay * visits),
            puzzle: size(scheduling.puzzle_games, lengths.puzzle * puzzle),
            matches: job_size(match_games, hurry, seconds, each).min(most_of_match),
        }
    }
}

/// What a request gets, by chance and the run's shares, if its jobs are so large. A network's first training job
/// is one of puzzles (unless the run wants none), so that its puzzle score is soon known: `puzzles_begun` says
/// whether it had one.
pub fn preference(
    params: &SchedulingParams,
    chances: &Chances,
    sizes: &JobSizes,
    lengths: &Lengths,
    puzzles_begun: bool,
) -> Preference {
    let share = puzzle_jobs(params, sizes, lengths);
    let training = if chances.puzzle < share || (share > 0.0 && !puzzles_begun) {
        Training::Puzzles
    } else {
        Training::SelfPlay
    };
    Preference {
        gate: chances.gate < f64::from(params.gate_share),
        rating: chances.rating < f64::from(params.rating_share),
        training,
    }
}

/// The share of training jobs that makes `puzzle_share` the share of training positions, as large
/// as this worker's jobs are.
fn puzzle_jobs(params: &SchedulingParams, sizes: &JobSizes, lengths: &Lengths) -> f64 {
    let share = f64::from(params.puzzle_share);
    let puzzles = share * f64::from(sizes.selfplay) * lengths.selfplay;
    let selfplay = (1.0 - share) * f64::from(sizes.puzzle) * lengths.puzzle;
    if puzzles + selfplay > 0.0 {
        puzzles / (puzzles + selfplay)
    } else {
        0.0
    }
}

/// For how long an operator's auditor plays until it asks again whether anything is to be audited.
const SECONDS_BETWEEN_AUDITS: f64 = 20.0;

/// How many times the run's job size a fast worker may get.
const LARGEST_JOB: u32 = 16;
/// The same for match games, of which a gate needs few: what workers say of themselves is not
/// known to be true.
const LARGEST_MATCH_JOB: u32 = 8;
/// What part of the run's job size a slow worker may get.
const SMALLEST_JOB: u32 = 4;

/// Games of a job for a worker of this pace, each of so many evaluations: what it plays in `seconds`, never
/// fewer than it plays at once, all within reason of what the run says.
fn job_size(run_says: u32, pace: Pace, seconds: f64, evaluations: f64) -> u32 {
    let run_says = run_says.max(1);
    let known = pace.evals_per_second > 0.0;
    let by_speed = if known {
        (pace.evals_per_second * seconds / evaluations.max(1.0)) as u32
    } else {
        run_says
    };
    let most = run_says.saturating_mul(LARGEST_JOB);
    pace.at_once
        .max(by_speed)
        .clamp(run_says.div_ceil(SMALLEST_JOB), most)
}

/// How many lengths of a lease heartbeats keep pairs of a match or an audit for a worker.
const LONGEST_LEASES: i64 = 24;
/// How long they do at least, in milliseconds.
const LONGEST_LEAST_MS: i64 = 3_600_000;

/// When a lease ends after a heartbeat: its length from now on. Work for which others wait is
/// kept no longer than [`LONGEST_LEASES`] or, if that is more, an hour from when it was leased: who
/// has it may finish it later, as long as nobody else has asked for it.
pub fn extended(kind: WorkKind, leased_at: i64, lease_ms: i64, now: i64) -> i64 {
    let asked = now.saturating_add(lease_ms);
    match kind {
        WorkKind::SelfPlay | WorkKind::Puzzles => asked,
        WorkKind::Match | WorkKind::Audit => {
            let longest = lease_ms.saturating_mul(LONGEST_LEASES);
            asked.min(leased_at.saturating_add(longest.max(LONGEST_LEAST_MS)))
        }
    }
}

/// Pairs of a match that a contributor may be given, who plays `in_hand` now and asks for `wanted`:
/// where others are at work, no more than half of the `left` ones, or one job of the run's size
/// (`least`), are one contributor's at once.
pub fn share_of_pairs(wanted: u32, in_hand: u32, left: u32, least: u32, company: Company) -> u32 {
    match company {
        Company::Alone => wanted,
        Company::Others => wanted.min(left.div_ceil(2).max(least).saturating_sub(in_hand)),
    }
}

/// Whether a contributor is the only one at work in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Nobody else is.
    Alone,
    /// Others are too.
    Others,
}

/// Points that a rating band of puzzles is wide.
pub const RATING_BAND: u32 = 200;

pub fn rating_band(rating: u32) -> String {
    let low = rating / RATING_BAND * RATING_BAND;
    format!("{low}-{}", low.saturating_add(RATING_BAND - 1))
}

/// Self-play games shorter than this may be equal by chance.
const UNIQUE_FROM_PLIES: u32 = 8;

/// Whether two honest self-play games of this length never have the same moves and visits.
pub const fn must_be_unique(plies: u32) -> bool {
    plies >= UNIQUE_FROM_PLIES
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::{JobId, Seed};

    use super::*;

    fn drawn(gate: f64, puzzle: f64) -> Chances {
        Chances {
            job: JobId(uuid::Uuid::nil()),
            seed: Seed(0),
            gate,
            rating: 0.5,
            puzzle,
        }
    }

    const SIZES: JobSizes = JobSizes {
        selfplay: 10,
        puzzle: 90,
        matches: 2,
    };
    const EQUAL: Lengths = Lengths {
        selfplay: 50.0,
        puzzle: 50.0,
        matches: 50.0,
    };

    fn share(puzzle_share: f32) -> SchedulingParams {
        SchedulingParams {
            puzzle_share,
            ..SchedulingParams::default()
        }
    }

    #[test]
    fn the_puzzles_share_is_one_of_positions_not_of_jobs_or_games() {
        // Nine self-play jobs of 10 games make as many games as one puzzle job of 90.
        assert!((puzzle_jobs(&share(0.5), &SIZES, &EQUAL) - 0.1).abs() < 1e-9);
        // If puzzle games are a tenth as long, ten times as many puzzle jobs a self-play job.
        let short = Lengths {
            puzzle: 5.0,
            ..EQUAL
        };
        assert!((puzzle_jobs(&share(0.5), &SIZES, &short) - 10.0 / 19.0).abs() < 1e-9);
        let training = |puzzle_share, puzzle, begun| {
            let chances = drawn(0.99, puzzle);
            preference(&share(puzzle_share), &chances, &SIZES, &EQUAL, begun).training
        };
        assert_eq!(training(0.0, 0.0, false), Training::SelfPlay);
        assert_eq!(training(1.0, 0.99, true), Training::Puzzles);
    }

    #[test]
    fn gate_and_rating_matches_have_shares_of_their_own() {
        let params = SchedulingParams {
            gate_share: 0.3,
            rating_share: 0.6,
            ..SchedulingParams::default()
        };
        let wants = |gate, rating| {
            let chances = Chances {
                rating,
                ..drawn(gate, 0.9)
            };
            let preference = preference(&params, &chances, &SIZES, &EQUAL, true);
            [MatchPurpose::Gate, MatchPurpose::Rating].map(|purpose| preference.wants(purpose))
        };
        assert_eq!(wants(0.29, 0.59), [true, true]);
        assert_eq!(wants(0.29, 0.61), [true, false]);
        assert_eq!(wants(0.31, 0.59), [false, true]);
        assert_eq!(wants(0.31, 0.61), [false, false]);
    }

    #[test]
    fn a_network_begins_with_puzzles() {
        let at = |begun| {
            let chances = drawn(0.99, 0.99);
            preference(&share(0.1), &chances, &SIZES, &EQUAL, begun).training
        };
        assert_eq!(at(false), Training::Puzzles);
        assert_eq!(at(true), Training::SelfPlay);
    }

    #[test]
    fn jobs_keep_a_worker_busy_for_minutes_within_reason() {
        let size = |at_once, evals_per_second| {
            let pace = Pace {
                at_once,
                evals_per_second,
            };
            job_size(32, pace, 300.0, 10_000.0)
        };
        assert_eq!(size(0, 0.0), 32, "nothing is known");
        assert_eq!(size(64, 0.0), 64, "what it plays at once");
        assert_eq!(size(16, 2_000.0), 60, "what it plays in five minutes");
        assert_eq!(size(1, 10.0), 8, "a slow one");
        assert_eq!(size(4_096, 1e9), 512, "a fast one");
        assert_eq!(size(u32::MAX, 0.0), 512);
    }

    #[test]
    fn heartbeats_keep_what_others_wait_for_no_longer_than_an_hour_or_many_leases() {
        let minute = 60_000;
        let end = |kind, lease, now| extended(kind, 0, lease * minute, now * minute) / minute;
        assert_eq!(end(WorkKind::Match, 1, 10), 11);
        assert_eq!(end(WorkKind::Match, 1, 1_000), 60);
        assert_eq!(end(WorkKind::Audit, 1, 59), 60);
        assert_eq!(end(WorkKind::Match, 10, 1_000), 240);
        assert_eq!(end(WorkKind::SelfPlay, 1, 1_000), 1_001, "nobody waits");
        assert_eq!(
            extended(WorkKind::Match, i64::MAX, i64::MAX, i64::MAX),
            i64::MAX
        );
    }

    #[test]
    fn nobody_has_a_whole_match_while_others_are_at_work() {
        assert_eq!(share_of_pairs(128, 0, 200, 8, Company::Alone), 128, "alone");
        assert_eq!(share_of_pairs(128, 0, 200, 8, Company::Others), 100);
        assert_eq!(share_of_pairs(128, 90, 200, 8, Company::Others), 10);
        assert_eq!(share_of_pairs(128, 100, 200, 8, Company::Others), 0);
        assert_eq!(
            share_of_pairs(8, 0, 3, 8, Company::Others),
            8,
            "a job's worth"
        );
        assert_eq!(
            share_of_pairs(1, 0, 1, 1, Company::Others),
            1,
            "the last one"
        );
    }

    #[test]
    fn what_a_worker_says_of_itself_makes_no_match_job_endless() {
        let boasts = Pace {
            at_once: u32::MAX,
            evals_per_second: 1e12,
        };
        let params = RunParams::default();
        let sizes = JobSizes::new(&params, boasts, &Lengths::default());
        let run_says = params.scheduling.match_games;
        assert_eq!(sizes.matches, run_says * LARGEST_MATCH_JOB);
    }

    /// However many games it plays at once: others wait for them.
    #[test]
    fn a_slow_worker_gets_few_games_of_a_match() {
        let params = RunParams::default();
        let sizes = |at_once, evals_per_second| {
            let pace = Pace {
                at_once,
                evals_per_second,
            };
            JobSizes::new(&params, pace, &Lengths::default())
        };
        let run_says = params.scheduling.match_games;
        assert_eq!(sizes(256, 10.0).matches, run_says / SMALLEST_JOB);
        assert_eq!(sizes(256, 10.0).selfplay, 256);
        assert_eq!(sizes(2 * run_says, 0.0).matches, 2 * run_says, "unknown");
    }

    #[test]
    fn newcomers_get_jobs_of_the_runs_size_and_auditors_short_ones() {
        let params = RunParams::default();
        let run_says = &params.scheduling;
        let fast = Pace {
            at_once: 4_096,
            evals_per_second: 1e6,
        };
        let usual = JobSizes::new(&params, fast, &Lengths::default());
        let newcomers = usual.on_probation(&params);
        assert_eq!(newcomers.selfplay, run_says.selfplay_games);
        assert_eq!(newcomers.puzzle, run_says.puzzle_games);
        assert_eq!(newcomers.matches, usual.matches);
        let slow = Pace {
            at_once: 64,
            evals_per_second: 1_000.0,
        };
        let slow = JobSizes::new(&params, slow, &Lengths::default());
        assert_eq!(slow.selfplay, 64);
        let auditors = |evals_per_second| {
            let pace = Pace {
                at_once: 64,
                evals_per_second,
            };
            JobSizes::between_audits(&params, pace, &Lengths::default()).selfplay
        };
        assert_eq!(auditors(1_000.0), run_says.selfplay_games / SMALLEST_JOB);
        assert_eq!(auditors(0.0), run_says.selfplay_games, "unknown");
    }

    #[test]
    fn bands_are_named_by_their_ends() {
        assert_eq!(rating_band(0), "0-199");
        assert_eq!(rating_band(1_250), "1200-1399");
        assert_eq!(rating_band(u32::MAX), "4294967200-4294967295");
    }
}
