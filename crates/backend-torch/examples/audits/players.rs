//! Who plays: honest machines with different numbers, and liars.

use std::path::Path;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_backend_torch::{Convolutions, InferenceNetwork, NetworkEvaluator};
use rookery_common::chunk::{GameRecord, GameStart};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::Seed;
use rookery_common::params::{SearchParams, SelfPlayParams};
use rookery_common::protocol::jobs::Backend;
use rookery_engine::dummy::UniformEvaluator;
use rookery_engine::{DeviceChoice, Evaluator, GamePool, Job, Planned, Precision, Work};
use rookery_model::Weights;

use crate::Outcome;

/// How a network is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// In 32 bits as quickly as can be.
    Long,
    /// In 32 bits with libtorch's convolutions.
    LongByLibtorch,
    /// In 32 bits on two threads, on which convolutions are libtorch's, too.
    LongOnTwoThreads,
    /// In bfloat16.
    Short,
}

impl Numbers {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Long => "f32",
            Self::LongByLibtorch => "f32 (libtorch)",
            Self::LongOnTwoThreads => "f32 (two threads)",
            Self::Short => "bf16",
        }
    }

    pub(crate) const fn backend(self) -> Backend {
        match self {
            Self::Long | Self::LongByLibtorch | Self::LongOnTwoThreads => Backend::CpuF32,
            Self::Short => Backend::CpuBf16,
        }
    }
}

/// The network that plays and searches again.
pub(crate) struct Network {
    long: NetworkEvaluator,
    long_by_libtorch: NetworkEvaluator,
    short: NetworkEvaluator,
}

impl Network {
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        Ok(Self {
            long: open(path, Precision::F32, Convolutions::Quickest)?,
            long_by_libtorch: open(path, Precision::F32, Convolutions::Libtorch)?,
            short: open(path, Precision::Bf16, Convolutions::Quickest)?,
        })
    }

    /// The network, computed so from now on.
    pub(crate) fn computed(&mut self, numbers: Numbers) -> &mut NetworkEvaluator {
        let two = numbers == Numbers::LongOnTwoThreads;
        rookery_backend_torch::use_threads(if two { 2 } else { 1 });
        match numbers {
            Numbers::Long | Numbers::LongOnTwoThreads => &mut self.long,
            Numbers::LongByLibtorch => &mut self.long_by_libtorch,
            Numbers::Short => &mut self.short,
        }
    }
}

/// In 32 bits and in 16.
const BOTH: [Numbers; 2] = [Numbers::Long, Numbers::Short];

pub(crate) fn open(
    path: &Path,
    precision: Precision,
    convolutions: Convolutions,
) -> Outcome<NetworkEvaluator> {
    let (_, weights) = Weights::read(path)?;
    let device = rookery_backend_torch::ComputeDevice::open(DeviceChoice::Cpu)?;
    let network = InferenceNetwork::with_convolutions(&weights, device, precision, convolutions)?;
    Ok(NetworkEvaluator::from_network(Arc::new(network)))
}

