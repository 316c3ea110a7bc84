//! What the engine plays passes the verification that chunks undergo.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, Termination};
use rookery_common::chunk::{
    Caps, ChunkErrorCode, ChunkHeader, Effort, GameKind, GameRecord, Lease, PlyRecord, Side,
    encode, verify,
};
use rookery_common::ids::{ContentHash, JobId, MatchId, Seed};
use rookery_common::network::{Program, program_file};
use rookery_common::openings::OpeningBook;
use rookery_common::params::{
    AdjudicationParams, ForcedPlayouts, GumbelParams, KldStop, MatchParams, PuzzleParams,
    ResignParams, RootSearch, SearchParams, SelfPlayParams, TableParams, Temperature,
};
use rookery_common::play::{Chosen, GameRules, Reuse, TARGET_UNITS};
use rookery_common::protocol::jobs::{self, Backend, Opening, PairTask, selfplay_start};
use rookery_common::puzzle::Puzzle;

use super::{GamePool, Job, MatchGame, Work, planned};
use crate::dummy::{HandEvaluator, UniformEvaluator};

mod proofs;

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
    let games = play_with(programs, work);
    assert_eq!(refusal(&games, leased), None);
    assert_eq!(games.len(), leased.games() as usize);
}

fn play_with(programs: [Option<Program>; 2], work: Work) -> Vec<GameRecord> {
    let pool = GamePool::new(&Job { seed: SEED, work }, 3, &[]).unwrap();
    let mut pool = pool.with_programs(programs);
    let (mut hand, mut uniform) = (HandEvaluator::default(), UniformEvaluator::default());
    let mut games = pool.run(&mut [&mut hand, &mut uniform]).unwrap();
    games.sort_by_key(|game| game.index);
    games
}

/// Why the coordinator refuses these games, with the ply.
fn refusal(games: &[GameRecord], leased: &jobs::Work) -> Option<(ChunkErrorCode, Option<u32>)> {
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
    let bytes = encode(&header, games).unwrap();
    let lease = Lease {
        run: &header.run,
        job,
        seed: SEED,
        work: leased,
        tables: None,
    };
    let error = verify(&bytes, &Caps::default(), &lease).err()?;
    Some((error.code, error.ply))
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
    let file = |program: Option<Program>, other| {
        program.map_or(other, |program| {
            ContentHash::of(&program_file(program).unwrap())
        })
    };
    let leased = jobs::Work::Match {
        match_id: MatchId(1),
        candidate: file(programs[0], network()),
        opponent: file(programs[1], ContentHash::of(b"other")),
        pairs: pairs.clone(),
        params: params.clone(),
    };
    play_with_and_verify(programs, Work::Match { params, games }, &leased);
}

/// Ways to play, the `number`-th of them: each bit of it is a parameter.
fn way(number: u32) -> SelfPlayParams {
    let bit = |place: u32| number >> place & 1 == 1;
    let gumbel = RootSearch::Gumbel(GumbelParams {
        considered: 6,
        ..GumbelParams::default()
    });
    let temperature = |start, end, plies| Temperature { start, end, plies };
    SelfPlayParams {
        search: SearchParams {
            root: if bit(0) { gumbel } else { RootSearch::Puct },
            forced_playouts: bit(1).then(ForcedPlayouts::default),
            stop_when_decided: bit(4),
            solver: number.count_ones() % 2 == 1,
            kld_stop: bit(5).then_some(KldStop {
                minimum_gain: 0.01,
                interval: 5,
            }),
            ..search(16)
        },
        temperature: match number >> 1 & 3 {
            0 => temperature(1.0, 0.0, 12),
            1 => temperature(1.0, 1.0, 0),
            2 => temperature(0.5, 0.3, 60),
            _ => Temperature::NONE,
        },
        full_search_share: if bit(2) { 0.4 } else { 1.0 },
        fast_visits: 7,
        reuse_tree: bit(3),
        opening_plies: if bit(5) { 3 } else { 0 },
        ply_limit: 24,
        resign: bit(3).then_some(ResignParams {
            threshold: -0.3,
            play_on_share: 0.5,
        }),
        adjudication: bit(4).then_some(AdjudicationParams {
            win_value: 0.5,
            plies: 3,
            engine: None,
        }),
        ..SelfPlayParams::default()
    }
}

/// Some games of every way to play, from positions in which somebody soon resigns or is mated, and from the start.
fn ways() -> impl Iterator<Item = (jobs::Work, Vec<GameRecord>)> {
    (0..64).map(|number| {
        let params = way(number);
        let lost = Opening {
            fen: Some("3qk3/8/8/8/8/8/P7/4K3 w - - 0 1".into()),
            moves: Vec::new(),
        };
        let mated_soon = Opening {
            fen: Some("7k/8/6K1/8/8/8/8/R7 b - - 0 1".into()),
            moves: Vec::new(),
        };
        let openings = vec![lost, mated_soon];
        let leased = jobs::Work::SelfPlay {
            network: network(),
            games: 3,
            openings: openings.clone(),
            params: params.clone(),
        };
        let start = |index| selfplay_start(&openings, index).unwrap();
        let games = planned((0..3).map(start));
        (
            leased,
            play_with([None; 2], Work::SelfPlay { params, games }),
        )
    })
}

