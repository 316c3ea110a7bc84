//! Rounds with a script in the trainer's place.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rookery_common::chess::GameHistory;
use rookery_common::chunk::{Caps, ChunkReader};
use rookery_common::network::NetworkSpec;
use rookery_common::params::EngineParams;
use rookery_common::protocol::jobs::WorkKind;
use rookery_engine::dummy::HandEvaluator;
use rookery_engine::{
    Backend, BackendError, BackendInfo, Evaluator, LoadedNetwork, Precision, Referee,
};
use rookery_model::Weights;
use shakmaty::Color;

use super::*;

/// A trainer that hands out the same network every time, logs losses, and keeps its command lines.
fn script(dir: &Path) -> PathBuf {
    let (path, network) = (dir.join("trainer"), dir.join("network"));
    Weights::random(NetworkSpec::resnet(1, 8), 1)
        .unwrap()
        .write(&network)
        .unwrap();
    let text = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\n\
         while [ $# -gt 0 ]; do\ncase $1 in -o) out=$2;; --log-file) log=$2;; esac\nshift\ndone\n\
         [ -z \"$log\" ] || echo '{{\"kind\":\"train\",\"step\":10,\"policy_loss\":2.0,\"value_loss\":0.5}}' >> \"$log\"\n\
         cp '{}' \"$out\"\n",
        dir.join("said").display(),
        network.display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn puzzle() -> Puzzle {
    Puzzle {
        id: "ladder".to_owned(),
        fen: "k7/8/8/8/8/8/6R1/K6R b - - 0 1".to_owned(),
        moves: ["a8b8", "h1h7", "b8a8", "g2g8"].map(str::to_owned).to_vec(),
        setup: 1,
        rating: 900,
        themes: Vec::new(),
    }
}

fn settings() -> Settings {
    Settings {
        system: System::Thesis,
        shape: Some("1x8".to_owned()),
        visits: 2,
        ply_limit: 10,
        games: 2,
        puzzles: 1,
        steps: 5,
        rate: 0.001,
        seed: 7,
        book: None,
        set: vec![puzzle()],
        limit: None,
    }
}

#[test]
fn a_round_plays_games_and_puzzles_and_trains_on_all_so_far() {
    let dir = tempfile::tempdir().unwrap();
    let device = crate::commands::flags::testing::device();
    let program = TrainerProgram::find(Some(&script(dir.path())), "cpu", Some(1));
    let run = dir.path().join("run");
    let judges = Judges::default();
    let mut training = Training::begin(settings(), &run, &program, (&device, judges)).unwrap();
    let warm = WarmStart {
        pgn: &["people.pgn".into()],
        assumed_elo: Some(1500.0),
        share: 0.5,
    };
    training.warm_start(&warm).unwrap();
    training.round(&|| false).unwrap();
    training.round(&|| false).unwrap();
    assert_eq!(training.games(), 6);
    assert_eq!(training.plot().unwrap(), Some([2.0, 0.5]));
    assert_eq!(training.network(), run.join("round-00002.safetensors"));
    let pgn = std::fs::read_to_string(run.join("games.pgn")).unwrap();
    assert_eq!(pgn.matches("[Event \"thesis\"]").count(), 6, "{pgn}");
    let kinds = [1, 2].map(|number| {
        let bytes = std::fs::read(run.join(format!("0000{number}.chunk"))).unwrap();
        let mut reader = ChunkReader::open(&bytes, &Caps::default()).unwrap();
        assert!(reader.next_game().unwrap().is_some());
        reader.header().kind
    });
    assert_eq!(kinds, [WorkKind::SelfPlay, WorkKind::Puzzles]);
    let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("init 1x8 --input classic-19"), "{said}");
    assert!(
        lines[1].contains("warm-start --device cpu --threads 1 --pgn people.pgn --assume-elo 1500"),
        "{said}"
    );
    assert!(
        lines[1].contains("random.safetensors") && !lines[1].contains("--minutes"),
        "{said}"
    );
    assert!(
        lines[3].contains("--steps 5") && lines[3].contains("00004.chunk"),
        "{said}"
    );
    assert!(lines[3].contains("round-00001.safetensors"), "{said}");
    for (line, seed) in lines.iter().zip([7, 7, 8, 9]) {
        assert!(line.contains(&format!("--seed {seed} ")), "{said}");
    }
}

/// A device on which every network counts material.
#[derive(Debug)]
struct Counting(BackendInfo);

impl Backend for Counting {
    fn info(&self) -> &BackendInfo {
        &self.0
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        Ok(Arc::new(CountingNetwork(weights.spec().clone())))
    }
}

#[derive(Debug)]
struct CountingNetwork(NetworkSpec);

impl LoadedNetwork for CountingNetwork {
    fn spec(&self) -> &NetworkSpec {
        &self.0
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        let (input, policy) = (self.0.input, self.0.policy.encoding);
        Box::new(HandEvaluator::new(input, policy))
    }
}

/// Calls White winning, and counts how often it is asked for two pawns.
#[derive(Debug, Default)]
struct ForWhite(AtomicU32);

impl Referee for ForWhite {
    fn winner(&self, _: &GameHistory, params: &EngineParams) -> Option<Color> {
        assert_eq!(params.centipawns, 200);
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(Color::White)
    }
}

#[test]
fn deltazeros_games_begin_in_its_book_and_end_by_its_engine() {
    let dir = tempfile::tempdir().unwrap();
    let info = BackendInfo::new("cpu", Precision::F32).unwrap();
    let device = Device::new(Arc::new(Counting(info)), Some(1));
    let program = TrainerProgram::find(Some(&script(dir.path())), "cpu", None);
    let fen = "4k3/8/8/8/8/8/PP6/4K3 w - -";
    let settings = Settings {
        system: System::DeltaZero,
        book: Some(OpeningBook::from_epd(fen).unwrap()),
        ply_limit: 40,
        set: Vec::new(),
        puzzles: 0,
        ..settings()
    };
    let referee = Arc::new(ForWhite::default());
    let judges = Judges {
        referee: Some(Arc::clone(&referee) as Arc<dyn Referee>),
        ..Judges::default()
    };
    let run = dir.path().join("run");
    let mut training = Training::begin(settings, &run, &program, (&device, judges)).unwrap();
    training.round(&|| false).unwrap();
    let pgn = std::fs::read_to_string(run.join("games.pgn")).unwrap();
    assert_eq!(pgn.matches(&format!("[FEN \"{fen}")).count(), 2, "{pgn}");
    assert_eq!(pgn.matches("[Result \"1-0\"]").count(), 2, "{pgn}");
    let bytes = std::fs::read(run.join("00001.chunk")).unwrap();
    let mut reader = ChunkReader::open(&bytes, &Caps::default()).unwrap();
    while let Some(game) = reader.next_game().unwrap() {
        assert_eq!(game.plies.len(), 8);
    }
    assert_eq!(referee.0.load(Ordering::Relaxed), 2, "{pgn}");
}

#[test]
fn a_training_that_cannot_begin_leaves_its_folder_empty() {
    let dir = tempfile::tempdir().unwrap();
    let device = crate::commands::flags::testing::device();
    let run = dir.path().join("run");
    for trainer in ["no such program", "false"] {
        let program = TrainerProgram::find(Some(trainer.as_ref()), "cpu", None);
        let begun = Training::begin(settings(), &run, &program, (&device, Judges::default()));
        begun.unwrap_err();
        assert_eq!(std::fs::read_dir(&run).unwrap().count(), 0, "{trainer}");
    }
}

#[test]
fn a_round_that_is_cut_off_trains_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let device = crate::commands::flags::testing::device();
    let program = TrainerProgram::find(Some(&script(dir.path())), "cpu", None);
    let settings = Settings {
        limit: Some(Duration::from_secs(3600)),
        ..settings()
    };
    let judges = Judges::default();
    let mut training = Training::begin(settings, dir.path(), &program, (&device, judges)).unwrap();
    training.round(&|| true).unwrap();
    assert_eq!(
        (training.games(), training.network()),
        (0, &*training.random())
    );
    training.round(&|| false).unwrap();
    let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.contains("--minutes 5") || said.contains("--minutes 6"),
        "{said}"
    );
}
