//! What a GUI may set.

use std::path::PathBuf;
use std::time::Duration;

use rookery_common::params::{Fpu, KldStop, Noise, PuctParams, SearchParams, Temperature};
use rookery_engine::search::SearcherConfig;

use super::table::{Kind, SetError, UciOption};

/// All options with their values.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Memory for the tree and known evaluations, in MiB.
    pub hash: u32,
    /// Lines to show.
    pub multi_pv: u32,
    /// Whether the GUI may let the engine think on the opponent's time; it does so by `go ponder`.
    pub ponder: bool,
    /// Castling is written as king takes rook.
    pub chess960: bool,
    /// Show probabilities of win, draw and loss.
    pub show_wdl: bool,
    /// The network, its device, its numbers.
    pub network: NetworkChoice,
    /// Kept back from the clock for what is lost between GUI and engine, in milliseconds.
    pub move_overhead: u32,
    /// Most positions of one batch; 0 leaves it to the device.
    pub minibatch: u32,
    /// Walks of a batch that may meet a leaf under way.
    pub max_collisions: u32,
    /// Boards before a position that a remembered evaluation must have been made with, too.
    pub cache_history: u32,
    /// `c_init` of PUCT.
    pub cpuct: f32,
    /// `c_base` of PUCT.
    pub cpuct_base: f32,
    /// `reduction` or `absolute`.
    pub fpu_strategy: String,
    /// The reduction or the value.
    pub fpu_value: f32,
    /// Divides the policy logits of all positions.
    pub policy_temperature: f32,
    /// Divides the policy logits of the root, after the former.
    pub root_policy_temperature: f32,
    /// The share of noise in the root's priors.
    pub noise_epsilon: f32,
    /// The concentration of the noise.
    pub noise_alpha: f32,
    /// Whether a search on the clock ends once no other move can become best.
    pub smart_pruning: bool,
    /// A search ends when its visits change their distribution by less than this; 0 never.
    pub kld_gain: f32,
    /// Visits between two looks at that.
    pub kld_interval: u32,
    /// Temperature of the choice of moves at the start of a game; 0 plays the best.
    pub temperature: f32,
    /// Temperature after it has fallen.
    pub temperature_end: f32,
    /// Plies over which it falls.
    pub temperature_plies: u32,
    /// Folders of Syzygy tables, as the system writes lists of paths.
    pub syzygy_path: String,
    /// How often everything known was to be forgotten.
    pub cleared: u32,
}

/// A network and how it is computed; a change means loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkChoice {
    /// What a network argument can be: a file, a shape, `best`, a number or a SHA-256.
    pub network: String,
    /// The device's name.
    pub device: String,
    /// The numbers' name.
    pub precision: String,
    /// Processor threads that compute one batch, 1 to 256; of no matter to a GPU.
    pub threads: u32,
}

const FPU_STRATEGIES: &[&str] = &["reduction", "absolute"];
const PRECISIONS: &[&str] = &["auto", "f32", "bf16", "f16"];

impl Options {
    /// The defaults, with this network.
    pub fn new(network: NetworkChoice) -> Self {
        let params = SearchParams::for_strength();
        let config = SearcherConfig::default();
        let noise = Noise::default();
        let fpu_value = match params.puct.fpu {
            Fpu::Absolute { value } | Fpu::Reduction { value } => value,
        };
        Self {
            hash: 512,
            multi_pv: 1,
            ponder: false,
            chess960: false,
            show_wdl: false,
            network,
            move_overhead: 200,
            minibatch: 0,
            max_collisions: config.max_collisions,
            cache_history: 0,
            cpuct: params.puct.c_init,
            cpuct_base: params.puct.c_base,
            fpu_strategy: FPU_STRATEGIES[0].to_owned(),
            fpu_value,
            policy_temperature: params.policy_temperature,
            root_policy_temperature: params.root_policy_temperature,
            noise_epsilon: 0.0,
            noise_alpha: noise.alpha,
            smart_pruning: true,
            kld_gain: 0.0,
            kld_interval: KldStop::default().interval,
            temperature: 0.0,
            temperature_end: 0.0,
            temperature_plies: 60,
            syzygy_path: String::new(),
            cleared: 0,
        }
    }

