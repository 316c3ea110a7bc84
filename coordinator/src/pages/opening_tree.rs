//! Which first moves networks play, over generations: a tree of lines with the share of each network's games.

use std::collections::BTreeMap;

use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::NetworkInfo;

use super::PagesState;
use super::error::PageError;
use crate::db::GameFilter;

/// Networks whose games are compared.
const GENERATIONS: usize = 4;
/// Self-play games of each, the newest.
const GAMES: u32 = 200;

/// Branches that are followed at each ply.
const BRANCHES: [usize; 4] = [4, 3, 2, 2];
/// A line that no network plays more often is left out, as a share of its games.
const LEAST: f64 = 0.08;
/// With fewer games, shares say nothing.
const LEAST_GAMES: usize = 8;

/// The first moves of a network's games.
pub(super) struct Generation {
    pub(super) network: NetworkNumber,
    pub(super) games: Vec<Vec<String>>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Branch {
    /// Its depth, from 1.
    pub(super) ply: usize,
    /// Its last move, with its number.
    pub(super) last: String,
    /// Its share of the games of each generation, 0 to 1.
    pub(super) shares: Vec<f64>,
}

/// The tree, line by line, each followed by those that go on from it.
pub(super) struct OpeningTree {
    /// Each network with its games.
    pub(super) generations: Vec<(NetworkNumber, usize)>,
    pub(super) branches: Vec<Branch>,
}

/// What networks of a run play in self-play that begins at the start position: of those that were best, in ascending
/// order, some from the first to the last.
pub(super) async fn of_run(
    state: &PagesState,
    run: &RunName,
    bests: &[&NetworkInfo],
) -> Result<Option<OpeningTree>, PageError> {
    let mut generations = Vec::new();
    for network in spread(bests.len()).map(|place| bests[place].number) {
        let filter = GameFilter {
            run: Some(run.clone()),
            network: Some(network),
            kind: Some(WorkKind::SelfPlay),
            limit: GAMES,
            ..GameFilter::default()
        };
        let games = state
            .list(|db| async move { db.games(filter).await })
            .await?;
        let games = state.digests.describe(state, games).await;
        let openings = games.iter().filter_map(|game| game.digest.opening.clone());
        generations.push(Generation {
            network,
            games: openings.collect(),
        });
    }
    Ok(OpeningTree::of(generations))
}

/// Places of so many, from the first to the last, as far from each other as they can be.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let wanted = GENERATIONS.min(count);
    (0..wanted).map(move |place| place * (count - 1) / (wanted - 1).max(1))
}

impl OpeningTree {
    /// The tree of these generations; none if too few games are known.
    pub(super) fn of(generations: Vec<Generation>) -> Option<Self> {
        let known = generations.into_iter();
        let known: Vec<_> = known.filter(|one| one.games.len() >= LEAST_GAMES).collect();
        let games: Vec<Vec<&[String]>> = known
            .iter()
            .map(|one| one.games.iter().map(Vec::as_slice).collect())
            .collect();
        let generations: Vec<_> = known
            .iter()
            .map(|one| (one.network, one.games.len()))
            .collect();
        let totals: Vec<usize> = generations.iter().map(|(_, games)| *games).collect();
        let mut branches = Vec::new();
        grow(&games, &totals, 1, &mut branches);
        (!branches.is_empty()).then_some(Self {
            generations,
            branches,
        })
    }
}

/// Adds the branches after the same first moves of these games.
fn grow(games: &[Vec<&[String]>], totals: &[usize], ply: usize, branches: &mut Vec<Branch>) {
    let Some(most) = BRANCHES.get(ply - 1) else {
        return;
    };
    let mut next: BTreeMap<&str, Vec<Vec<&[String]>>> = BTreeMap::new();
    for (place, games) in games.iter().enumerate() {
        for game in games {
            if let Some((first, rest)) = game.split_first() {
                let of_move = next
                    .entry(first)
                    .or_insert_with(|| vec![Vec::new(); totals.len()]);
                of_move[place].push(rest);
            }
        }
    }
    let shares = |games: &[Vec<&[String]>]| -> Vec<f64> {
        let each = games.iter().zip(totals);
        each.map(|(games, total)| games.len() as f64 / *total as f64)
            .collect()
    };
    let most_of = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    let mut lines: Vec<_> = next
        .into_iter()
        .map(|(last, games)| (last, shares(&games), games))
        .filter(|(_, shares, games)| {
            // What was played once is chance.
            most_of(shares) >= LEAST && games.iter().any(|games| games.len() > 1)
        })
        .collect();
    lines.sort_by(|a, b| most_of(&b.1).total_cmp(&most_of(&a.1)));
    lines.truncate(*most);
    for (last, shares, games) in lines {
        let dots = if ply.is_multiple_of(2) { "…" } else { "." };
        branches.push(Branch {
            ply,
            last: format!("{}{dots} {last}", ply.div_ceil(2)),
            shares,
        });
        grow(&games, totals, ply + 1, branches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(network: u32, lines: &[(&str, usize)]) -> Generation {
        let games = lines.iter().flat_map(|(line, times)| {
            let moves: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            std::iter::repeat_n(moves, *times)
        });
        Generation {
            network: NetworkNumber(network),
            games: games.collect(),
        }
    }

    #[test]
    fn lines_stand_below_what_they_go_on_from_with_the_share_of_each_network() {
        let tree = OpeningTree::of(vec![
            generation(0, &[("e4 e5", 5), ("d4 d5", 3), ("a3 a6", 1), ("a3 b6", 1)]),
            generation(3, &[("e4 c5", 2), ("d4 d5", 18)]),
            generation(4, &[("h4 h5", 3)]),
        ])
        .unwrap();
        let numbers = [(NetworkNumber(0), 10), (NetworkNumber(3), 20)];
        assert_eq!(tree.generations, numbers, "three games say nothing");
        let told: Vec<_> = tree
            .branches
            .iter()
            .map(|branch| (branch.ply, branch.last.as_str(), &branch.shares[..]))
            .collect();
        assert_eq!(
            told,
            [
                (1, "1. d4", &[0.3, 0.9][..]),
                (2, "1… d5", &[0.3, 0.9][..]),
                (1, "1. e4", &[0.5, 0.1][..]),
                (2, "1… e5", &[0.5, 0.0][..]),
                (2, "1… c5", &[0.0, 0.1][..]),
                (1, "1. a3", &[0.2, 0.0][..]),
            ]
        );
    }

    #[test]
    fn generations_reach_from_the_first_to_the_last() {
        let places = |count| spread(count).collect::<Vec<_>>();
        assert_eq!(places(0), [0; 0]);
        assert_eq!(places(1), [0]);
        assert_eq!(places(3), [0, 1, 2]);
        assert_eq!(places(31), [0, 10, 20, 30]);
    }

    #[test]
    fn without_games_there_is_no_tree() {
        assert!(OpeningTree::of(vec![generation(0, &[("e4", 7)])]).is_none());
        assert!(OpeningTree::of(Vec::new()).is_none());
    }
}
