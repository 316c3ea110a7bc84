//! What the engine plays passes the verification that chunks undergo.

use rookery_common::chunk::{Caps, ChunkHeader, Lease, Side, encode, verify};
use rookery_common::ids::{ContentHash, JobId, MatchId, Seed};
use rookery_common::network::Program;
use rookery_common::openings::OpeningBook;
use rookery_common::params::{
    AdjudicationParams, ForcedPlayouts, GumbelParams, KldStop, MatchParams, PuzzleParams,
    ResignParams, RootSearch, SearchParams, SelfPlayParams, TableParams,
};
use rookery_common::protocol::jobs::{self, Backend, Opening, PairTask, selfplay_start};
use rookery_common::puzzle::Puzzle;

use super::{Job, MatchGame, Table, Work, planned};
use crate::dummy::{HandEvaluator, UniformEvaluator};

const SEED: Seed = Seed(77);

fn network() -> ContentHash {
    ContentHash::of(b"network")
}

/// Plays the work and verifies the games against the lease that asked for them.
fn play_and_verify(work: Work, leased: &jobs::Work) {
    play_with_and_verify([None; 2], work, leased);
}

/// The same with programs in place of some networks.
fn play_with_and_verify(programs: [Option<Program>; 2], work: Work, leased: &jobs::Work) {
    let table = Table::new(&Job { seed: SEED, work }, 3, &[]).unwrap();
    let mut table = table.with_programs(programs);
    let (mut hand, mut uniform) = (HandEvaluator::default(), UniformEvaluator::default());
    let games = table.run(&mut [&mut hand, &mut uniform]).unwrap();
    let run = "main".parse().unwrap();
    let job: JobId = "00000000-0000-0000-0000-000000000007".parse().unwrap();
    let header = ChunkHeader {
        run,
        job,
        networks: leased.networks(),
        worker_version: "test".into(),
        backend: Backend::CpuF32,
        kind: leased.kind(),
    };
    let bytes = encode(&header, &games).unwrap();
    let lease = Lease {
        run: &header.run,
        job,
        seed: SEED,
        work: leased,
        tables: None,
    };
    let verified = verify(&bytes, &Caps::default(), &lease).unwrap();
    assert_eq!(verified.games.len(), leased.games() as usize);
}

fn search(visits: u32) -> SearchParams {
    SearchParams {
        visits,
        ..SearchParams::default()
    }
}

#[test]
fn self_play() {
    let gumbel = RootSearch::Gumbel(GumbelParams::default());
    let openings = OpeningBook::built_in().draw(0.5, 6, SEED);
    for (root, forced) in [
        (RootSearch::Puct, None),
        (RootSearch::Puct, Some(ForcedPlayouts::default())),
        (gumbel, None),
    ] {
        let params = SelfPlayParams {
            search: SearchParams {
                root,
                forced_playouts: forced,
                stop_when_decided: true,
                kld_stop: Some(KldStop {
                    minimum_gain: 0.001,
                    interval: 10,
                }),
                ..search(40)
            },
            full_search_share: 0.4,
            fast_visits: 6,
            opening_plies: 2,
            ply_limit: 150,
            resign: Some(ResignParams {
                threshold: -0.9,
                play_on_share: 0.5,
            }),
            ..SelfPlayParams::default()
        };
        let leased = jobs::Work::SelfPlay {
            network: network(),
            games: 6,
            openings: openings.clone(),
            params: params.clone(),
        };
        let start = |index| selfplay_start(&openings, index).unwrap();
        let games = planned((0..6).map(start));
        play_and_verify(Work::SelfPlay { params, games }, &leased);
    }
}

#[test]
fn puzzles() {
    let puzzle = |id: &str, fen: &str, moves: &str, setup| Puzzle {
        id: id.into(),
        fen: fen.into(),
        moves: moves.split(' ').map(str::to_owned).collect(),
        setup,
        rating: 0,
        themes: Vec::new(),
    };
    let puzzles = vec![
        puzzle("mate", "5k2/5ppp/8/8/8/8/8/R3K3 b - - 0 1", "f8g8 a1a8", 1),
        puzzle(
            "line",
            "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1",
            "e4e5 d5e5 e1f1",
            0,
        ),
    ];
    let params = PuzzleParams {
        search: SearchParams {
            forced_playouts: Some(ForcedPlayouts::default()),
            ..search(50)
        },
        ..PuzzleParams::default()
    };
    let leased = jobs::Work::Puzzles {
        network: network(),
        puzzles: puzzles.clone(),
        params: params.clone(),
    };
    play_and_verify(
        Work::Puzzles {
            params,
            games: planned(puzzles),
        },
        &leased,
    );
}

/// How a network searches in matches: with forced playouts, whose target stands beside the visits.
fn forced() -> SearchParams {
    SearchParams {
        forced_playouts: Some(ForcedPlayouts::default()),
        stop_when_decided: true,
        ..search(30)
    }
}

#[test]
fn a_match() {
    play_a_match([None; 2], forced());
}

#[test]
fn a_match_against_a_program() {
    let gumbel = SearchParams {
        root: RootSearch::Gumbel(GumbelParams::default()),
        ..search(30)
    };
    let sometimes = Program::AlphaBeta {
        depth: 1,
        random: 50,
    };
    for program in [Program::Random, Program::alpha_beta(1), sometimes] {
        for params in [search(30), forced(), gumbel.clone()] {
            play_a_match([None, Some(program)], params.clone());
            play_a_match([Some(program), None], params);
        }
    }
}

fn play_a_match(programs: [Option<Program>; 2], search: SearchParams) {
    let params = MatchParams {
        search,
        ply_limit: 80,
        adjudication: Some(AdjudicationParams {
            win_value: 0.7,
            plies: 4,
            engine: None,
        }),
        tables: Some(TableParams::default()),
        ..MatchParams::default()
    };
    let opening = |text: &str| Opening {
        fen: None,
        moves: vec![text.to_owned()],
    };
    let pairs: Vec<PairTask> = (0..)
        .zip(["e2e4", "d2d4"])
        .map(|(pair, text)| PairTask {
            pair,
            opening: opening(text),
        })
        .collect();
    let game = |task: &PairTask, candidate| MatchGame {
        pair: task.pair,
        candidate,
        start: task.opening.start().unwrap(),
    };
    let sides = |task| [Side::White, Side::Black].map(|side| game(task, side));
    let games = planned(pairs.iter().flat_map(sides));
    let leased = jobs::Work::Match {
        match_id: MatchId(1),
        candidate: network(),
        opponent: ContentHash::of(b"other"),
        pairs: pairs.clone(),
        params: params.clone(),
    };
    play_with_and_verify(programs, Work::Match { params, games }, &leased);
}