    /// The table from which options are listed and set.
    fn rows(&mut self) -> Vec<UciOption<'_>> {
        let NetworkChoice {
            network,
            device,
            precision,
            threads,
        } = &mut self.network;
        vec![
            UciOption("Network", Kind::Text(network)),
            UciOption("Device", Kind::Text(device)),
            UciOption("Precision", Kind::Combo(precision, PRECISIONS)),
            UciOption("Threads", Kind::Spin(threads, 1..=256)),
            UciOption("Hash", Kind::Spin(&mut self.hash, 16..=1_048_576)),
            UciOption("Clear Hash", Kind::Button(&mut self.cleared)),
            UciOption("MultiPV", Kind::Spin(&mut self.multi_pv, 1..=218)),
            UciOption("Ponder", Kind::Check(&mut self.ponder)),
            UciOption("SyzygyPath", Kind::Text(&mut self.syzygy_path)),
            UciOption("UCI_Chess960", Kind::Check(&mut self.chess960)),
            UciOption("UCI_ShowWDL", Kind::Check(&mut self.show_wdl)),
            UciOption(
                "Move Overhead",
                Kind::Spin(&mut self.move_overhead, 0..=60_000),
            ),
            UciOption("MinibatchSize", Kind::Spin(&mut self.minibatch, 0..=1024)),
            UciOption(
                "MaxCollisions",
                Kind::Spin(&mut self.max_collisions, 0..=1024),
            ),
            UciOption(
                "CacheHistoryLength",
                Kind::Spin(&mut self.cache_history, 0..=7),
            ),
            UciOption("CPuct", Kind::Real(&mut self.cpuct, 0.0..=100.0)),
            UciOption("CPuctBase", Kind::Real(&mut self.cpuct_base, 1.0..=1e9)),
            UciOption(
                "FpuStrategy",
                Kind::Combo(&mut self.fpu_strategy, FPU_STRATEGIES),
            ),
            UciOption("FpuValue", Kind::Real(&mut self.fpu_value, -1.0..=2.0)),
            UciOption(
                "PolicyTemperature",
                Kind::Real(&mut self.policy_temperature, 0.1..=10.0),
            ),
            UciOption(
                "RootPolicyTemperature",
                Kind::Real(&mut self.root_policy_temperature, 0.1..=10.0),
            ),
            UciOption(
                "NoiseEpsilon",
                Kind::Real(&mut self.noise_epsilon, 0.0..=1.0),
            ),
            UciOption(
                "NoiseAlpha",
                Kind::Real(&mut self.noise_alpha, 0.001..=100.0),
            ),
            UciOption("SmartPruning", Kind::Check(&mut self.smart_pruning)),
            UciOption(
                "MinimumKLDGainPerNode",
                Kind::Real(&mut self.kld_gain, 0.0..=1.0),
            ),
            UciOption(
                "KLDGainAverageInterval",
                Kind::Spin(&mut self.kld_interval, 2..=100_000),
            ),
            UciOption("Temperature", Kind::Real(&mut self.temperature, 0.0..=10.0)),
            UciOption(
                "TemperatureEnd",
                Kind::Real(&mut self.temperature_end, 0.0..=10.0),
            ),
            UciOption(
                "TemperaturePlies",
                Kind::Spin(&mut self.temperature_plies, 0..=1000),
            ),
        ]
    }

    /// One `option` line for each option, with the present values as defaults.
    pub fn declarations(&self) -> Vec<String> {
        let mut copy = self.clone();
        copy.rows().iter().map(UciOption::declaration).collect()
    }

    /// Sets an option; case and spaces in its name do not matter.
    ///
    /// # Errors
    ///
    /// [`SetError`] if there is no such option, its value is not allowed, or there is no memory for
    /// it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        self.set_within(name, value, has_memory)
    }

    /// Sets an option; `has_memory` says whether this number of bytes is free.
    fn set_within(
        &mut self,
        name: &str,
        value: &str,
        has_memory: impl Fn(usize) -> bool,
    ) -> Result<(), SetError> {
        let kept = self.hash;
        self.set_row(name, value)?;
        if self.hash == kept || has_memory(self.hash_bytes()) {
            return Ok(());
        }
        let wanted = std::mem::replace(&mut self.hash, kept);
        Err(SetError::Memory { wanted, kept })
    }

    fn set_row(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        let plain = |name: &str| name.replace(' ', "").to_ascii_lowercase();
        let mut rows = self.rows().into_iter();
        let row = rows.find(|row| plain(row.0) == plain(name));
        row.ok_or_else(|| SetError::Unknown(name.to_owned()))?
            .set(value)
    }

    /// How to search.
    pub fn search(&self) -> SearcherConfig {
        let value = self.fpu_value;
        let fpu = match self.fpu_strategy.as_str() {
            "absolute" => Fpu::Absolute { value },
            _ => Fpu::Reduction { value },
        };
        let noise = Noise {
            alpha: self.noise_alpha,
            epsilon: self.noise_epsilon,
        };
        let kld_stop = KldStop {
            minimum_gain: self.kld_gain,
            interval: self.kld_interval,
        };
        SearcherConfig {
            params: SearchParams {
                puct: PuctParams {
                    c_base: self.cpuct_base,
                    c_init: self.cpuct,
                    fpu,
                },
                noise: (self.noise_epsilon > 0.0).then_some(noise),
                policy_temperature: self.policy_temperature,
                root_policy_temperature: self.root_policy_temperature,
                kld_stop: (self.kld_gain > 0.0).then_some(kld_stop),
                ..SearchParams::for_strength()
            },
            max_collisions: self.max_collisions,
            cache_history: self.cache_history as usize,
            tree_bytes: self.hash_bytes() / 4 * 3,
        }
    }

    /// The folders of Syzygy tables, none if there are none.
    pub fn syzygy_folders(&self) -> Vec<PathBuf> {
        let folders = std::env::split_paths(&self.syzygy_path);
        folders
            .filter(|path| !path.as_os_str().is_empty())
            .collect()
    }

    /// Evaluations to remember: a quarter of the memory at 250 bytes each.
    pub const fn cached_positions(&self) -> usize {
        self.hash_bytes() / 4 / 250
    }

    const fn hash_bytes(&self) -> usize {
        (self.hash as usize) << 20
    }

    /// The temperature at which a move is chosen at this ply of the game.
    pub fn temperature_at(&self, ply: u32) -> f32 {
        let falling = Temperature {
            start: self.temperature,
            end: self.temperature_end,
            plies: self.temperature_plies,
        };
        falling.at(ply)
    }

    /// What is kept back from the clock.
    pub fn overhead(&self) -> Duration {
        Duration::from_millis(self.move_overhead.into())
    }
}

