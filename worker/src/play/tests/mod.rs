use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use rookery_backend_cpu::CpuBackend;
use rookery_common::ids::{ContentHash, MatchId};
use rookery_common::network::{NetworkSpec, Program, program_file};
use rookery_common::params::{MatchParams, SearchParams};
use rookery_common::protocol::jobs::{Opening, PairTask, Work};
use rookery_engine::Precision;
use rookery_model::Weights;

use super::*;
use crate::device_pool::DevicePool;
use crate::networks::Contents;

mod failover;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// Games go to the test.
#[derive(Clone)]
struct Games(mpsc::Sender<GameRecord>);

impl GameSink for Games {
    fn keep(&self, _job: JobId, game: Box<GameRecord>) {
        self.0.send(*game).unwrap();
    }

    fn is_stuck(&self) -> bool {
        false
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    player: Player,
    games: mpsc::Receiver<GameRecord>,
    events: mpsc::Receiver<PlayEvent>,
}

/// The machine of these tests.
fn machine(threads: usize, games: usize, memory: u64) -> Machine {
    Machine {
        devices: DevicePool::single(Arc::new(CpuBackend::new(Precision::F32).unwrap())),
        threads: NonZeroUsize::new(threads).unwrap(),
        games: NonZeroUsize::new(games).unwrap(),
        beside: None,
        memory,
    }
}

impl Fixture {
    fn new(threads: usize, games: usize) -> Self {
        Self::with_memory(threads, games, 1 << 30)
    }

    fn with_memory(threads: usize, games_at_once: usize, memory: u64) -> Self {
        let (to_games, games) = mpsc::channel();
        Self::with_sink(
            &machine(threads, games_at_once, memory),
            &Games(to_games),
            games,
        )
    }

    fn with_sink(
        machine: &Machine,
        sink: &(impl GameSink + Clone),
        games: mpsc::Receiver<GameRecord>,
    ) -> Self {
        let judges = Judges::default();
        let (to_events, events) = mpsc::channel();
        let player = Player::start(machine, Priority::Unchanged, &judges, sink, move |event| {
            drop(to_events.send(event));
        });
        let (player, folder) = (player.unwrap(), tempfile::tempdir().unwrap());
        Self {
            folder,
            player,
            games,
            events,
        }
    }

    fn network(&self, seed: u64) -> NetworkFile {
        let weights = Weights::random(NetworkSpec::resnet(1, 8), seed).unwrap();
        let path = self.folder.path().join(format!("{seed}.safetensors"));
        let hash = weights.write(&path).unwrap();
        NetworkFile {
            hash,
            path,
            contents: Contents::Network,
        }
    }

    fn play(&self, job: Job, networks: Vec<NetworkFile>) -> Arc<JobCounters> {
        let counters = Arc::new(JobCounters::default());
        let games = (0..job.work.games()).collect();
        let job = Arc::new(job);
        self.player.play(JobWork {
            job,
            games,
            networks,
            counters: Arc::clone(&counters),
        });
        counters
    }

