//! A stored value beside the one that its facts give.

use std::fmt::Debug;

use crate::db::model::Discrepancy;

pub(super) fn compare<T: PartialEq + Debug>(
    found: &mut Vec<Discrepancy>,
    what: impl Into<String>,
    stored: &T,
    recomputed: &T,
) {
    if stored != recomputed {
        found.push(Discrepancy {
            what: what.into(),
            stored: format!("{stored:?}"),
            recomputed: format!("{recomputed:?}"),
        });
    }
}

/// Names the first entry that differs.
pub(super) fn compare_lists<T: PartialEq + Debug>(
    found: &mut Vec<Discrepancy>,
    what: &str,
    stored: &[T],
    facts: &[T],
) {
    let same = stored.iter().zip(facts).take_while(|(a, b)| a == b).count();
    compare(found, what, &stored.get(same), &facts.get(same));
}
