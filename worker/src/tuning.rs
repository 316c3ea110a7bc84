//! What was measured on this machine and is kept for the next start: the best number of parallel games, and the fastest
//! precision.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::files::write_whole;
use rookery_engine::Precision;
use serde::{Deserialize, Serialize};

use crate::beside::Beside;

/// What suited each way of computing best when it was measured last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    entries: Vec<Entry>,
    #[serde(default)]
    precisions: Vec<MeasuredPrecision>,
    #[serde(default)]
    pairs: Vec<MeasuredPair>,
    #[serde(default)]
    speeds: Vec<MeasuredSpeed>,
}

/// What `bench` measured, in evaluations a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSpeed {
    /// The devices with their drivers.
    pub hardware: String,
    /// The numbers in which they compute.
    pub precision: String,
    /// The network, as `--network` named it.
    pub network: String,
    /// By the batch size that is fastest.
    pub bare: u64,
    /// In self-play.
    pub selfplay: u64,
}

/// What a choice of numbers depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrecisionKey {
    /// The processor's model.
    pub processor: String,
    /// Its cores that this program may use.
    #[serde(default)]
    pub cores: usize,
    /// The program's version.
    pub version: String,
    /// The devices to choose from, joined by `+`.
    pub device: String,
    /// The shape of the network that was timed.
    pub network: String,
    /// Share of the time for which GPUs may compute, in per cent.
    #[serde(default)]
    pub gpu_per_cent: u32,
}

/// The device and the numbers that were fastest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MeasuredPrecision {
    #[serde(flatten)]
    key: PrecisionKey,
    precision: String,
    /// Without it, the only one of the key.
    #[serde(default)]
    chosen: Option<String>,
}

/// Whether a GPU and the processor compute side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredPair {
    /// What it depends on.
    #[serde(flatten)]
    pub key: PrecisionKey,
    /// The GPU.
    pub gpu: String,
    /// The numbers in which it computes.
    pub gpu_precision: String,
    /// The processor's threads; none if one of the two computes alone.
    pub beside: Option<Beside>,
}

/// One way of computing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    device: String,
    precision: String,
    threads: NonZeroUsize,
    /// Games of each thread.
    games: NonZeroUsize,
}

/// Most games of a thread that are believed, far more than `bench` ever tries.
const MOST_GAMES: usize = 65_536;

impl Tuning {
    /// Where it is kept.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("tuning.json")
    }

    /// What is kept in a folder. A file that is damaged is not used: the machine can be measured again.
    pub fn load(data_dir: &Path) -> Self {
        let path = Self::path(data_dir);
        let Ok(text) = std::fs::read(&path) else {
            return Self::default();
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(
                "{} is damaged, so that this machine is measured anew: {error}",
                path.display()
            );
            Self::default()
        })
    }

    /// Keeps it in a folder, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn save(&self, data_dir: &Path) -> anyhow::Result<()> {
        let path = Self::path(data_dir);
        std::fs::create_dir_all(data_dir)
            .and_then(|()| write_whole(&path, &serde_json::to_vec_pretty(self)?))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The device and the numbers that were chosen by measurement, if they ever were.
    pub fn choice(&self, key: &PrecisionKey) -> Option<(String, Precision)> {
        let found = self.precisions.iter().find(|found| found.key == *key)?;
        let precision: Precision = found.precision.parse().ok()?;
        let device = found.chosen.as_ref().unwrap_or(&key.device).clone();
        (precision != Precision::Auto).then_some((device, precision))
    }

    /// Notes what a measurement chose. What another program's version has measured is forgotten.
    pub fn note_choice(&mut self, key: PrecisionKey, device: &str, precision: Precision) {
        self.precisions
            .retain(|old| old.key.version == key.version && old.key != key);
        self.precisions.push(MeasuredPrecision {
            key,
            precision: precision.name().to_owned(),
            chosen: Some(device.to_owned()),
        });
    }

    /// What was measured of a pair, if it ever was.
    pub fn pair(&self, key: &PrecisionKey) -> Option<&MeasuredPair> {
        self.pairs.iter().find(|found| found.key == *key)
    }

    /// Notes what was measured of a pair. What another program's version has measured is forgotten.
    pub fn note_pair(&mut self, pair: MeasuredPair) {
        self.pairs
            .retain(|old| old.key.version == pair.key.version && old.key != pair.key);
        self.pairs.push(pair);
    }

    /// What was measured on some hardware.
    pub fn speeds<'a>(&'a self, hardware: &'a str) -> impl Iterator<Item = &'a MeasuredSpeed> {
        let speeds = self.speeds.iter();
        speeds.filter(move |speed| speed.hardware == hardware)
    }

    /// Notes what was measured, in the place of what was measured so before.
    pub fn note_speed(&mut self, speed: MeasuredSpeed) {
        self.speeds.retain(|old| {
            (&old.hardware, &old.precision, &old.network)
                != (&speed.hardware, &speed.precision, &speed.network)
        });
        self.speeds.push(speed);
    }

    /// The games of a thread that suited best, if that was ever measured.
    pub fn games(
        &self,
        device: &str,
        precision: &str,
        threads: NonZeroUsize,
    ) -> Option<NonZeroUsize> {
        let same = |entry: &&Entry| entry.is(device, precision, threads);
        let games = self.entries.iter().find(same).map(|entry| entry.games);
        games.filter(|games| games.get() <= MOST_GAMES)
    }

    /// Notes the games of a thread that suited best.
    pub fn note(
        &mut self,
        device: &str,
        precision: &str,
        threads: NonZeroUsize,
        games: NonZeroUsize,
    ) {
        self.entries
            .retain(|entry| !entry.is(device, precision, threads));
        self.entries.push(Entry {
            device: device.to_owned(),
            precision: precision.to_owned(),
            threads,
            games,
        });
    }
}