/// Whether the system would allocate this number of bytes. Later they are asked for in a way that ends the
/// program where it does not.
fn has_memory(bytes: usize) -> bool {
    let mut memory: Vec<u8> = Vec::new();
    let given = memory.try_reserve_exact(bytes).is_ok();
    // Unused memory need not be allocated.
    std::hint::black_box(&memory);
    given
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::uci) fn options() -> Options {
        Options::new(NetworkChoice {
            network: "best".to_owned(),
            device: "auto".to_owned(),
            precision: "auto".to_owned(),
            threads: 1,
        })
    }

    #[test]
    fn every_option_is_declared_with_kind_and_default() {
        let lines = options().declarations();
        assert_eq!(lines.len(), options().rows().len());
        assert!(
            lines.contains(&"option name MultiPV type spin default 1 min 1 max 218".to_owned())
        );
        assert!(lines.contains(&"option name CPuct type string default 1.25".to_owned()));
        assert!(lines.contains(&"option name Clear Hash type button".to_owned()));
        assert!(
            lines.contains(
                &"option name FpuStrategy type combo default reduction var reduction var absolute"
                    .to_owned()
            )
        );
    }

    #[test]
    fn every_option_can_be_set_to_its_default() {
        let mut set = options();
        for line in options().declarations() {
            let name = line
                .split(" type ")
                .next()
                .unwrap()
                .trim_start_matches("option name ");
            let default = line.split(" default ").nth(1).unwrap_or_default();
            let value = default
                .split(" min ")
                .next()
                .unwrap()
                .split(" var ")
                .next()
                .unwrap();
            set.set(name, value).unwrap();
        }
        set.cleared = 0;
        assert_eq!(set, options());
    }

    #[test]
    fn folders_of_tables_are_a_list_that_may_be_empty() {
        let mut set = options();
        let declared = "option name SyzygyPath type string default <empty>".to_owned();
        assert!(set.declarations().contains(&declared));
        assert!(set.syzygy_folders().is_empty());
        let two = std::env::join_paths(["three men", "four"]).unwrap();
        set.set("SyzygyPath", &two.to_string_lossy()).unwrap();
        assert_eq!(
            set.syzygy_folders(),
            [PathBuf::from("three men"), PathBuf::from("four")]
        );
        set.set("syzygypath", "<empty>").unwrap();
        assert_eq!(set, options());
    }

    #[test]
    fn names_are_told_whatever_their_case_and_spaces() {
        let mut set = options();
        set.set("MoveOverhead", "30").unwrap();
        set.set("multipv", "4").unwrap();
        set.set("uci_CHESS960", "True").unwrap();
        assert_eq!(
            (set.move_overhead, set.multi_pv, set.chess960),
            (30, 4, true)
        );
    }

    #[test]
    fn what_is_not_allowed_is_refused_and_says_what_is() {
        let mut set = options();
        for (name, value, says) in [
            ("MultiPV", "0", "1 to 218"),
            ("Hash", "lots", "16 to 1048576"),
            ("CPuct", "NaN", "0 to 100"),
            ("FpuStrategy", "hope", "reduction, absolute"),
            ("Ponder", "maybe", "true or false"),
            ("Contempt", "1", "no option"),
        ] {
            let error = set.set(name, value).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(set, options());
    }

    #[test]
    fn a_hash_for_which_there_is_no_memory_is_refused() {
        let mut set = options();
        let little = |bytes| bytes <= 1 << 30;
        let error = set.set_within("Hash", "1048576", little).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("1048576") && text.contains("stays 512"),
            "{text}"
        );
        assert_eq!(set, options());
        set.set_within("Hash", "1024", little).unwrap();
        assert_eq!(set.hash, 1024);
        assert!(has_memory(1 << 20) && !has_memory(usize::MAX));
    }

    #[test]
    fn options_become_search_parameters() {
        let mut set = options();
        assert_eq!(set.search().params.noise, None);
        assert_eq!(set.search().params.kld_stop, None);
        for (name, value) in [
            ("FpuStrategy", "absolute"),
            ("FpuValue", "-1"),
            ("NoiseEpsilon", "0.25"),
            ("CPuct", "2,5"),
        ] {
            let _ = set.set(name, value);
        }
        let search = set.search();
        assert_eq!(search.params.puct.fpu, Fpu::Absolute { value: -1.0 });
        assert_eq!(search.params.noise, Some(Noise::default()));
        assert_eq!(
            search.params.puct.c_init, 2.5,
            "a decimal comma is understood"
        );
        assert!(search.params.check().is_ok());
        set.set("MinimumKLDGainPerNode", "0.000005").unwrap();
        assert_eq!(set.search().params.kld_stop, Some(KldStop::default()));
    }
}
