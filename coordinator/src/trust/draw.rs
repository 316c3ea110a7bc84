//! Who makes an audit: drawn by chance among all who may and are at work, never who asks first.
//!
//! An accomplice who asks all the time would else find the audits of its friends. Each contributor's chance is its
//! share of the games, so that many names for the same work are worth no more than one, and so is a quick hand: who is
//! drawn while it is busy is waited for. Games count at once, before anybody has audited them, but no more of them than
//! passed audits stand for: volume that is made up buys no audits. Who shares an address block with the author, or
//! registered at the same time, is of its [`Circle`] and makes none of its audits.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use rookery_common::ids::UserId;

use super::rate::{PASS_POSITIONS, TrackRecord};
use super::verdict::ENOUGH_VOLUNTEERS;

/// For how long an audit waits for who was drawn; then another is drawn. A worker asks again when its job
/// ends.
pub const DRAWN_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Who registers within this time of another, from outside, may be the same.
const TOGETHER_MS: i64 = 10 * 60_000;

/// By what contributors may belong together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circle {
    /// When the contributor registered, in milliseconds since 1970; none of whom the operator made, or who
    /// registered from this machine or a private network.
    pub registered_at: Option<i64>,
    /// Blocks of addresses from which the contributor registered and worked.
    pub blocks: BTreeSet<i64>,
}

impl Circle {
    /// Whether two contributors may be the same person.
    fn meets(&self, other: &Self) -> bool {
        let together = self
            .registered_at
            .zip(other.registered_at)
            .is_some_and(|(one, other)| one.abs_diff(other) < TOGETHER_MS.unsigned_abs());
        together || !self.blocks.is_disjoint(&other.blocks)
    }
}

/// A contributor, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub user: UserId,
    /// What audits have shown of it.
    pub record: TrackRecord,
    /// By what it may belong to others.
    pub circle: Circle,
}

/// A contributor at work, who may be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub person: Person,
    /// Positions of games that came in within a day.
    pub positions: u64,
}

impl Candidate {
    /// Its chance beside the others': the day's positions, as far as its passed audits stand for them. A candidate without
    /// any has a little.
    fn weight(&self) -> f64 {
        let audited = u64::from(self.person.record.passed) * u64::from(PASS_POSITIONS);
        1.0 + self.positions.min(audited) as f64
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingAudit {
    pub id: i64,
    /// Whose chunk it is.
    pub author: Person,
    /// Who has an opinion on it already.
    pub asked: Vec<UserId>,
}

/// The audits of a run that wait, and who could make them.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawBoard {
    /// The audits, the oldest first.
    pub audits: Vec<WaitingAudit>,
    /// Who is at work.
    pub candidates: Vec<Candidate>,
    /// Whether the operator has named an auditor.
    pub named: bool,
    /// Contributors [vouched for](TrackRecord::is_vouched_for) who were heard of within a day.
    pub vouched_for: i64,
}

impl DrawBoard {
    /// Whether a candidate may make an audit.
    ///
    /// The chunks of newcomers are for those who are vouched for, or for the operator's auditor. Newcomers audit each other
    /// only while there is neither, and make the audits of the others while these are too few. So those who vouched for each
    /// other take no audits away from anybody.
    pub fn may_make(&self, candidate: &Candidate, audit: &WaitingAudit) -> bool {
        let (person, author) = (&candidate.person, &audit.author);
        let enough = if author.record.is_vouched_for() {
            ENOUGH_VOLUNTEERS
        } else {
            1
        };
        let newcomers_may = !self.named && self.vouched_for < enough;
        person.user != author.user
            && !audit.asked.contains(&person.user)
            && (newcomers_may || person.record.is_vouched_for())
            && !person.circle.meets(&author.circle)
    }

