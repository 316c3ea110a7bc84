//! Views of the replay buffer that stay as they are while workers sample them.

use std::ops::Range;
use std::sync::Arc;

use rookery_common::params::SourceWeights;

use super::game::StoredGame;
use super::record::Source;

/// The newest positions at one moment; cheap to clone, the same for ever.
#[derive(Debug, Clone)]
pub struct Window {
    /// Newest first.
    games: Arc<[StoredGame]>,
    /// For each game, how many positions lie in it and all newer ones.
    ends: Arc<[u64]>,
    size: u64,
}

impl Window {
    /// A window over games, newest first, cut at `size` positions.
    pub fn new(games: Vec<StoredGame>, size: u64) -> Self {
        let mut total = 0;
        let ends: Arc<[u64]> = games
            .iter()
            .map(|game| {
                total += u64::from(game.positions());
                total
            })
            .collect();
        Self {
            games: games.into(),
            ends,
            size: size.min(total),
        }
    }

    /// Positions that can be sampled.
    pub const fn len(&self) -> u64 {
        self.size
    }

    /// Whether there is no position.
    pub const fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Games with at least one position that can be sampled.
    pub fn games(&self) -> usize {
        self.ends
            .partition_point(|end| *end < self.size)
            .saturating_add(usize::from(self.size > 0))
            .min(self.games.len())
    }

    /// The ages of the positions of the `index`-th newest game, empty if there is no such game.
    pub fn ages_of(&self, index: usize) -> Range<u64> {
        let before = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let end = self.ends.get(index).map_or(0, |end| (*end).min(self.size));
        before.copied().unwrap_or(0)..end
    }

    /// The `age`-th newest position, 0 to `len() - 1`: its game and ply. Every position
    /// has one age, so uniform ages are uniform positions, however long the games are.
    pub fn position(&self, age: u64) -> Option<(&StoredGame, u32)> {
        if age >= self.size {
            return None;
        }
        let index = self.ends.partition_point(|end| *end <= age);
        let ply = self.ends.get(index)? - 1 - age;
        Some((self.games.get(index)?, u32::try_from(ply).ok()?))
    }

    /// The positions of this window that come from one source.
    fn only(&self, source: Source) -> Self {
        let chosen = (0..self.games()).filter(|index| self.games[*index].source() == source);
        let ages = chosen.clone().map(|index| self.ages_of(index));
        let size = ages.map(|ages| ages.end - ages.start).sum();
        let games = chosen.map(|index| self.games[index].clone());
        Self::new(games.collect(), size)
    }
}

/// What a batch is drawn from: windows, each with its share.
#[derive(Debug, Clone)]
pub struct Mixture {
    parts: Arc<[(Window, f64)]>,
}

impl Mixture {
    /// One window.
    pub fn of(window: Window) -> Self {
        Self::weighted([(window, 1.0)])
    }

    /// Windows by weight; those without positions or weight are left out.
    pub fn weighted(parts: impl IntoIterator<Item = (Window, f64)>) -> Self {
        let parts = parts.into_iter();
        Self {
            parts: parts
                .filter(|(window, weight)| !window.is_empty() && *weight > 0.0)
                .collect(),
        }
    }

    /// The run's games as its weights ask for, and of others' games this share of every batch. Where
    /// there are only games of kinds without weight, they serve as they are.
    pub fn of_run(
        window: Window,
        sources: Option<SourceWeights>,
        (others, share): (Window, f64),
    ) -> Self {
        let by_source = sources.map(|weights| {
            let parts = [
                (window.only(Source::SelfPlay), weights.selfplay),
                (window.only(Source::Puzzle), weights.puzzles),
            ];
            Self::weighted(parts)
        });
        let run = by_source.filter(|run| !run.is_empty());
        let run = run.unwrap_or_else(|| Self::of(window));
        if others.is_empty() {
            return run;
        }
        let sum: f64 = run.parts.iter().map(|(_, weight)| weight).sum();
        let scale =
            |(window, weight): &(Window, f64)| (window.clone(), weight / sum * (1.0 - share));
        Self::weighted(run.parts.iter().map(scale).chain([(others, share)]))
    }

    /// The windows with their weights.
    pub fn parts(&self) -> &[(Window, f64)] {
        &self.parts
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The position of an age in one of the windows.
    pub fn position(&self, pick: Pick) -> Option<(&StoredGame, u32)> {
        self.parts.get(pick.part)?.0.position(pick.age)
    }
}

/// A position of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pick {
    /// Which of its windows.
    pub part: usize,
    /// The position's age there.
    pub age: u64,
}
