//! Who tokens belong to, remembered for a moment: a busy worker's token is looked up once in that
//! time and not with every request.
//!
//! What this process changes is forgotten at once. A token that another process revokes (another
//! replica, the command line) is good for [`FRESH`] at most, and only for what workers do all the
//! time: for everything else the ledger is asked.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::db::types::Principal;
use crate::tokens::TokenHash;

/// How long an answer is good.
const FRESH: Duration = Duration::from_secs(2);
/// Answers that are remembered at most.
const MOST: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Principals(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    entries: HashMap<TokenHash, (Instant, Principal)>,
    /// How often everything was forgotten.
    generation: u64,
}

/// What was true when a question was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Principals {
    /// Who a token belongs to, if that is known.
    pub(crate) fn get(&self, token: &TokenHash) -> Option<Principal> {
        let cache = self.0.lock();
        let (since, principal) = cache.entries.get(token)?;
        (since.elapsed() < FRESH).then(|| principal.clone())
    }

    /// Forgets who one token belongs to, because the ledger is asked at this moment.
    pub(crate) fn invalidate_one(&self, token: &TokenHash) -> Generation {
        let mut cache = self.0.lock();
        cache.entries.remove(token);
        Generation(cache.generation)
    }

    /// Remembers what the ledger answered, unless something was changed since it was asked.
    pub(crate) fn store(&self, token: &TokenHash, principal: &Principal, asked: Generation) {
        let mut cache = self.0.lock();
        if cache.generation != asked.0 {
            return;
        }
        if cache.entries.len() >= MOST {
            cache.entries.clear();
        }
        cache
            .entries
            .insert(*token, (Instant::now(), principal.clone()));
    }

    /// Forgets everything, because something was changed.
    pub(crate) fn invalidate(&self) {
        let mut cache = self.0.lock();
        cache.entries.clear();
        cache.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::UserId;

    use super::*;
    use crate::db::types::{Restrictions, Standing};

    #[test]
    fn an_answer_from_before_a_change_is_not_kept() {
        let (principals, token) = (Principals::default(), TokenHash([7; 32]));
        let principal = Principal {
            user: UserId(1),
            name: "alice".to_owned(),
            token: 1,
            scopes: Vec::new(),
            used_at: None,
            standing: Standing::Good,
            restrictions: Restrictions::default(),
        };
        let asked = principals.invalidate_one(&token);
        principals.invalidate();
        principals.store(&token, &principal, asked);
        assert!(principals.get(&token).is_none(), "the answer was old");
        let asked = principals.invalidate_one(&token);
        principals.store(&token, &principal, asked);
        assert!(principals.get(&token).is_some());
        principals.invalidate();
        assert!(principals.get(&token).is_none());
    }
}