    /// Draws somebody for each audit for which there is somebody. `chance` gives numbers from 0 to 1.
    pub fn draw<E>(
        self,
        mut chance: impl FnMut() -> Result<f64, E>,
    ) -> Result<Vec<(i64, UserId)>, E> {
        let mut drawn = Vec::new();
        for audit in &self.audits {
            let able = self.candidates.iter();
            let able: Vec<(UserId, f64)> = able
                .filter(|candidate| self.may_make(candidate, audit))
                .map(|candidate| (candidate.person.user, candidate.weight()))
                .collect();
            let mut left = chance()? * able.iter().map(|(_, weight)| weight).sum::<f64>();
            let chosen = able.iter().find(|(_, weight)| {
                left -= weight;
                left < 0.0
            });
            if let Some((user, _)) = chosen.or(able.last()) {
                drawn.push((audit.id, *user));
            }
        }
        Ok(drawn)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::trust::rate::PROBATION;

    fn person(user: i64, passed: u32) -> Person {
        Person {
            user: UserId(user),
            record: TrackRecord {
                passed,
                vouched: passed,
                failed: 0,
            },
            circle: Circle::default(),
        }
    }

    fn candidate(user: i64, passed: u32, positions: u64) -> Candidate {
        Candidate {
            person: person(user, passed),
            positions,
        }
    }

    fn board(audits: i64, author: &Person, candidates: Vec<Candidate>) -> DrawBoard {
        let vouched_for = |one: &&Candidate| one.person.record.is_vouched_for();
        DrawBoard {
            audits: (0..audits)
                .map(|id| WaitingAudit {
                    id,
                    author: author.clone(),
                    asked: Vec::new(),
                })
                .collect(),
            vouched_for: candidates.iter().filter(vouched_for).count() as i64,
            candidates,
            named: false,
        }
    }

    /// Numbers from 0 to 1, evenly.
    fn chances() -> impl FnMut() -> Result<f64, std::convert::Infallible> {
        let mut n = 0.0;
        move || {
            n += 0.618_033_988_75;
            Ok(f64::fract(n))
        }
    }

    fn who(board: DrawBoard) -> Vec<i64> {
        let drawn = board.draw(chances()).unwrap();
        drawn.into_iter().map(|(_, UserId(user))| user).collect()
    }

    /// How often everybody is drawn.
    fn times(board: DrawBoard) -> BTreeMap<i64, usize> {
        let mut counts = BTreeMap::new();
        for user in who(board) {
            *counts.entry(user).or_default() += 1;
        }
        counts
    }

    #[test]
    fn chance_is_the_share_of_the_work_however_many_audits_wait() {
        let author = person(1, PROBATION);
        // One honest contributor, and nine names that share a tenth of the work.
        let mut all = vec![candidate(2, 100, 90_000)];
        all.extend((3..12).map(|user| candidate(user, 100, 1_111)));
        let counts = times(board(10_000, &author, all));
        assert!((8_900..9_100).contains(&counts[&2]), "{counts:?}");
    }

    #[test]
    fn volume_that_nobody_audited_is_worth_no_more_than_the_audits_that_were_passed() {
        let author = person(1, PROBATION);
        let stood_for = u64::from(PROBATION * PASS_POSITIONS);
        let all = vec![
            candidate(2, PROBATION, stood_for),
            candidate(3, PROBATION, 1_000 * stood_for),
            // Newcomers of whom nothing has passed.
            candidate(4, 0, 1_000 * stood_for),
        ];
        let mut board = board(10_000, &author, all);
        board.vouched_for = 0;
        let counts = times(board);
        assert!((4_900..5_100).contains(&counts[&2]), "{counts:?}");
        assert!((4_900..5_100).contains(&counts[&3]), "{counts:?}");
        assert!(counts.get(&4).is_none_or(|times| *times < 10), "{counts:?}");
    }

    #[test]
    fn nobody_of_the_authors_circle_is_drawn() {
        let mut author = person(1, 0);
        author.circle = Circle {
            registered_at: Some(1_000_000),
            blocks: BTreeSet::from([7, 8]),
        };
        let with = |user, registered_at, blocks: &[i64]| {
            let mut one = candidate(user, PROBATION, 10);
            one.person.circle = Circle {
                registered_at,
                blocks: blocks.iter().copied().collect(),
            };
            one
        };
        let far = 1_000_000 + TOGETHER_MS;
        let all = vec![
            candidate(1, PROBATION, 10),
            with(2, Some(far - 1), &[]),
            with(3, Some(far), &[8]),
            with(4, None, &[7, 9]),
            with(5, Some(far), &[9]),
        ];
        assert_eq!(who(board(1, &author, all.clone())), [5]);
        let all = all[..4].to_vec();
        assert_eq!(who(board(1, &author, all)), [0; 0]);
    }

    #[test]
    fn newcomers_are_audited_by_others_where_there_are_any() {
        let newcomer = person(1, 0);
        let others = vec![candidate(2, 0, 10), candidate(3, 0, 10)];
        assert_eq!(
            who(board(1, &newcomer, others.clone())).len(),
            1,
            "nobody else"
        );
        let mut named = board(1, &newcomer, others.clone());
        named.named = true;
        assert_eq!(who(named), [0; 0]);
        let mut asleep = board(1, &newcomer, others.clone());
        asleep.vouched_for = 1;
        assert_eq!(who(asleep), [0; 0], "one past probation was there today");
        let with = |proven: i64| {
            let proven = (0..proven).map(|user| candidate(10 + user, PROBATION, 0));
            proven.chain(others.clone()).collect::<Vec<_>>()
        };
        assert_eq!(who(board(1, &newcomer, with(1))), [10]);
        // Somebody has to look at the first who is past it.
        let first = person(10, PROBATION);
        let few = board(1, &first, with(1));
        assert!([2, 3].contains(&who(few)[0]));
        assert!(who(board(1, &first, with(3)))[0] > 10);
    }

    /// Somebody who has passed audits by the word of newcomers only.
    fn self_made(user: i64) -> Candidate {
        let mut one = candidate(user, 100, 1_000_000);
        one.person.record.vouched = 0;
        one
    }

    #[test]
    fn where_there_is_an_auditor_its_word_counts() {
        let newcomer = person(1, 0);
        for named in [true, false] {
            let all = vec![self_made(2), candidate(3, PROBATION, 0)];
            let mut board = board(1, &newcomer, all);
            board.named = named;
            assert_eq!(who(board), [3], "{named}");
        }
    }

    #[test]
    fn those_who_vouched_for_each_other_leave_audits_to_everybody() {
        let mut all: Vec<_> = (2..5).map(self_made).collect();
        all.push(candidate(5, 0, 0));
        for author in [person(1, 0), all[0].person.clone()] {
            let board = board(1, &author, all.clone());
            assert!(board.may_make(&all[3], &board.audits[0]));
        }
    }
}