    fn next_event(&self) -> PlayEvent {
        self.events.recv_timeout(PATIENCE).unwrap()
    }
}

fn selfplay(games: u32, network: ContentHash) -> Job {
    let mut job = crate::spool::testing::job(games);
    if let Work::SelfPlay { network: named, .. } = &mut job.work {
        *named = network;
    }
    job
}

#[test]
fn every_game_of_a_job_is_played_once_on_several_threads() {
    let fixture = Fixture::new(3, 4);
    let network = fixture.network(1);
    let counters = fixture.play(selfplay(17, network.hash), vec![network]);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    let games: Vec<GameRecord> = fixture.games.try_iter().collect();
    let indices: BTreeSet<u32> = games.iter().map(|game| game.index).collect();
    assert_eq!((games.len(), indices.len()), (17, 17));
    let positions: usize = games.iter().map(|game| game.plies.len()).sum();
    assert_eq!(counters.positions(), positions as u64);
    assert_eq!((counters.unstarted(), counters.in_hand()), (0, 0));
}

#[test]
fn games_do_not_depend_on_threads_or_on_other_jobs() {
    let play = |threads, games, jobs: u32| {
        let fixture = Fixture::new(threads, games);
        let network = fixture.network(1);
        for more in 0..jobs {
            fixture.play(selfplay(4 + more, network.hash), vec![network.clone()]);
        }
        (0..jobs).for_each(|_| assert!(matches!(fixture.next_event(), PlayEvent::Left(_))));
        let games = fixture.games.try_iter();
        let mut moves: Vec<_> = games
            .map(|game| {
                (
                    game.index,
                    game.plies.iter().map(|ply| ply.played).collect::<Vec<_>>(),
                )
            })
            .collect();
        moves.sort_by_key(|(index, _)| *index);
        moves.dedup();
        moves
    };
    // All jobs have the same seed, so games of one index are the same game.
    assert_eq!(
        play(1, 16, 1),
        play(2, 3, 2).into_iter().take(4).collect::<Vec<_>>()
    );
}

/// The moves of a job's games, with a pause after the first of them or without.
fn moves_of_games(paused: bool) -> Vec<(u32, Vec<shakmaty::Move>)> {
    let fixture = Fixture::new(2, 3);
    let network = fixture.network(1);
    fixture.play(selfplay(30, network.hash), vec![network]);
    let mut games = vec![fixture.games.recv().unwrap()];
    if paused {
        let paused = fixture.player.pause_handle().pause();
        assert!(paused.wait(PATIENCE));
    }
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    games.extend(fixture.games.try_iter());
    games.sort_by_key(|game| game.index);
    let moves = |game: &GameRecord| game.plies.iter().map(|ply| ply.played).collect();
    games.iter().map(|game| (game.index, moves(game))).collect()
}

#[test]
fn games_go_on_after_a_rest_as_if_there_had_been_none() {
    let games = moves_of_games(true);
    assert_eq!(games.len(), 30);
    assert_eq!(games, moves_of_games(false));
}

#[test]
fn threads_that_have_nothing_to_play_rest_and_play_afterwards() {
    let fixture = Fixture::new(2, 3);
    let network = fixture.network(1);
    let paused = fixture.player.pause_handle().pause();
    assert!(paused.wait(PATIENCE));
    fixture.play(selfplay(3, network.hash), vec![network]);
    drop(paused);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    assert_eq!(fixture.games.try_iter().count(), 3);
}

/// What was let go of is read again, so that it cannot be played on without its file.
#[test]
fn a_rest_lets_go_of_networks() {
    let fixture = Fixture::new(2, 3);
    let network = fixture.network(1);
    fixture.play(selfplay(100_000, network.hash), vec![network.clone()]);
    fixture.games.recv().unwrap();
    let paused = fixture.player.pause_handle().pause();
    assert!(paused.wait(PATIENCE));
    std::fs::remove_file(&network.path).unwrap();
    drop(paused);
    let PlayEvent::Failed { error, .. } = fixture.next_event() else {
        panic!("the job was played on");
    };
    assert!(error.contains("1.safetensors"), "{error}");
    // Another job, of a network that is there, is played.
    let other = fixture.network(2);
    fixture.play(selfplay(3, other.hash), vec![other]);
    let mut left = 0;
    while left < 2 {
        left += usize::from(matches!(fixture.next_event(), PlayEvent::Left(_)));
    }
}

#[test]
fn matches_are_played_with_both_networks() {
    let fixture = Fixture::new(2, 8);
    let (candidate, opponent) = (fixture.network(1), fixture.network(2));
    fixture.play(
        short_match([&candidate, &opponent]),
        vec![candidate, opponent],
    );
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    assert_eq!(fixture.games.try_iter().count(), 6);
}

/// A program has a file of its own, which is never read.
fn program(program: Program) -> NetworkFile {
    NetworkFile {
        hash: ContentHash::of(&program_file(program).unwrap()),
        path: PathBuf::from("/nowhere/at/all"),
        contents: Contents::Program(program),
    }
}

#[test]
fn matches_are_played_against_programs() {
    for opponent in [Program::Random, Program::alpha_beta(1)] {
        let fixture = Fixture::new(2, 8);
        let (candidate, opponent) = (fixture.network(1), program(opponent));
        let with = |networks: [&NetworkFile; 2]| {
            let files = networks.map(NetworkFile::clone).to_vec();
            fixture.play(short_match(networks), files);
            assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
            let games = fixture.games.try_iter();
            let mut games: Vec<_> = games.map(|game| (game.index, game.plies)).collect();
            games.sort_by_key(|(index, _)| *index);
            games
        };
        let games = with([&candidate, &opponent]);
        assert_eq!(games.len(), 6);
        for (index, plies) in games {
            // The candidate is White in even games.
            let theirs = plies.iter().skip(usize::from(index % 2 == 0)).step_by(2);
            theirs.for_each(|ply| assert_eq!(ply.visits.iter().sum::<u32>(), 1));
        }
        assert_eq!(with([&opponent, &candidate]).len(), 6);
        assert_eq!(with([&opponent, &opponent]).len(), 6);
    }
}

#[test]
fn a_program_does_not_play_itself_for_training() {
    let fixture = Fixture::new(1, 2);
    let random = program(Program::Random);
    fixture.play(selfplay(4, random.hash), vec![random]);
    let PlayEvent::Failed { error, .. } = fixture.next_event() else {
        panic!("the job was played");
    };
    assert!(error.contains("the program random"), "{error}");
}

/// Three pairs of a match between these, of a few plies.
fn short_match([candidate, opponent]: [&NetworkFile; 2]) -> Job {
    let pairs = (0..3)
        .map(|n| PairTask {
            pair: 10 + n,
            opening: Opening::default(),
        })
        .collect();
    let search = SearchParams {
        visits: 4,
        ..SearchParams::default()
    };
    let params = MatchParams {
        search,
        ply_limit: 10,
        ..MatchParams::default()
    };
    let mut job = crate::spool::testing::job(1);
    job.work = Work::Match {
        match_id: MatchId(1),
        candidate: candidate.hash,
        opponent: opponent.hash,
        pairs,
        params,
    };
    job
}

/// A gate waits for every game of its match, and training for none.
#[test]
fn matches_go_before_all_else_on_a_processor() {
    let fixture = Fixture::new(1, 4);
    let (candidate, opponent) = (fixture.network(1), fixture.network(2));
    let network = candidate.clone();
    let endless = fixture.play(selfplay(100_000, network.hash), vec![network]);
    fixture.games.recv().unwrap();
    let in_match = fixture.play(
        short_match([&candidate, &opponent]),
        vec![candidate, opponent],
    );
    // Self-play had all of the thread's places, and has as many games to begin as it likes.
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    assert_eq!((in_match.unstarted(), in_match.in_hand()), (0, 0));
    assert!(endless.unstarted() > 0);
    endless.order(Control::Drop);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
}

#[test]
fn a_dropped_job_is_left_at_once_and_the_next_is_played() {
    let fixture = Fixture::new(2, 2);
    let network = fixture.network(1);
    let counters = fixture.play(selfplay(100_000, network.hash), vec![network.clone()]);
    fixture.games.recv().unwrap();
    counters.order(Control::Drop);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    fixture.play(selfplay(2, network.hash), vec![network]);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
}

#[test]
fn without_memory_for_more_one_game_is_played_at_a_time() {
    let fixture = Fixture::with_memory(1, 64, 1);
    let network = fixture.network(1);
    let counters = fixture.play(selfplay(1000, network.hash), vec![network.clone()]);
    let other = fixture.play(selfplay(10, network.hash), vec![network]);
    fixture.games.recv().unwrap();
    counters.order(Control::FinishInHand);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    let begun = 1000 - counters.unstarted() + 10 - other.unstarted();
    let ended = 1 + fixture.games.try_iter().count();
    assert!(begun <= ended + 1, "{begun} began, {ended} ended");
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
}

#[test]
fn finishing_ends_the_games_in_hand_and_begins_no_more() {
    let fixture = Fixture::new(1, 4);
    let network = fixture.network(1);
    let counters = fixture.play(selfplay(1000, network.hash), vec![network]);
    fixture.games.recv().unwrap();
    counters.order(Control::FinishInHand);
    assert!(matches!(fixture.next_event(), PlayEvent::Left(_)));
    let played = 1 + fixture.games.try_iter().count();
    assert_eq!(played + counters.unstarted(), 1000);
}

#[test]
fn a_job_that_cannot_be_played_fails_once_and_is_left() {
    let fixture = Fixture::new(8, 2);
    let hash = ContentHash::of(b"nothing");
    let missing = NetworkFile {
        hash,
        path: PathBuf::from("/nowhere/at/all"),
        contents: Contents::Network,
    };
    fixture.play(selfplay(16, hash), vec![missing]);
    let mut failures = 0;
    while let PlayEvent::Failed { error, .. } = fixture.next_event() {
        assert!(error.contains("/nowhere/at/all"), "{error}");
        failures += 1;
    }
    assert_eq!(failures, 1);
}

/// Breaks the thread that hands a game in.
#[derive(Clone)]
struct Broken;

impl GameSink for Broken {
    fn keep(&self, _job: JobId, _game: Box<GameRecord>) {
        panic!("a test breaks this thread");
    }

    fn is_stuck(&self) -> bool {
        false
    }
}

#[test]
fn a_thread_that_dies_says_so_and_holds_no_job() {
    let (_, no_games) = mpsc::channel();
    let fixture = Fixture::with_sink(&machine(1, 2, 1 << 30), &Broken, no_games);
    let network = fixture.network(1);
    fixture.play(selfplay(4, network.hash), vec![network.clone()]);
    let events = [fixture.next_event(), fixture.next_event()];
    let left = |event: &PlayEvent| matches!(event, PlayEvent::Left(_));
    assert!(events.iter().any(left), "{events:?}");
    let died = |event: &PlayEvent| matches!(event, PlayEvent::Died);
    assert!(events.iter().any(died), "{events:?}");
    // What it is given now is left at once.
    fixture.play(selfplay(4, network.hash), vec![network]);
    assert!(left(&fixture.next_event()));
}
