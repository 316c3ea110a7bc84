//! Contributors whose games look unlike everybody else's with the same network.
//!
//! Drift convicts nobody: it brings recent chunks before the auditors. What is compared are a
//! chunk's mean game length and its shares of results, each contributor and backend class with the
//! chunks of all others, by median and median absolute deviation, which a few liars cannot move.

use rookery_common::ids::UserId;

/// A self-play chunk in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Who played it.
    pub user: UserId,
    /// Where it was computed.
    pub backend: String,
    /// What is compared, in the order of [`FEATURES`].
    pub features: [f64; 3],
}

/// What is compared.
pub const FEATURES: [&str; 3] = ["game length", "share of draws", "share of White's wins"];

/// A contributor whose chunks on one backend lie far from the others'.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspicion {
    /// Who.
    pub user: UserId,
    /// On which backend.
    pub backend: String,
    /// In what.
    pub feature: &'static str,
    /// Standard errors from the others' median.
    pub z: f64,
}

/// Standard errors that are suspicious. With a thousand contributors and three features, chance
/// alone would pass it once in 100,000 looks if means were normally distributed.
const LIMIT: f64 = 6.0;
/// Fewest chunks of one's own, and of others, that are compared.
const OWN: usize = 3;
/// See [`OWN`].
const OTHERS: usize = 20;
/// Chunks of one's own that count at most: networks and machines differ a little in truth, and no
/// number of chunks should make that suspicious.
const COUNTED: usize = 16;
/// Of a normal distribution, the standard deviation over the median absolute deviation.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Smallest standard deviations that are believed, for each feature: plies, shares.
const LEAST: [f64; 3] = [1.0, 0.02, 0.02];

/// The contributors who stand out, for each feature in which they do.
pub fn suspects(samples: &[Sample]) -> Vec<Suspicion> {
    let mut groups: Vec<(UserId, &str)> = samples
        .iter()
        .map(|sample| (sample.user, sample.backend.as_str()))
        .collect();
    groups.sort_unstable_by_key(|(user, backend)| (user.0, *backend));
    groups.dedup();
    let mut found = Vec::new();
    for (user, backend) in groups {
        for (place, feature) in FEATURES.into_iter().enumerate() {
            let own = samples
                .iter()
                .filter(|sample| sample.user == user && sample.backend == backend);
            let others = samples.iter().filter(|sample| sample.user != user);
            let own: Vec<f64> = own.map(|sample| sample.features[place]).collect();
            let others: Vec<f64> = others.map(|sample| sample.features[place]).collect();
            if let Some(z) = standing(&own, others, LEAST[place])
                && z.abs() > LIMIT
            {
                found.push(Suspicion {
                    user,
                    backend: backend.to_owned(),
                    feature,
                    z,
                });
            }
        }
    }
    found
}

/// How many standard errors the mean of `own` lies from the median of `others`; none if there are
/// too few.
fn standing(own: &[f64], mut others: Vec<f64>, least: f64) -> Option<f64> {
    if own.len() < OWN || others.len() < OTHERS {
        return None;
    }
    let middle = median(&mut others);
    let mut distances: Vec<f64> = others.iter().map(|x| (x - middle).abs()).collect();
    let sigma = (MAD_TO_SIGMA * median(&mut distances)).max(least);
    let mean = own.iter().sum::<f64>() / own.len() as f64;
    let counted = own.len().min(COUNTED) as f64;
    Some((mean - middle) / sigma * counted.sqrt())
}

/// The middle value; of an even number of values the upper of the two.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::Seed;

    use super::*;

    /// Chunks of 32 games whose means scatter as real ones do.
    fn samples(users: i64, chunks: u32) -> Vec<Sample> {
        let mut samples = Vec::new();
        for user in 0..users {
            for chunk in 0..chunks {
                let noise = |salt: u32| {
                    let draw = Seed(user.cast_unsigned()).of_game(chunk * 31 + salt).0;
                    (0..12)
                        .map(|part| f64::from(((draw >> (5 * part)) & 31) as u32) / 31.0 - 0.5)
                        .sum::<f64>()
                };
                samples.push(Sample {
                    user: UserId(user),
                    backend: "cpu-f32".to_owned(),
                    features: [
                        90.0 + 6.0 * noise(1),
                        0.4 + 0.08 * noise(2),
                        0.33 + 0.08 * noise(3),
                    ],
                });
            }
        }
        samples
    }

    #[test]
    fn honest_contributors_do_not_stand_out() {
        assert_eq!(suspects(&samples(100, 6)), []);
    }

    #[test]
    fn one_who_plays_other_games_does() {
        let mut samples = samples(20, 5);
        for sample in samples.iter_mut().filter(|sample| sample.user == UserId(7)) {
            sample.features[0] = 40.0;
        }
        let found = suspects(&samples);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].user, found[0].feature),
            (UserId(7), "game length")
        );
        assert!(found[0].z < -LIMIT);
    }

    #[test]
    fn liars_do_not_move_what_is_usual_and_few_chunks_say_nothing() {
        let mut samples = samples(20, 5);
        for sample in samples.iter_mut().filter(|sample| sample.user.0 >= 14) {
            sample.features[1] = 1.0;
        }
        let found = suspects(&samples);
        assert!(found.len() == 6 && found.iter().all(|one| one.user.0 >= 14));
        samples.retain(|sample| sample.user.0 >= 18);
        assert_eq!(suspects(&samples), []);
    }
}
