//! Sequential halving at a Gumbel root (Danihelka et al., ICLR 2022): how many visits the considered moves get
//! depends on their number and on the budget alone.

/// mctx's `get_sequence_of_considered_visits`: for each visit of the root, how many visits a move must have
/// to be visited next.
pub fn fill_schedule(schedule: &mut Vec<u32>, considered: usize, visits: usize) {
    schedule.clear();
    if considered <= 1 {
        schedule.extend(0..visits as u32);
        return;
    }
    let rounds = considered.next_power_of_two().ilog2() as usize;
    let (mut left, mut done) = (considered, 0);
    while schedule.len() < visits {
        for _ in 0..(visits / (rounds * left)).max(1) {
            schedule.extend(std::iter::repeat_n(done, left));
            done += 1;
        }
        left = (left / 2).max(2);
    }
    schedule.truncate(visits);
}

/// The visits of the visited moves, for a search with this number of visits, most first.
pub fn visit_counts(considered: usize, visits: usize) -> Vec<u32> {
    let mut schedule = Vec::new();
    fill_schedule(&mut schedule, considered, visits);
    let mut counts = vec![0; considered.max(1)];
    for wanted in schedule {
        // Which of the moves with this number of visits it is makes no difference here.
        if let Some(count) = counts.iter_mut().find(|count| **count == wanted) {
            *count += 1;
        }
    }
    counts.retain(|count| *count > 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// [`visit_counts`] of one budget, each computed once.
#[derive(Debug)]
pub struct VisitCounts {
    considered: usize,
    visits: usize,
    /// By the number of moves.
    known: Vec<Option<Vec<u32>>>,
}

impl VisitCounts {
    /// For roots that consider at most this number of moves, with this number of visits.
    pub const fn new(considered: u32, visits: u32) -> Self {
        Self {
            considered: considered as usize,
            visits: visits as usize,
            known: Vec::new(),
        }
    }

    /// The visits of the visited moves, for this number of legal moves, most first.
    pub fn of(&mut self, moves: usize) -> &[u32] {
        let considered = moves.min(self.considered);
        if self.known.len() <= considered {
            self.known.resize(considered + 1, None);
        }
        let visits = self.visits;
        self.known[considered].get_or_insert_with(|| visit_counts(considered, visits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_gives_each_round_its_visits() {
        // 16 once, 8 thrice, 4 six times, 2 twelve times and what is left.
        let mut expected = vec![1; 8];
        expected.splice(0..0, [4; 4]);
        expected.splice(0..0, [10; 2]);
        expected.splice(0..0, [28; 2]);
        assert_eq!(visit_counts(16, 100), expected);
        assert_eq!(visit_counts(1, 7), [7]);
        assert_eq!(visit_counts(2, 7), [4, 3]);
        assert_eq!(visit_counts(20, 5), [1; 5]);
    }

    #[test]
    fn all_visits_are_spent_whatever_is_considered() {
        for considered in 1..=40 {
            for visits in [2, 3, 16, 50, 257] {
                let counts = visit_counts(considered, visits);
                assert_eq!(counts.iter().sum::<u32>() as usize, visits);
                assert!(counts.len() <= considered && counts.is_sorted_by(|a, b| a >= b));
            }
        }
        let mut known = VisitCounts::new(16, 100);
        assert_eq!(known.of(30), visit_counts(16, 100));
        assert_eq!(known.of(3), visit_counts(3, 100));
    }
}
