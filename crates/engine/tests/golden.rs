//! The same seed and the same evaluations give the same games and the same searches, bit by bit.
//!
//! Each test hashes what a search found, with every visit and value. A change of one of these
//! hashes is a change of the search: workers of the two versions would fail each other's audits.
//!
//! Logarithms and powers come from the platform's library, so the hashes hold for one platform.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::sync::Arc;

use rookery_common::chess::GameHistory;
use rookery_common::chunk::record::{GameRecord, GameStart, Side};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::network::Program;
use rookery_common::params::{
    AdjudicationParams, ForcedPlayouts, Fpu, GumbelParams, KldStop, MatchParams, Noise,
    PuzzleParams, ResignParams, RootSearch, SearchParams, SelfPlayParams, Temperature,
};
use rookery_common::puzzle::Puzzle;
use rookery_engine::dummy::{HandEvaluator, UniformEvaluator};
use rookery_engine::search::{GatherBudget, Gathered, Searcher, SearcherConfig};
use rookery_engine::{
    EvaluationCache, Evaluations, Evaluator, GamePool, Job, MatchGame, Planned, Work,
};

const POSITIONS: [&str; 6] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3",
    "2r3k1/pp3ppp/8/3p4/8/1P2P3/P4PPP/2R3K1 w - - 0 1",
    "8/8/7p/8/8/6N1/p1K5/k7 w - - 0 1",
    "6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 1",
    "8/5k2/3p4/1p1Pp2p/pP2Pp1P/P4P1K/8/8 b - - 95 50",
];

fn hash(text: &str) -> String {
    ContentHash::of(text.as_bytes()).to_string()[..16].to_owned()
}

fn planned<G>(games: impl IntoIterator<Item = G>) -> Vec<Planned<G>> {
    let games = (0..).zip(games);
    games.map(|(index, game)| Planned { index, game }).collect()
}

/// Plays the work twice, with and without caches and other games beside each; the records by index.
fn play(work: Work, programs: [Option<Program>; 2]) -> Vec<GameRecord> {
    let job = Job {
        seed: Seed(2024),
        work,
    };
    let caches = [(); 2].map(|()| Arc::new(EvaluationCache::new(1 << 20)));
    let [alone, together] = [(1, &[][..]), (4, &caches[..])].map(|(concurrency, caches)| {
        let pool = GamePool::new(&job, concurrency, caches).unwrap();
        let mut pool = pool.with_programs(programs);
        let (mut hand, mut uniform) = (HandEvaluator::default(), UniformEvaluator::default());
        let mut games = pool.run(&mut [&mut hand, &mut uniform]).unwrap();
        games.sort_by_key(|game| game.index);
        games
    });
    assert_eq!(alone, together);
    alone
}

fn search(visits: u32) -> SearchParams {
    SearchParams {
        visits,
        solver: false,
        ..SearchParams::default()
    }
}

fn gumbel(considered: u32) -> RootSearch {
    RootSearch::Gumbel(GumbelParams {
        considered,
        ..GumbelParams::default()
    })
}

fn start(fen: &str) -> GameStart {
    GameStart {
        fen: Some(fen.to_owned()),
        moves: Vec::new(),
    }
}

/// Self-play from all positions.
fn self_play(params: SelfPlayParams) -> String {
    let games = planned(POSITIONS.map(start));
    hash(&format!(
        "{:?}",
        play(Work::SelfPlay { params, games }, [None; 2])
    ))
}

fn short(search: SearchParams) -> SelfPlayParams {
    SelfPlayParams {
        search,
        ply_limit: 40,
        ..SelfPlayParams::default()
    }
}

#[test]
fn self_play_with_puct() {
    let plain = self_play(short(search(60)));
    let tuned = SearchParams {
        policy_temperature: 1.3,
        root_policy_temperature: 1.2,
        ..search(40)
    };
    let mut absolute = tuned.clone();
    absolute.puct.fpu = Fpu::Absolute { value: -1.0 };
    let dropped = SelfPlayParams {
        reuse_tree: false,
        opening_plies: 3,
        ..short(absolute)
    };
    let found = [plain, self_play(short(tuned)), self_play(dropped)];
    assert_eq!(
        found,
        ["4415fa1a4a415964", "d7e09709b90faddd", "bacdda4a16db990e"]
    );
}

#[test]
fn self_play_with_gumbel() {
    let root = gumbel(16);
    let plain = self_play(short(SearchParams { root, ..search(32) }));
    let root = gumbel(6);
    let caps = SelfPlayParams {
        full_search_share: 0.4,
        fast_visits: 8,
        ..short(SearchParams { root, ..search(40) })
    };
    let found = [plain, self_play(caps)];
    assert_eq!(found, ["681bd83d523d01cf", "6a94d8e8a05c3d15"]);
}

