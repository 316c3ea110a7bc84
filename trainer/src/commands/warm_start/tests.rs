//! Warm starts from files.

use rookery_common::network::NetworkSpec;
use rookery_model::Weights;

use super::*;
use crate::learner::Learner;
use crate::testing;
use crate::warm::{Block, Counts, Place, Stream};

/// Short games, each its own: White gives a queen's-side opening of its number.
fn games(count: usize) -> String {
    let first = ["a3", "a4", "b3", "b4", "c3", "c4", "d3", "d4", "e3", "e4"];
    let answers = ["a6", "a5", "b6", "b5", "c6", "c5", "d6", "d5", "e6", "e5"];
    (0..count)
        .map(|n| {
            let (white, black) = (first[n % 10], answers[n / 10 % 10]);
            format!(
                "[WhiteElo \"{}\"]\n[BlackElo \"2000\"]\n[Result \"1-0\"]\n\n1. {white} {black} \
                 2. h3 h6 3. Nf3 Nf6 1-0\n\n",
                1500 + n
            )
        })
        .collect()
}

struct Here {
    dir: tempfile::TempDir,
}

impl Here {
    fn new() -> Self {
        rookery_backend_torch::use_threads(1);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in.safetensors");
        testing::network().write(&path).unwrap();
        std::fs::write(dir.path().join("a.pgn"), games(60)).unwrap();
        let more =
            games(100)[games(60).len()..].to_owned() + "1. e4 Qh1 *\n\n[Result \"1-0\"]\n\n1-0\n";
        let packed = zstd::encode_all(more.as_bytes(), 1).unwrap();
        std::fs::write(dir.path().join("b.pgn.zst"), packed).unwrap();
        Self { dir }
    }

    fn args(&self, flags: &str) -> WarmStartArgs {
        let line = format!(
            "warm-start --device cpu --network DIR/in.safetensors --batch-size 16 --block 100 \
             --held-out 0.1 {flags}"
        );
        rookery_cli::testing::flags(self.dir.path(), &line).unwrap()
    }

    fn run(&self, flags: &str) -> anyhow::Result<()> {
        execute(&self.args(flags), &Screen::hidden(), &Shutdown::default())
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.path().join(name)).unwrap()
    }
}

const BOTH: &str = "--pgn DIR/a.pgn DIR/b.pgn.zst";

#[test]
fn games_make_a_trained_network() {
    let here = Here::new();
    here.run(&format!("{BOTH} -o DIR/out --epochs 2 --log-file DIR/log"))
        .unwrap();
    let trained = Weights::read(&here.dir.path().join("out")).unwrap().0;
    // Some 90 games of 6 plies, twice.
    let steps = trained.spec.training_step;
    assert!((55..80).contains(&steps), "{steps}");
    assert!(
        String::from_utf8(here.read("log"))
            .unwrap()
            .contains("policy_loss")
    );
}

/// The order of the blocks' positions alone says what is learnt, not when batches are made.
#[test]
fn batches_made_ahead_teach_what_they_teach_one_after_the_other() {
    let here = Here::new();
    here.run(&format!("{BOTH} -o DIR/out")).unwrap();
    let args = here.args(&format!("{BOTH} --dry-run"));
    let (parent, weights) = network_file::read_hashed(&args.network).unwrap();
    let (plan, params) = (args.plan().unwrap(), args.training.params().unwrap());
    let mut learner = Learner::new(&weights, &params, args.device.open().unwrap()).unwrap();
    let empty = Block::new(weights.spec(), params.q_ratio);
    let (place, counts) = (Place::default(), Counts::default());
    let stream = Stream::start(plan.clone(), empty, place, counts).unwrap();
    let mut step = 0;
    while let Some(read) = stream.next_block().unwrap() {
        let order = read.block.order(plan.seed ^ read.begin.games);
        for places in order.chunks(16).filter(|places| places.len() >= 8) {
            let batch = read.block.batch(places);
            let rate = params.learning_rate.at(step);
            learner.trainer.step(&batch, rate).unwrap();
            step += 1;
        }
    }
    assert!(step > 20, "{step}");
    let expected = learner.export(Some(parent)).unwrap();
    assert!(here.read("out") == expected, "after {step} steps");
}

#[test]
fn a_warm_start_that_was_stopped_goes_on_with_the_same_batches() {
    let here = Here::new();
    here.run(&format!("{BOTH} -o DIR/whole --dir DIR/w --steps 23"))
        .unwrap();
    for steps in [3, 9, 23] {
        here.run(&format!("{BOTH} -o DIR/parts --dir DIR/p --steps {steps}"))
            .unwrap();
    }
    assert_eq!(here.read("whole"), here.read("parts"));
    let error = here
        .run(&format!(
            "{BOTH} -o DIR/parts --dir DIR/p --steps 25 --min-elo 1"
        ))
        .unwrap_err();
    assert!(
        error.to_string().contains("other files, settings"),
        "{error}"
    );
}

