//! Which built-in program best plays when one of them is due.

use std::collections::BTreeSet;

use rookery_common::ids::NetworkNumber;

/// A program's part in a rating match that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) program: NetworkNumber,
    pub(super) is_lost: bool,
}

/// The program that has gone longest without a match. One that lost every game of its last match waits for the others, as
/// more of the same would say little; `meetings` are those of the last matches, the newest first.
pub(super) fn next_program(
    programs: &BTreeSet<NetworkNumber>,
    meetings: &[Meeting],
) -> Option<NetworkNumber> {
    let place = |program: NetworkNumber| {
        let last = meetings.iter().position(|one| one.program == program);
        let is_lost = last.is_some_and(|last| meetings[last].is_lost);
        // Of those that have not met anyone, the first.
        (!is_lost, last.unwrap_or(usize::MAX))
    };
    let longest = programs.iter().copied().rev();
    longest.max_by_key(|program| place(*program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(program: u32, is_lost: bool) -> Meeting {
        let program = NetworkNumber(program);
        Meeting { program, is_lost }
    }

    fn next(meetings: &[Meeting]) -> Option<u32> {
        let programs = BTreeSet::from([1, 2, 3].map(NetworkNumber));
        next_program(&programs, meetings).map(|program| program.0)
    }

    #[test]
    fn each_has_its_turn_and_those_that_lose_every_game_come_last() {
        assert_eq!(next_program(&BTreeSet::new(), &[]), None);
        assert_eq!(next(&[]), Some(1));
        assert_eq!(next(&[meeting(1, false)]), Some(2));
        let all = [3, 2, 1].map(|program| meeting(program, false));
        assert_eq!(next(&all), Some(1));
        let beaten = [meeting(2, false), meeting(1, true), meeting(3, false)];
        assert_eq!(next(&beaten), Some(3));
        // What was before the last match counts no more.
        let again = [
            meeting(2, false),
            meeting(3, false),
            meeting(1, false),
            meeting(1, true),
        ];
        assert_eq!(next(&again), Some(1));
        let all = [3, 1, 2].map(|program| meeting(program, true));
        assert_eq!(next(&all), Some(2));
    }
}