impl Entry {
    fn is(&self, device: &str, precision: &str, threads: NonZeroUsize) -> bool {
        self.device == device && self.precision == precision && self.threads == threads
    }
}

/// Share of the highest speed that is good enough: beyond it, larger batches only make games slower.
const GOOD_ENOUGH: f64 = 0.97;

/// The smallest batch that is nearly as fast as the fastest, of batch sizes with their speeds.
pub fn best_batch(measured: impl Iterator<Item = (usize, f64)> + Clone) -> Option<usize> {
    let highest = measured.clone().map(|(_, speed)| speed).fold(0.0, f64::max);
    let enough = measured.filter(|(_, speed)| *speed >= GOOD_ENOUGH * highest);
    enough.map(|(batch, _)| batch).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    #[test]
    fn what_was_measured_last_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let mut tuning = Tuning::load(&folder);
        tuning.note("cpu", "bf16", number(2), number(64));
        tuning.note("cpu", "f32", number(2), number(32));
        tuning.note("cpu", "bf16", number(2), number(128));
        tuning.save(&folder).unwrap();
        let loaded = Tuning::load(&folder);
        assert_eq!(loaded, tuning);
        // The file is replaced, and never half written.
        let before = folder.join("before.json");
        std::fs::hard_link(Tuning::path(&folder), &before).unwrap();
        Tuning::default().save(&folder).unwrap();
        assert_eq!(Tuning::load(&folder), Tuning::default());
        let before = std::fs::read(before).unwrap();
        assert_eq!(serde_json::from_slice::<Tuning>(&before).unwrap(), tuning);
        assert_eq!(loaded.games("cpu", "bf16", number(2)), Some(number(128)));
        assert_eq!(loaded.games("cpu", "f32", number(2)), Some(number(32)));
        assert_eq!(loaded.games("cpu", "f32", number(4)), None);
        tuning.note("cpu", "f32", number(4), number(usize::MAX));
        assert_eq!(tuning.games("cpu", "f32", number(4)), None);
        std::fs::write(Tuning::path(&folder), "{").unwrap();
        assert_eq!(Tuning::load(&folder), Tuning::default());
    }

    #[test]
    fn numbers_are_remembered_for_the_machine_and_program_that_measured_them() {
        let key = |processor: &str, version: &str| PrecisionKey {
            processor: processor.to_owned(),
            cores: 8,
            version: version.to_owned(),
            device: "cpu".to_owned(),
            network: "2x64".to_owned(),
            gpu_per_cent: 100,
        };
        let mut tuning = Tuning::default();
        tuning.note_choice(key("a", "1"), "cpu", Precision::F32);
        tuning.note_choice(key("b", "1"), "cpu", Precision::Bf16);
        tuning.note_choice(key("a", "1"), "cpu", Precision::Bf16);
        let text = serde_json::to_string(&tuning).unwrap();
        let mut tuning: Tuning = serde_json::from_str(&text).unwrap();
        assert_eq!(
            tuning.choice(&key("a", "1")),
            Some(("cpu".to_owned(), Precision::Bf16))
        );
        assert_eq!(tuning.choice(&key("c", "1")), None);
        assert_eq!(tuning.choice(&key("a", "2")), None);
        let fewer_cores = PrecisionKey {
            cores: 2,
            ..key("a", "1")
        };
        assert_eq!(tuning.choice(&fewer_cores), None);
        tuning.note_choice(key("a", "2"), "cpu", Precision::F32);
        assert_eq!(tuning.choice(&key("b", "1")), None, "an older program's");
        // What an older program has kept names no device beside the key's.
        let old = text.replace(",\"chosen\":\"cpu\"", "");
        assert_ne!(old, text);
        let old: Tuning = serde_json::from_str(&old).unwrap();
        assert_eq!(
            old.choice(&key("a", "1")),
            Some(("cpu".to_owned(), Precision::Bf16))
        );
        assert_eq!(
            serde_json::from_str::<Tuning>("{\"entries\": []}").unwrap(),
            Tuning::default()
        );
    }

    #[test]
    fn the_last_speed_of_a_network_is_kept_for_each_hardware_and_precision() {
        let speed = |hardware: &str, precision: &str, bare| MeasuredSpeed {
            hardware: hardware.to_owned(),
            precision: precision.to_owned(),
            network: "6x64".to_owned(),
            bare,
            selfplay: 7,
        };
        let mut tuning = Tuning::default();
        for (precision, bare) in [("f32", 1), ("f16", 2), ("f32", 3)] {
            tuning.note_speed(speed("Card", precision, bare));
        }
        tuning.note_speed(speed("cpu", "f32", 4));
        let found: Vec<_> = tuning.speeds("Card").cloned().collect();
        assert_eq!(found, [speed("Card", "f16", 2), speed("Card", "f32", 3)]);
    }

    #[test]
    fn the_smallest_batch_that_is_nearly_the_fastest_is_best() {
        let measured = [
            (1, 10.0),
            (64, 96.0),
            (128, 98.0),
            (256, 100.0),
            (512, 90.0),
        ];
        assert_eq!(best_batch(measured.into_iter()), Some(128));
        assert_eq!(best_batch([].into_iter()), None);
    }
}
