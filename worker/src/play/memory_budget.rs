//! How many games a thread plays at once: as many as suit the machine, but no more than have room
//! in memory for their searches.

use std::num::NonZeroUsize;

use rookery_common::protocol::audits::AuditedRules;
use rookery_common::protocol::jobs::Work;

use crate::machine::{Machine, Place, game_bytes};

/// What is left of a thread's games and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryBudget {
    games: usize,
    /// Of those that go first, and take no game from the others: these wait.
    first_games: usize,
    bytes: u64,
}

impl MemoryBudget {
    /// The budget of an idle thread that plays `games` at once.
    pub(super) fn of(machine: &Machine, games: NonZeroUsize) -> Self {
        Self {
            games: games.get(),
            first_games: games.get(),
            bytes: machine.thread_bytes(),
        }
    }

    /// The number of games that fit, at this number of bytes each.
    pub(super) fn games(self, go_first: bool, bytes: u64) -> usize {
        let fitting = usize::try_from(self.bytes / bytes.max(1));
        let games = if go_first {
            self.first_games
        } else {
            self.games
        };
        games.min(fitting.unwrap_or(usize::MAX))
    }

    /// Reserves room for this number of games.
    pub(super) fn take(&mut self, games: usize, go_first: bool, bytes: u64) {
        let left = if go_first {
            &mut self.first_games
        } else {
            &mut self.games
        };
        *left = left.saturating_sub(games);
        self.bytes = self
            .bytes
            .saturating_sub(bytes.saturating_mul(games as u64));
    }
}

/// The most memory that a game of this work takes, in bytes.
pub(super) fn bytes_of_game(work: &Work) -> u64 {
    let visits = match work {
        Work::SelfPlay { params, .. }
        | Work::Audit {
            rules: AuditedRules::SelfPlay { params, .. },
            ..
        } => params.search.visits.max(params.fast_visits),
        Work::Puzzles { params, .. } => params.search.visits,
        Work::Match { params, .. } => params.search.visits,
        Work::Audit { rules, .. } => rules.search().visits,
    };
    // Each network has a tree of its own.
    game_bytes(work.networks().len(), visits)
}

/// Games of this work that the machine plays at once, all threads together.
pub fn games_at_once(machine: &Machine, work: &Work) -> usize {
    let bytes = bytes_of_game(work);
    let of_thread = |place: Place| {
        let room = MemoryBudget::of(machine, place.games);
        room.games(false, bytes).max(1)
    };
    machine
        .places()
        .map(of_thread)
        .fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Job;

    use super::*;

    fn with_visits(visits: u32) -> Job {
        let mut job = crate::spool::testing::job(1);
        if let Work::SelfPlay { params, .. } = &mut job.work {
            params.search.visits = visits;
        }
        job
    }

    #[test]
    fn deep_searches_leave_room_for_fewer_games() {
        let mut room = MemoryBudget {
            games: 64,
            first_games: 64,
            bytes: 1 << 30,
        };
        let few = bytes_of_game(&with_visits(800).work);
        let many = bytes_of_game(&with_visits(100_000).work);
        assert_eq!(room.games(false, few), 64);
        assert_eq!(room.games(false, many), 8);
        assert_eq!(room.games(false, u64::MAX), 0);
        room.take(5, false, many);
        assert_eq!(room.games(false, many), 3);
        room.take(60, false, few);
        assert_eq!(room.games(false, 0), 0);
        // Games that go first need memory, but no place of another game.
        assert_eq!(room.games(true, 0), 64);
        assert!(room.games(true, many) <= 3);
    }
}
