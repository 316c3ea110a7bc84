//! How often a contributor is audited: as BOINC's adaptive replication, by results that were
//! verified one after the other (<https://github.com/BOINC/boinc/wiki/AdaptiveReplication>).

use rookery_common::audit::AuditDepth;

/// What audits have shown of a contributor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackRecord {
    /// Audits passed since the last one that failed.
    pub passed: u32,
    /// Of these, the ones that somebody else's word stands for than that of contributors who vouch for each
    /// other: the operator's auditor's, or that of a contributor for whom it has vouched.
    pub vouched: u32,
    pub failed: u32,
}

impl TrackRecord {
    /// Whether the contributor has passed its probation by the word of others than contributors who vouch for each other.
    pub const fn is_vouched_for(&self) -> bool {
        self.vouched >= PROBATION
    }

    /// Whether the contributor may decide which network is best: it was vouched for throughout its probation, and through
    /// one more for every audit that ever failed.
    pub const fn is_proven(&self) -> bool {
        self.vouched >= PROBATION.saturating_mul(self.failed.saturating_add(1))
    }
}

/// Audits to be passed before a contributor is trusted at all: until then every chunk is audited.
pub const PROBATION: u32 = 10;
/// Share of a proven contributor's audits that are full. Every ordinary chunk is audited. A brief audit makes 24 to 57
/// of its 3,200 searches again, a full one 64 to 164, so that audits cost 0.8 to 2.0 % of a proven contributor's searches. The
/// aim is less than 2 %; the most they can cost is 1.99 %.
const FULL: f64 = 0.0625;
/// The same for one who has ever failed.
const FULL_AFTER_FAILURE: f64 = 0.5;
/// Smallest share of chunks of whatever size: an audit of a small one costs more than its part.
const FLOOR_OF_SMALL: f64 = 0.02;
/// The same for one who has ever failed.
const FLOOR_OF_SMALL_AFTER_FAILURE: f64 = 0.2;

/// The share of the contributor's ordinary chunks whose audit is full, 0 to 1: all during probation.
pub fn full_audit_share(record: TrackRecord) -> f64 {
    if record.passed < PROBATION {
        return 1.0;
    }
    by_failures(record, FULL, FULL_AFTER_FAILURE)
}

/// The smallest share of chunks of whatever size that is audited: one in the number of audits passed.
fn small_rate(record: TrackRecord) -> f64 {
    let floor = by_failures(record, FLOOR_OF_SMALL, FLOOR_OF_SMALL_AFTER_FAILURE);
    (1.0 / f64::from(record.passed.max(1))).max(floor)
}

const fn by_failures(record: TrackRecord, usual: f64, after_failure: f64) -> f64 {
    if record.failed > 0 {
        after_failure
    } else {
        usual
    }
}

/// Positions of an ordinary chunk of self-play: 32 games of 100 plies.
const CHUNK_POSITIONS: u32 = 3_200;

/// Plies of an ordinary game.
const GAME_PLIES: u32 = 100;

/// As how many positions a chunk of match games is drawn for an audit. A short game counts like an ordinary one, as it
/// decides as much: made-up ones would else hardly be looked at.
pub fn match_positions(games: u32, positions: u32) -> u32 {
    positions.max(games.saturating_mul(GAME_PLIES))
}

/// The probability that a chunk with this number of positions is audited: during probation 1, then its part of an ordinary
/// chunk. A small one has at least the chance of [`small_rate`], as its audit compares few positions.
pub fn audit_chance(record: TrackRecord, positions: u32) -> f64 {
    if record.passed < PROBATION {
        return 1.0;
    }
    let chunks = f64::from(positions) / f64::from(CHUNK_POSITIONS);
    chunks.min(1.0).max(small_rate(record))
}

/// In how many parts a chunk is audited at most: an audit is one job.
const MOST_PARTS: usize = 64;

/// In how many parts a chunk that was drawn is audited, each as an ordinary chunk. A chunk has as many parts as the ordinary
/// chunks that its positions make; `chance`, uniform from 0 to 1, rounds them. So much sent at once is audited as much as in
/// pieces.
pub fn audited_parts(positions: u32, chance: f64) -> usize {
    let chunks = f64::from(positions) / f64::from(CHUNK_POSITIONS);
    ((chunks + chance) as usize).clamp(1, MOST_PARTS)
}