/// Plays games, `at_once` of them in one batch.
fn play(
    params: &SelfPlayParams,
    games: u32,
    at_once: usize,
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<GameRecord>> {
    let plan = |index| Planned {
        index,
        game: GameStart::default(),
    };
    let work = Work::SelfPlay {
        params: params.clone(),
        games: (0..games).map(plan).collect(),
    };
    let job = Job {
        seed: Seed(20_261_121),
        work,
    };
    let mut games = GamePool::new(&job, at_once, &[])?.run(&mut [evaluator])?;
    games.sort_by_key(|game| game.index);
    Ok(games)
}

/// A player's games, and who searches them again.
pub(crate) struct Audited {
    pub(crate) who: String,
    /// Where the player says that they were played.
    pub(crate) backend: Backend,
    pub(crate) games: Vec<GameRecord>,
    pub(crate) auditors: &'static [Numbers],
}

impl Audited {
    /// Games that one who lies claims to have played in 32 bits.
    fn lies(who: &str, games: Vec<GameRecord>) -> Self {
        Self {
            who: who.to_owned(),
            backend: Numbers::Long.backend(),
            games,
            auditors: &BOTH,
        }
    }
}

/// An honest player's numbers, how many games it plays at once, and who searches these again.
pub(crate) type Honest = (Numbers, usize, &'static [Numbers]);

/// Honest players in 32 bits and in 16. Audits search eight spans at once, and so other batches than those of the games,
/// whether many of these are played at once or each alone.
pub(crate) const HONEST: [Honest; 4] = [
    (Numbers::Long, 64, &BOTH),
    (Numbers::Short, 64, &[Numbers::Long]),
    (Numbers::Long, 1, &[Numbers::Long]),
    (Numbers::Short, 1, &[Numbers::Short]),
];

/// Honest players in 32 bits that add up in different orders.
pub(crate) const HONEST_LONG: [Honest; 3] = [
    (
        Numbers::Long,
        64,
        &[Numbers::LongByLibtorch, Numbers::LongOnTwoThreads],
    ),
    (Numbers::LongByLibtorch, 64, &[Numbers::Long]),
    (Numbers::LongOnTwoThreads, 64, &[Numbers::Long]),
];

/// The network's own games.
pub(crate) fn honest(
    params: &SelfPlayParams,
    games: u32,
    players: &[Honest],
    by: &mut Network,
) -> Outcome<Vec<Audited>> {
    let own = |&(numbers, at_once, auditors): &Honest| {
        let alone = if at_once == 1 { " alone," } else { "" };
        Ok(Audited {
            who: format!("honest, {}{alone}", numbers.name()),
            backend: numbers.backend(),
            games: play(params, games, at_once, by.computed(numbers))?,
            auditors,
        })
    };
    players.iter().map(own).collect()
}

/// What liars claim in the place of the honest games.
pub(crate) fn lies(
    params: &SelfPlayParams,
    honest: &[GameRecord],
    by: &mut Network,
    weaker: &mut NetworkEvaluator,
) -> Outcome<Vec<Audited>> {
    let games = honest.len() as u32;
    let few = SelfPlayParams {
        search: SearchParams {
            visits: (params.search.visits / 4).max(2),
            ..params.search.clone()
        },
        fast_visits: (params.fast_visits / 4).max(2),
        ..params.clone()
    };
    let mut uniform = UniformEvaluator::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
    let few = inflated(play(&few, games, 64, by.computed(Numbers::Long))?, 4);
    let weaker = play(params, games, 64, weaker)?;
    let senseless = play(params, games, 64, &mut uniform)?;
    let every_fourth = partly(honest, &senseless, 4);
    Ok(vec![
        Audited::lies("weaker network,", weaker),
        Audited::lies("visits times 4,", few),
        Audited::lies("senseless,", senseless),
        Audited::lies("random visits,", random_visits(honest)),
        Audited::lies("a quarter senseless,", every_fourth),
    ])
}

/// Replaces every search by visits drawn at random, as many as there were.
fn random_visits(games: &[GameRecord]) -> Vec<GameRecord> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut games = games.to_vec();
    for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
        let all: u32 = ply.visits.iter().sum();
        let moves = ply.visits.len();
        ply.visits.fill(0);
        (0..all).for_each(|_| ply.visits[rng.random_range(0..moves)] += 1);
        if let Some(target) = &mut ply.target {
            target.rotate_left(moves / 2);
        }
    }
    games
}

/// Claims several visits for each that was made.
fn inflated(mut games: Vec<GameRecord>, times: u32) -> Vec<GameRecord> {
    for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
        ply.visits.iter_mut().for_each(|n| *n *= times);
    }
    games
}

/// Honest games, but every `nth` is another's.
fn partly(honest: &[GameRecord], lies: &[GameRecord], nth: usize) -> Vec<GameRecord> {
    let pairs = honest.iter().zip(lies).enumerate();
    pairs
        .map(|(place, (honest, lie))| if place % nth == 0 { lie } else { honest })
        .cloned()
        .collect()
}