#[test]
fn a_dry_run_counts_what_there_is_and_writes_nothing() {
    let here = Here::new();
    let args = here.args(&format!("{BOTH} --dry-run"));
    let (plan, spec) = (args.plan().unwrap(), NetworkSpec::resnet(1, 8));
    let start = |place, counts| {
        Stream::start(plan.clone(), Block::new(&spec, 0.25), place, counts).unwrap()
    };
    let stream = start(Place::default(), Counts::default());
    let mut reads = Vec::new();
    while let Some(read) = stream.next_block().unwrap() {
        reads.push(read);
    }
    let last = reads.last().unwrap();
    let counts = &last.counts;
    assert_eq!(counts.games + counts.held_out, 100, "{counts:?}");
    assert!((3..20).contains(&counts.held_out), "{counts:?}");
    assert_eq!(counts.positions, 6 * counts.games);
    assert_eq!(counts.skipped.values().sum::<u64>(), 2, "{counts:?}");
    assert_eq!(last.held_out.len() as u64, 6 * counts.held_out);
    // From the middle on, it is as if it had been read from the start.
    let middle = &reads[1];
    let stream = start(middle.end, middle.counts.clone());
    let mut rest = Vec::new();
    while let Some(read) = stream.next_block().unwrap() {
        rest.push(read);
    }
    assert_eq!(rest.len(), reads.len() - 2);
    assert_eq!(rest.last().unwrap().counts, *counts);
    assert_eq!(rest.last().unwrap().held_out.len(), last.held_out.len());
    here.run(&format!("{BOTH} --dry-run")).unwrap();
    assert_eq!(std::fs::read_dir(here.dir.path()).unwrap().count(), 3);
}

#[test]
fn a_file_that_breaks_off_gives_what_it_holds() {
    let here = Here::new();
    let whole = here.read("b.pgn.zst");
    std::fs::write(
        here.dir.path().join("cut.pgn.zst"),
        &whole[..whole.len() - 9],
    )
    .unwrap();
    here.run("--pgn DIR/cut.pgn.zst DIR/a.pgn -o DIR/out")
        .unwrap();
    let error = here.run("--pgn DIR/a.pgn -o DIR/out").unwrap_err();
    assert!(error.to_string().contains("--force"), "{error}");
    let error = here.run("--pgn DIR/missing.pgn -o DIR/out").unwrap_err();
    assert!(error.to_string().contains("missing.pgn"), "{error}");
    let error = here
        .run("--pgn DIR/a.pgn -o DIR/other --min-elo 3000")
        .unwrap_err();
    assert!(error.to_string().contains("nothing to train on"), "{error}");
    let rated = String::from_utf8(here.read("a.pgn")).unwrap();
    let unrated = rated.replace("WhiteElo", "WhiteTeam");
    std::fs::write(here.dir.path().join("unrated.pgn"), unrated).unwrap();
    let error = here.run("--pgn DIR/unrated.pgn -o DIR/other").unwrap_err();
    assert!(error.to_string().contains("--assume-elo"), "{error}");
}

/// Who stops before the first step has the network to begin with; files without positions are another matter.
#[test]
fn a_warm_start_that_stops_before_its_first_step_writes_the_network_as_it_was() {
    let here = Here::new();
    here.run(&format!("{BOTH} -o DIR/out --minutes 1e-9"))
        .unwrap();
    let [before, after] = ["in.safetensors", "out"].map(|name| {
        let path = here.dir.path().join(name);
        Weights::read(&path).unwrap().0
    });
    let spec = after.spec;
    assert_eq!((spec.parent, spec.training_step), (Some(before.hash), 0));
}

#[test]
fn a_warm_start_that_goes_on_replaces_its_own_network_alone() {
    let here = Here::new();
    let run = |flags: &str| here.run(&format!("{BOTH} --dir DIR/p {flags}"));
    run("-o DIR/own --steps 2").unwrap();
    std::fs::write(here.dir.path().join("other"), "another file").unwrap();
    let error = run("-o DIR/other --steps 4").unwrap_err().to_string();
    assert!(error.contains("--force"), "{error}");
    assert_eq!(here.read("other"), b"another file");
    run("-o DIR/own --steps 4").unwrap();
    run("-o DIR/other --steps 4 --force").unwrap();
    assert_eq!(here.read("own"), here.read("other"));
    run("-o DIR/other --steps 6").unwrap();
    run("-o DIR/own --steps 6").unwrap_err();
}