/// How much of a part is audited; `chance` is uniform from 0 to 1.
pub fn audit_depth(record: TrackRecord, chance: f64) -> AuditDepth {
    if chance < full_audit_share(record) {
        AuditDepth::Full
    } else {
        AuditDepth::Brief
    }
}

/// The sampling key of an audit that stays open in any case.
pub const HIGHEST_SAMPLING_KEY: f64 = 0.0;

/// The sampling key, 0 or less, by which it is decided what stays open where too many audits of one
/// contributor are: by its positions a chunk's chance, as if each position had drawn for itself
/// (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). `chance` is uniform from
/// 0 to 1.
pub fn sampling_key(chance: f64, positions: u32) -> f64 {
    chance.max(f64::MIN_POSITIVE).ln() / f64::from(positions.max(1))
}

/// Positions of a chunk from which an audit that it passes counts in full: half an ordinary chunk. Smaller chunks count
/// together once they have as many, so that a job sent in many pieces earns no more than one sent whole.
pub const PASS_POSITIONS: u32 = CHUNK_POSITIONS / 2;

/// Recent chunks that are audited at least, where they were not, once one has failed.
const SCRUTINISED: usize = 20;
/// The same at most.
pub const MOST_SCRUTINISED: usize = 200;
/// Positions that are enough between them: those of as many ordinary chunks of self-play.
const SCRUTINISED_POSITIONS: i64 = 64_000;

/// How many of a contributor's recent chunks, the newest first, are audited once one has failed.
pub fn scrutinised(positions: impl IntoIterator<Item = i64>) -> usize {
    let mut covered = 0_i64;
    let mut wanted = |(place, positions): (usize, i64)| {
        let more = place < SCRUTINISED || covered < SCRUTINISED_POSITIONS;
        covered = covered.saturating_add(positions);
        more
    };
    let recent = positions.into_iter().take(MOST_SCRUTINISED).enumerate();
    recent.take_while(|chunk| wanted(*chunk)).count()
}

/// Failed audits that quarantine a contributor, and how many chunks passed between the first and the last of them do not
/// excuse that: two in a row, as one may be an accident, or three of the last twenty.
const QUARANTINED_BY: [(usize, i64); 2] = [(2, 0), (3, 17)];

/// As many of the last failed audits are looked at.
pub const FAILURES: usize = 3;

/// The last failed audits of a contributor, and what they are excused by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streak {
    pub failures: usize,
    /// The positions of the largest of their chunks, or those of a whole pass. No passed chunk counts for more.
    pub largest: i64,
    /// Positions of chunks that passed between them from which on they lead to no quarantine.
    pub excused_by: i64,
}

/// The streaks that quarantine a contributor if nothing excuses them, from the positions of the chunks whose audits failed,
/// the newest first.
///
/// A failure counts as one chunk, and a passed chunk by its positions in those of the largest that failed: many small
/// honest chunks do not excuse a large false one.
pub fn streaks(failed: &[i64]) -> impl Iterator<Item = Streak> {
    QUARANTINED_BY.into_iter().filter_map(|(failures, chunks)| {
        let largest = failed.get(..failures)?.iter().copied();
        let largest = largest.fold(i64::from(PASS_POSITIONS), i64::max);
        Some(Streak {
            failures,
            largest,
            excused_by: largest.saturating_mul(chunks + 1),
        })
    })
}

#[cfg(test)]
mod tests {
    use rookery_common::audit::{SampledGame, sample, warm_up};
    use rookery_common::chess::Termination;
    use rookery_common::ids::{ContentHash, Seed};
    use rookery_common::params::SelfPlayParams;
    use rookery_common::protocol::audits::AuditedRules;

    use super::*;

    fn record(passed: u32, failed: u32) -> TrackRecord {
        TrackRecord {
            passed,
            vouched: passed,
            failed,
        }
    }

