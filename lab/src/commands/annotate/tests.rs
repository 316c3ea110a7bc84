//! Games annotated by the real Stockfish.

use super::*;
use rookery_cli::testing;

const GAMES: &str = "[White \"A \\\"the first\\\"\"]\n[Result \"0-1\"]\n\n1. f3 {bad} e5 (1... d5) 2. g4 Qh4# 0-1\n\n\
                     [Result \"1-0\"]\n\n1. e4 e5 2. Ke3 1-0\n\n\
                     [Result \"1/2-1/2\"]\n[FEN \"7k/8/8/8/8/8/8/K6Q b - - 0 1\"]\n\n1... Kg8 {[%eval 0.07]} 2. Qh2 1/2-1/2\n\n";

struct Here {
    dir: tempfile::TempDir,
}

impl Here {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("in.pgn"), GAMES.repeat(3)).unwrap();
        Self { dir }
    }

    fn run(&self, flags: &str) -> anyhow::Result<()> {
        let line = format!("annotate --pgn DIR/in.pgn -o DIR/out.pgn --nodes 200 {flags}");
        let args: AnnotateArgs = testing::flags(self.dir.path(), &line).unwrap();
        execute(&args, &Screen::hidden(), &Shutdown::default())
    }

    fn games(&self) -> Vec<PgnGame> {
        let mut games = Vec::new();
        let read = each_game(
            &self.dir.path().join("out.pgn"),
            &BytesRead::default(),
            |game| {
                games.push(game.unwrap());
                Ok(ControlFlow::Continue(()))
            },
        );
        read.unwrap();
        games
    }
}

#[test]
fn every_position_gets_an_evaluation() {
    let here = Here::new();
    here.run("--threads 2").unwrap();
    let games = here.games();
    assert_eq!(games.len(), 6);
    for pair in games.chunks(2) {
        let [lost, won] = pair else { panic!("pairs") };
        assert!(
            lost.tags
                .contains(&("White".to_owned(), "A \"the first\"".to_owned()))
        );
        // After 2. g4 Black mates; the mate itself needs no evaluation.
        assert_eq!(lost.evaluations.len(), 4, "{:?}", lost.evaluations);
        assert_eq!(lost.value(3), Some(1.0));
        assert!(lost.value(1).unwrap() > 0.0, "1. f3 is a bad move");
        // A queen up for White, whose opponent moves first; what a comment said is kept.
        assert!(won.value(0).unwrap() < -0.5);
        assert!(won.value(1).unwrap().abs() < 0.1);
        assert_eq!(won.evaluations.len(), 3);
    }
    let error = here.run("").unwrap_err().to_string();
    assert!(error.contains("already"), "{error}");
}

#[test]
fn strays_are_positions_that_nobody_played() {
    let here = Here::new();
    here.run("--threads 2 --strays 0.9").unwrap();
    let (strays, games): (Vec<_>, Vec<_>) = here
        .games()
        .into_iter()
        .partition(|game| game.result.is_none());
    assert_eq!(games.len(), 6);
    assert!((12..=24).contains(&strays.len()), "{}", strays.len());
    for stray in &strays {
        assert_eq!(stray.moves.len(), 1);
        assert!(stray.value(0).is_some());
    }
    // What was written is found again whatever it lacks at its end.
    let (out, part) = (
        here.dir.path().join("out.pgn"),
        here.dir.path().join("out.pgn.part"),
    );
    let whole = std::fs::read(&out).unwrap();
    for cut in [whole.len(), whole.len() - 40, whole.len() / 2] {
        std::fs::remove_file(&out).unwrap();
        std::fs::write(&part, &whole[..cut]).unwrap();
        here.run("--threads 2 --strays 0.9").unwrap();
        assert!(std::fs::read(&out).unwrap() == whole, "cut at {cut}");
    }
}

#[test]
fn what_was_stopped_goes_on() {
    let here = Here::new();
    here.run("--games 4 --threads 1").unwrap();
    let (out, part) = (
        here.dir.path().join("out.pgn"),
        here.dir.path().join("out.pgn.part"),
    );
    let four = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    std::fs::write(&part, &four[..four.len() - 3]).unwrap();
    here.run("").unwrap();
    let whole = std::fs::read(&out).unwrap();
    assert!(whole.starts_with(&four[..four.len() - 100]));
    assert_eq!(here.games().len(), 6);
    assert!(!part.exists());
}

#[test]
fn who_stops_reads_no_further_file() {
    let here = Here::new();
    // More files than a round has games.
    let files = "DIR/in.pgn ".repeat(ROUND + 1);
    let line = format!("annotate --pgn {files} -o DIR/out.pgn --nodes 200 --threads 1");
    let args: AnnotateArgs = testing::flags(here.dir.path(), line.trim()).unwrap();
    let shutdown = Shutdown::default();
    shutdown.request();
    execute(&args, &Screen::hidden(), &shutdown).unwrap();
    let part = here.dir.path().join("out.pgn.part");
    assert_eq!(std::fs::read_to_string(part).unwrap(), "");
}
