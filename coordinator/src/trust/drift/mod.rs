//! Contributors whose games look unlike everybody else's with the same network.
//!
//! ```text
//! chunks in sums ─> blocks of 32 games or more ─┬─ own: one mean ──────────────┐
//!                                               └─ others': median, deviation ─┴─> standard errors
//! ```
//!
//! Drift never convicts: it brings recent chunks before the auditors. Each worker is compared on
//! each backend with all other contributors, and where they are enough with those who use the same
//! backend; it stands out if it does so from both, so that neither a backend that differs from the
//! others nor one that liars have taken over makes honest workers suspicious. Median and median
//! absolute deviation are what a few liars cannot move. [`features`] is what is compared.
//!
//! Names of workers are the contributor's to choose, and so is what it says of its backend: whoever
//! does not stand out worker by worker is compared once more with all workers together, among
//! those whose numbers have as many bits.

pub mod features;

use std::collections::{BTreeMap, BTreeSet};

use rookery_common::audit::Tolerance;
use rookery_common::ids::UserId;
use rookery_common::protocol::jobs::Backend;

pub use features::{FEATURES, Feature, GameSums};

/// A self-play chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Who played it.
    pub user: UserId,
    /// On which of the contributor's workers.
    pub worker: String,
    /// Where it was computed.
    pub backend: String,
    pub sums: GameSums,
}

/// A worker whose games on one backend lie far from the others'.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspicion {
    pub user: UserId,
    /// The worker, or `all workers` together.
    pub worker: String,
    /// On which backend; of all workers together, how many bits their numbers have.
    pub backend: String,
    pub feature: &'static str,
    /// Standard errors from the others' median.
    pub z: f64,
}

/// Standard errors that are suspicious: far more than chance gives, also where the deviation of
/// others is known from two dozen blocks only.
const LIMIT: f64 = 8.0;
/// Fewest games of a block: chunks may hold one game, whose share of draws is 0 or 1.
const BLOCK: u32 = 32;
/// Fewest blocks of one's own that are compared.
const OWN: usize = 3;
/// Fewest blocks of others that one is compared with.
const OTHERS: usize = 24;
/// Fewest contributors whom those are of.
const PEOPLE: usize = 3;
/// Most blocks of each of them, the newest, so that none outvotes the rest.
const EACH: usize = 16;
/// Of a normal distribution, the standard deviation over the median absolute deviation.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Of a normal distribution, the variance of a sample's median over that of its mean.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;

/// What stands for a worker where all of a contributor's are meant.
const ALL_WORKERS: &str = "all workers";

/// Whose games on which backend.
type Group<'a> = (UserId, &'a str, &'a str);

/// The workers that stand out, for each feature in which they do, then the contributors who only
/// do so with all their workers together. Samples come in the ledger's order.
pub fn suspects(samples: &[Sample]) -> Vec<Suspicion> {
    let mut found = among(&blocks(samples, |sample| {
        (sample.user, &sample.worker, &sample.backend)
    }));
    let named: BTreeSet<UserId> = found.iter().map(|one| one.user).collect();
    let together = among(&blocks(samples, |sample| {
        (sample.user, ALL_WORKERS, bits(&sample.backend))
    }));
    found.extend(
        together
            .into_iter()
            .filter(|one| !named.contains(&one.user)),
    );
    found
}

/// How many bits the numbers of a backend have: those of one kind agree as closely as audits ask.
fn bits(backend: &str) -> &'static str {
    let exact = Tolerance::between(Backend::CpuF32, Backend::CpuF32);
    match Backend::from_name(backend) {
        Some(backend) if Tolerance::between(backend, backend) == exact => "32 bits",
        _ => "16 bits",
    }
}

/// The groups that stand out from others.
fn among(groups: &Groups<'_>) -> Vec<Suspicion> {
    let mut found = Vec::new();
    for ((user, worker, backend), own) in groups {
        if own.len() < OWN {
            continue;
        }
        let sums = own.iter().fold(GameSums::default(), |mut sum, block| {
            sum += *block;
            sum
        });
        let everybody = peers(groups, *user, None);
        let alike = peers(groups, *user, Some(backend));
        for feature in &FEATURES {
            let from_all = standing(feature, &sums, &everybody);
            let from_alike = standing(feature, &sums, &alike).or(from_all);
            let nearer = from_all.zip(from_alike).map(nearer_zero);
            if let Some(z) = nearer
                && z.abs() > LIMIT
            {
                found.push(Suspicion {
                    user: *user,
                    worker: (*worker).to_owned(),
                    backend: (*backend).to_owned(),
                    feature: feature.name,
                    z,
                });
            }
        }
    }
    found
}

/// The one of two numbers that is nearer to zero.
const fn nearer_zero((a, b): (f64, f64)) -> f64 {
    if a.abs() < b.abs() { a } else { b }
}

/// Each group's blocks.
type Groups<'a> = BTreeMap<Group<'a>, Vec<GameSums>>;

/// Each group's chunks, put together to blocks of enough games; what is left over is not a block.
fn blocks<'a>(samples: &'a [Sample], group: impl Fn(&'a Sample) -> Group<'a>) -> Groups<'a> {
    let mut groups: BTreeMap<Group<'_>, (GameSums, Vec<GameSums>)> = BTreeMap::new();
    for sample in samples {
        let (open, whole) = groups.entry(group(sample)).or_default();
        *open += sample.sums;
        if open.games >= BLOCK {
            whole.push(std::mem::take(open));
        }
    }
    let whole = groups.into_iter().map(|(group, (_, whole))| (group, whole));
    whole.collect()
}

/// The blocks of others, on this backend if one is given; none if there are too few.
fn peers<'a>(groups: &'a Groups<'_>, user: UserId, backend: Option<&str>) -> Vec<&'a GameSums> {
    let mut people: BTreeMap<UserId, Vec<&GameSums>> = BTreeMap::new();
    for ((other, _, on), blocks) in groups {
        let alike = backend.is_none_or(|backend| backend == *on);
        if *other != user && alike && !blocks.is_empty() {
            let newest = blocks.iter().rev().take(EACH);
            people.entry(*other).or_default().extend(newest);
        }
    }
    if people.len() < PEOPLE {
        return Vec::new();
    }
    let each = people.into_values();
    each.flat_map(|blocks| blocks.into_iter().take(EACH))
        .collect()
}

/// How many standard errors one's own mean lies from the others' median; none if too little is
/// known. A mean's variance falls with the games that it is of.
fn standing(feature: &Feature, own: &GameSums, others: &[&GameSums]) -> Option<f64> {
    let mean = (feature.of)(own)?;
    let known: Vec<(f64, f64)> = others
        .iter()
        .filter_map(|sums| Some(((feature.of)(sums)?, f64::from(sums.games))))
        .collect();
    if known.len() < OTHERS {
        return None;
    }
    let middle = median(known.iter().map(|(value, _)| *value))?;
    let of_one_game = known
        .iter()
        .map(|(value, games)| (value - middle).abs() * games.sqrt());
    let sigma = MAD_TO_SIGMA * median(of_one_game)?;
    let others_games: f64 = known.iter().map(|(_, games)| games).sum();
    let variance = sigma.powi(2) / f64::from(own.games)
        + MEDIAN_VARIANCE * sigma.powi(2) / others_games
        + feature.least.powi(2);
    Some((mean - middle) / variance.sqrt())
}

/// The middle value; of an even number of values the upper of the two.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests;