#[test]
fn self_play_with_playout_caps_forced_playouts_and_early_stops() {
    let caps = SelfPlayParams {
        full_search_share: 0.3,
        fast_visits: 10,
        resign: Some(ResignParams {
            threshold: -0.6,
            play_on_share: 0.5,
        }),
        adjudication: Some(AdjudicationParams {
            win_value: 0.8,
            plies: 4,
            engine: None,
        }),
        ..short(search(50))
    };
    let search = SearchParams {
        forced_playouts: Some(ForcedPlayouts::default()),
        kld_stop: Some(KldStop {
            minimum_gain: 0.01,
            interval: 8,
        }),
        stop_when_decided: true,
        ..search(60)
    };
    let temperature = Temperature {
        start: 0.8,
        end: 0.0,
        plies: 20,
    };
    let stops = SelfPlayParams {
        search: search.clone(),
        temperature,
        ..caps.clone()
    };
    let found = [caps, stops, short(search)].map(self_play);
    assert_eq!(
        found,
        ["b4b61502505c23e6", "60104acf46f4e1e4", "55ab114ec8e4c807"]
    );
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
    let puzzles = [
        puzzle("mate", "5k2/5ppp/8/8/8/8/8/R3K3 b - - 0 1", "f8g8 a1a8", 1),
        puzzle("two", "k7/8/8/8/8/8/6R1/K6R w - - 0 1", "g2b2 a8a7 h1h7", 0),
    ];
    let mut found = String::new();
    for root in [RootSearch::Puct, gumbel(8)] {
        let params = PuzzleParams {
            search: SearchParams { root, ..search(50) },
            ..PuzzleParams::default()
        };
        let games = planned(puzzles.clone());
        found += &format!("{:?}", play(Work::Puzzles { params, games }, [None; 2]));
    }
    assert_eq!(hash(&found), "21fbfb337e64e847");
}

fn a_match(search: SearchParams, programs: [Option<Program>; 2]) -> String {
    let params = MatchParams {
        search,
        ply_limit: 40,
        adjudication: Some(AdjudicationParams {
            win_value: 0.9,
            plies: 4,
            engine: None,
        }),
        ..MatchParams::default()
    };
    let sides = |(pair, fen): (u32, &&str)| {
        [Side::White, Side::Black].map(|candidate| MatchGame {
            pair,
            candidate,
            start: start(fen),
        })
    };
    let games = planned((0..).zip(&POSITIONS[..3]).flat_map(sides));
    hash(&format!(
        "{:?}",
        play(Work::Match { params, games }, programs)
    ))
}

#[test]
fn matches() {
    let decided = SearchParams {
        stop_when_decided: true,
        ..search(60)
    };
    let root = gumbel(8);
    let halving = SearchParams { root, ..search(24) };
    let program = Some(Program::alpha_beta(1));
    let found = [
        a_match(decided, [None; 2]),
        a_match(halving.clone(), [None; 2]),
        a_match(halving, [None, program]),
    ];
    assert_eq!(
        found,
        ["3a14902003566ca9", "b576bb9d625f762c", "5c777d94eeff5899"]
    );
}

/// The solver, which is on by default, with kept trees and without, and with Gumbel's root.
#[test]
fn self_play_with_the_solver() {
    let solving = |visits| SearchParams {
        solver: true,
        ..search(visits)
    };
    let kept = short(solving(60));
    let dropped = SelfPlayParams {
        reuse_tree: false,
        ..short(solving(60))
    };
    let root = gumbel(16);
    let halving = short(SearchParams {
        root,
        ..solving(32)
    });
    let found = [kept, dropped, halving].map(self_play);
    assert_eq!(
        found,
        ["49295719e16c0dcc", "051644ea409911e9", "d1165cf392f79238"]
    );
}

/// What searches find with batches of `leaves`, while a game goes on.
fn batches(config: &SearcherConfig, leaves: usize, cache: Option<Arc<EvaluationCache>>) -> String {
    let mut searcher = Searcher::new(config.clone(), cache, 9);
    let mut evaluator = HandEvaluator::default();
    let mut gathered = Gathered::new(&evaluator);
    let (mut answer, mut found) = (Evaluations::default(), String::new());
    for fen in POSITIONS {
        let mut game = GameHistory::from_fen(fen).unwrap();
        for _ in 0..3 {
            searcher.begin(&game, &[]);
            while !searcher.is_over() && searcher.planned_visits() < 500 {
                let visits = 500 - searcher.planned_visits();
                searcher.gather(GatherBudget { leaves, visits }, &mut gathered);
                evaluator.evaluate(gathered.batch(), &mut answer).unwrap();
                searcher.apply(&mut gathered, &answer).unwrap();
            }
            let stats = searcher.stats();
            let lengths = (stats.depth, stats.deepest);
            found += &format!("{lengths:?} {} {}", stats.visits, stats.new_visits);
            found += &format!("{:?} {}", stats.mate, stats.kld_converged);
            for line in searcher.lines(4) {
                found += &format!("{:?} {}", line.moves, line.visits);
                found += &format!("{:?} {:?}", line.value, line.mate);
            }
            game.push(searcher.choose(0.0).unwrap());
            if game.end().is_some() {
                break;
            }
        }
    }
    hash(&found)
}

#[test]
fn searches_with_many_leaves_a_batch() {
    let plain = SearcherConfig {
        params: SearchParams {
            noise: None,
            solver: false,
            ..SearchParams::default()
        },
        ..SearcherConfig::default()
    };
    let found = [1, 8, 40].map(|leaves| batches(&plain, leaves, None));
    assert_eq!(
        found,
        ["f7e066e2b08f238d", "f798fffe6f4c73e2", "6c8535ca15a196f6"]
    );
    let mut solving = plain;
    solving.params.solver = true;
    let found = [1, 8, 40].map(|leaves| batches(&solving, leaves, None));
    assert_eq!(
        found,
        ["3ef1ee533269ea48", "c8a1f96c50569940", "5dc9c9d1909a9e1d"]
    );
    let cache = Arc::new(EvaluationCache::new(1 << 20));
    let tuned = SearcherConfig {
        params: SearchParams {
            noise: Some(Noise::default()),
            policy_temperature: 1.4,
            root_policy_temperature: 1.1,
            kld_stop: Some(KldStop {
                minimum_gain: 0.001,
                interval: 50,
            }),
            solver: false,
            ..SearchParams::default()
        },
        max_collisions: 4,
        cache_history: 1,
        ..SearcherConfig::default()
    };
    assert_eq!(batches(&tuned, 16, Some(cache)), "a071544bb926664e");
}