    #[test]
    fn trust_is_earned_by_audits_and_lost_with_one() {
        assert_eq!(full_audit_share(record(0, 0)), 1.0);
        assert_eq!(full_audit_share(record(PROBATION - 1, 0)), 1.0);
        assert_eq!(full_audit_share(record(PROBATION, 0)), FULL);
        assert_eq!(full_audit_share(record(100_000, 0)), FULL);
        assert_eq!(full_audit_share(record(0, 1)), 1.0);
        assert_eq!(full_audit_share(record(1_000, 1)), FULL_AFTER_FAILURE);
    }

    #[test]
    fn who_has_failed_is_proven_again_after_as_many_probations_more() {
        for failed in [0, 1, 5] {
            let needed = PROBATION * (1 + failed);
            assert!(!record(needed - 1, failed).is_proven(), "{failed}");
            assert!(record(needed, failed).is_proven(), "{failed}");
        }
        assert!(!record(u32::MAX - 1, u32::MAX).is_proven());
        let self_made = TrackRecord {
            vouched: PROBATION - 1,
            ..record(1_000, 0)
        };
        assert!(!self_made.is_proven() && !self_made.is_vouched_for());
    }

    #[test]
    fn every_ordinary_chunk_is_audited_and_pieces_by_their_part() {
        let chance = |passed, positions| audit_chance(record(passed, 0), positions);
        let near = |chance: f64, expected: f64| assert!((chance - expected).abs() < 1e-9);
        near(chance(0, 8), 1.0);
        near(chance(0, 50_000), 1.0);
        near(chance(20, CHUNK_POSITIONS), 1.0);
        near(chance(1_000, CHUNK_POSITIONS / 4), 0.25);
        near(chance(1_000, 4 * CHUNK_POSITIONS), 1.0);
        near(chance(20, 2), 0.05);
        near(chance(1_000, 2), FLOOR_OF_SMALL);
        near(
            audit_chance(record(1_000, 1), 2),
            FLOOR_OF_SMALL_AFTER_FAILURE,
        );
    }

    #[test]
    fn games_of_matches_are_audited_however_short_they_are() {
        let chance = |games| audit_chance(record(1_000, 0), match_positions(games, 7 * games));
        assert_eq!(chance(2 * 64), 1.0, "64 pairs of mates in seven plies");
        assert_eq!(chance(16), 0.5);
        assert_eq!(match_positions(2, 300), 300);
    }

    /// Numbers from 0 to 1, evenly.
    fn chances() -> impl Iterator<Item = f64> {
        (0_u32..1_024).map(|n| (f64::from(n) + 0.5) / 1_024.0)
    }

    fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
        numbers.sum::<f64>() / chances().count() as f64
    }

    fn full(record: TrackRecord) -> f64 {
        let is_full = |chance| audit_depth(record, chance) == AuditDepth::Full;
        mean(chances().map(|chance| f64::from(u8::from(is_full(chance)))))
    }

    fn parts(positions: u32) -> f64 {
        mean(chances().map(|chance| audited_parts(positions, chance) as f64))
    }

    #[test]
    fn audits_are_full_on_probation_and_more_often_after_a_failure() {
        assert_eq!(full(record(0, 0)), 1.0);
        assert_eq!(full(record(1_000, 0)), FULL);
        assert_eq!(full(record(1_000, 1)), FULL_AFTER_FAILURE);
    }

    #[test]
    fn what_is_sent_at_once_is_audited_as_much_as_in_pieces() {
        for positions in [8, CHUNK_POSITIONS / 2, CHUNK_POSITIONS] {
            assert_eq!(parts(positions), 1.0);
        }
        for chunks in [1.25, 1.5, 2.0, 16.0] {
            let positions = (chunks * f64::from(CHUNK_POSITIONS)) as u32;
            assert!((parts(positions) - chunks).abs() < 0.001, "{chunks}");
        }
        assert_eq!(parts(u32::MAX), MOST_PARTS as f64);
    }

    /// The most searches of an audit of an ordinary chunk, those that grow trees included.
    fn searches(depth: AuditDepth) -> f64 {
        let rules = AuditedRules::SelfPlay {
            network: ContentHash::of(b""),
            params: SelfPlayParams {
                reuse_tree: true,
                ..SelfPlayParams::default()
            },
        };
        let games: Vec<SampledGame> = (0..CHUNK_POSITIONS / GAME_PLIES)
            .map(|index| SampledGame {
                index,
                plies: GAME_PLIES,
                termination: Termination::Resignation,
            })
            .collect();
        let searches = (0..1_000).map(|chance| {
            let spans = sample(&games, warm_up(&rules), depth, Seed(chance));
            spans.iter().map(|span| span.end - span.first).sum::<u32>()
        });
        searches.max().map_or(0.0, f64::from)
    }

    /// The searches of audits in those of the chunks that they are drawn from.
    #[test]
    fn audits_of_the_proven_cost_less_than_a_fiftieth() {
        let [brief, whole] = [AuditDepth::Brief, AuditDepth::Full].map(searches);
        assert_eq!([brief, whole], [57.0, 164.0]);
        let proven = record(1_000, 0);
        let share = full(proven);
        let searches = share * whole + (1.0 - share) * brief;
        for positions in (200..100_000).step_by(100) {
            let audits = parts(positions) * audit_chance(proven, positions);
            let cost = searches * audits / f64::from(positions);
            assert!(cost < 0.02, "{cost} of {positions}");
        }
    }

    #[test]
    fn many_small_chunks_do_not_crowd_out_a_large_one() {
        let chances = (1_u32..100).map(|n| f64::from(n) / 100.0);
        let higher = chances.filter(|chance| sampling_key(*chance, 2) > sampling_key(0.01, 1_000));
        assert_eq!(higher.count(), 0);
        assert!(
            sampling_key(0.2, 100) < sampling_key(0.3, 100)
                && sampling_key(0.9, 100) < HIGHEST_SAMPLING_KEY
        );
        assert!(sampling_key(0.0, 0).is_finite());
    }

    #[test]
    fn scrutiny_goes_back_by_positions_not_by_chunks() {
        assert_eq!(scrutinised([3_200; 5]), 5);
        assert_eq!(scrutinised([3_200; 50]), 20);
        assert_eq!(scrutinised([50_000; 50]), 20);
        assert_eq!(scrutinised([1_000; 100]), 64);
        assert_eq!(scrutinised([8; 10_000]), MOST_SCRUTINISED);
    }

    /// Whether the last decided audits, the newest first, quarantine a contributor: the positions of each chunk, below 0 of
    /// those that failed.
    fn is_quarantined_by(recent: &[i64]) -> bool {
        let places: Vec<usize> = (0..recent.len()).filter(|at| recent[*at] < 0).collect();
        let failed: Vec<i64> = places
            .iter()
            .map(|at| -recent[*at])
            .take(FAILURES)
            .collect();
        streaks(&failed).any(|streak| {
            let between = &recent[..=places[streak.failures - 1]];
            let passed = between.iter().filter(|positions| **positions > 0);
            let excused: i64 = passed
                .map(|positions| (*positions).min(streak.largest))
                .sum();
            excused < streak.excused_by
        })
    }

    const PASSED: i64 = CHUNK_POSITIONS as i64;
    const FAILED: i64 = -PASSED;

    #[test]
    fn one_failure_is_an_accident_and_several_are_not() {
        assert!(!is_quarantined_by(&[]));
        assert!(!is_quarantined_by(&[FAILED, PASSED, PASSED]));
        assert!(is_quarantined_by(&[FAILED, FAILED]));
        assert!(!is_quarantined_by(&[FAILED, PASSED, FAILED]));
        let thrice = |between| {
            let mut recent = vec![PASSED; between];
            recent.push(FAILED);
            [&[FAILED], &recent[..1], &[FAILED], &recent[1..]].concat()
        };
        assert!(is_quarantined_by(&thrice(17)));
        assert!(!is_quarantined_by(&thrice(18)));
    }

    #[test]
    fn small_honest_chunks_do_not_excuse_a_large_false_one() {
        let (large, small) = (16 * FAILED, i64::from(PASS_POSITIONS));
        let after = |passed: usize| [&[large], &vec![small; passed][..], &[large]].concat();
        assert!(is_quarantined_by(&after(10)));
        assert!(is_quarantined_by(&after(31)));
        assert!(!is_quarantined_by(&after(32)));
        // Nor does a large honest one excuse small false ones.
        let (large, small) = (-large, -small);
        assert!(is_quarantined_by(&[small, large, small, large, small]));
        assert!(is_quarantined_by(&[-8, 200, 200, -8]));
    }
}