#[test]
fn games_of_every_way_to_play_pass() {
    let mut ends = std::collections::HashSet::new();
    for (number, (leased, games)) in ways().enumerate() {
        assert_eq!(refusal(&games, &leased), None, "way {number}");
        ends.extend(games.iter().map(|game| game.end.termination));
    }
    for end in [
        Termination::Resignation,
        Termination::Adjudication,
        Termination::PlyLimit,
    ] {
        assert!(ends.contains(&end), "{ends:?}");
    }
}

/// The game up to a ply whose move is the one at `place`, and the lease of games that end there.
fn cut(
    (leased, game): (&jobs::Work, &GameRecord),
    ply: usize,
    place: usize,
) -> (jobs::Work, GameRecord) {
    let mut leased = leased.clone();
    if let jobs::Work::SelfPlay { params, .. } = &mut leased {
        params.ply_limit = ply as u32 + 1;
        // How the game ends is not what is looked at.
        (params.resign, params.adjudication) = (None, None);
    }
    let mut game = game.clone();
    game.kind = GameKind::SelfPlay { play_on: false };
    game.plies.truncate(ply + 1);
    let mut history = game.start.history().unwrap();
    for record in &game.plies[..ply] {
        history.push(record.played);
    }
    game.plies[ply].played = canonical_moves(history.position())[place];
    history.push(game.plies[ply].played);
    game.end = history
        .end()
        .unwrap_or(GameEnd::draw(Termination::PlyLimit));
    (leased, game)
}

/// Every other move than the one that was due is refused where it stands, but for those that only the
/// network can tell from it.
#[test]
fn every_other_move_is_refused_with_its_ply() {
    let (mut refused, mut left_to_audits) = (0, 0);
    for (leased, games) in ways().step_by(3) {
        let rules = GameRules::of(&leased);
        let game = &games[2];
        for (ply, record) in game.plies.iter().enumerate() {
            let (visits, target) = (&record.visits, record.target.as_deref());
            let due = rules.choose(game.seed, ply as u32, visits, target, record.effort);
            let most = visits.iter().max();
            for (place, own) in visits.iter().enumerate() {
                let (leased, changed) = cut((&leased, game), ply, place);
                let expected = match due {
                    Chosen::Place(due) => due == place,
                    Chosen::MostVisited => Some(own) == most,
                };
                let wrong = (ChunkErrorCode::WrongChoice, Some(ply as u32));
                let expected = (!expected).then_some(wrong);
                assert_eq!(refusal(&[changed], &leased), expected);
                refused += u32::from(expected.is_some());
                left_to_audits += u32::from(expected.is_none());
            }
            left_to_audits -= 1;
        }
    }
    assert!(
        left_to_audits * 10 < refused,
        "{left_to_audits} of {refused}"
    );
}

#[test]
fn other_efforts_ends_and_openings_are_refused() {
    for (leased, games) in ways() {
        for game in &games {
            let refused = |change: &dyn Fn(&mut GameRecord)| {
                let mut changed = game.clone();
                change(&mut changed);
                refusal(&[changed], &leased).map(|(code, _)| code)
            };
            let effort = refused(&|game| {
                let ply = &mut game.plies[0];
                (ply.effort, ply.target) = match ply.effort {
                    Effort::Full => (Effort::Fast, None),
                    Effort::Fast => (Effort::Full, ply.target.clone()),
                };
            });
            // Whether there has to be a target follows from the effort, too.
            let expected = [ChunkErrorCode::WrongEffort, ChunkErrorCode::BadTarget];
            assert!(
                effort.is_some_and(|code| expected.contains(&code)),
                "{effort:?}"
            );
            let play_on = refused(&|game| {
                if let GameKind::SelfPlay { play_on } = &mut game.kind {
                    *play_on = !*play_on;
                }
            });
            assert_eq!(play_on, Some(ChunkErrorCode::WrongPlayOn));
            if game.plies.len() > 2 {
                let shorter = refused(&|game| {
                    game.plies.pop();
                    game.end.termination = Termination::Resignation;
                    game.end.result = rookery_common::chess::GameResult::WhiteWins;
                });
                assert!(shorter.is_some(), "it goes on after that");
            }
            let by_searches = [Termination::Resignation, Termination::Adjudication];
            if by_searches.contains(&game.end.termination) {
                let limit = refused(&|game| game.end = GameEnd::draw(Termination::PlyLimit));
                assert_eq!(limit, Some(ChunkErrorCode::FalseTermination));
            }
            if game.start.moves.len() == 3 {
                let mut fewer = leased.clone();
                if let jobs::Work::SelfPlay { params, .. } = &mut fewer {
                    params.opening_plies = 2;
                }
                let code = refusal(std::slice::from_ref(game), &fewer).map(|(code, _)| code);
                assert_eq!(code, Some(ChunkErrorCode::WrongStart));
            }
        }
    }
}
