//! Searches made again are those that were played.

use rookery_common::audit::{Disagreement, Span, compare_span, task, warm_up};
use rookery_common::chunk::{GameRecord, GameStart, Side};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::network::Program;
use rookery_common::params::{
    GumbelParams, MatchParams, ResignParams, RootSearch, SearchParams, SelfPlayParams,
};
use rookery_common::protocol::audits::AuditedRules;

use super::{AuditedGame, GamePool, Job, MatchGame, Work, planned};
use crate::dummy::{HandEvaluator, UniformEvaluator};

/// Who is a program and no network.
type Programs = [Option<Program>; 2];

fn run(seed: u64, work: Work) -> Vec<GameRecord> {
    run_with([None; 2], seed, work)
}

fn run_with(programs: Programs, seed: u64, work: Work) -> Vec<GameRecord> {
    let job = Job {
        seed: Seed(seed),
        work,
    };
    let (mut hand, mut uniform) = (HandEvaluator::default(), UniformEvaluator::default());
    let pool = GamePool::new(&job, 3, &[]).unwrap();
    let mut pool = pool.with_programs(programs);
    let mut games = pool.run(&mut [&mut hand, &mut uniform]).unwrap();
    games.sort_by_key(|game| game.index);
    games
}

/// Makes the searches of a span again, and compares.
fn audit(rules: &AuditedRules, game: &GameRecord, span: Span) -> Disagreement {
    audit_with([None; 2], rules, game, span)
}

fn audit_with(
    programs: Programs,
    rules: &AuditedRules,
    game: &GameRecord,
    span: Span,
) -> Disagreement {
    let audited = AuditedGame::of(&task(game, &span, drawn(rules)).unwrap()).unwrap();
    let work = Work::Audit {
        rules: rules.clone(),
        games: planned([audited]),
    };
    // The job's own seed has no part in it.
    let again = run_with(programs, 999, work).remove(0);
    assert_eq!(again.plies.len() as u32, span.end - span.first);
    assert_eq!(again.seed, game.seed);
    compare_span(game, &span, &again)
}

/// Plies that these games have drawn before their first search.
fn drawn(rules: &AuditedRules) -> u32 {
    match rules {
        AuditedRules::SelfPlay { params, .. } => params.opening_plies,
        AuditedRules::Puzzles { .. } | AuditedRules::Match { .. } => 0,
    }
}

/// Whoever begins as it likes is found out, though all of its searches are honest.
#[test]
fn opening_plies_that_the_seed_does_not_draw_are_found_out() {
    let (rules, games) = self_play(RootSearch::Puct, true);
    let found = audit(&rules, &games[0], whole(&games[0]));
    assert_eq!(found.plies, games[0].plies.len() as u32 + drawn(&rules));
    assert_same(found, "drawn");
    let AuditedRules::SelfPlay { params, .. } = &rules else {
        unreachable!()
    };
    let undrawn = SelfPlayParams {
        opening_plies: 0,
        ..params.clone()
    };
    let mut history = rookery_common::chess::GameHistory::default();
    let mut start = GameStart::default();
    for text in ["g2g4", "h7h5", "f2f3"] {
        let m = rookery_common::chess::moves::parse_uci(history.position(), text).unwrap();
        history.push(m);
        start.moves.push(m);
    }
    let work = Work::SelfPlay {
        params: undrawn,
        games: planned([start]),
    };
    let chosen = run(5, work).remove(0);
    let found = audit(&rules, &chosen, whole(&chosen));
    let wrong = (found.choice * f64::from(found.plies)).round();
    assert!((1.0..=3.0).contains(&wrong), "{found:?}");
    assert_eq!((found.policy, found.visits, found.value), (0.0, 0.0, 0.0));
}

/// Whether nothing at all is apart.
fn assert_same(found: Disagreement, what: &str) {
    let distances = [
        found.policy,
        found.visits,
        found.value,
        found.best,
        found.choice,
    ];
    assert_eq!(distances, [0.0; 5], "{what}");
}

fn whole(game: &GameRecord) -> Span {
    Span {
        game: game.index,
        first: 0,
        compared: 0,
        end: game.plies.len() as u32,
    }
}

fn self_play(root: RootSearch, reuse_tree: bool) -> (AuditedRules, Vec<GameRecord>) {
    let search = SearchParams {
        visits: 40,
        root,
        ..SearchParams::default()
    };
    let starts = vec![GameStart::default(); 3];
    self_play_with(search, reuse_tree, starts)
}

fn self_play_with(
    search: SearchParams,
    reuse_tree: bool,
    starts: Vec<GameStart>,
) -> (AuditedRules, Vec<GameRecord>) {
    let params = SelfPlayParams {
        search,
        full_search_share: 0.5,
        fast_visits: 8,
        reuse_tree,
        opening_plies: 3,
        ply_limit: 80,
        resign: Some(ResignParams::default()),
        ..SelfPlayParams::default()
    };
    let work = Work::SelfPlay {
        params: params.clone(),
        games: planned(starts),
    };
    let network = ContentHash::of(b"network");
    (AuditedRules::SelfPlay { network, params }, run(5, work))
}

#[test]
fn a_whole_game_is_found_as_it_was_played() {
    let gumbel = RootSearch::Gumbel(GumbelParams::default());
    for root in [RootSearch::Puct, gumbel] {
        for reuse in [true, false] {
            let (rules, games) = self_play(root.clone(), reuse);
            for game in &games {
                let found = audit(&rules, game, whole(game));
                assert_same(found, &format!("{root:?} {reuse}"));
            }
        }
    }
}

#[test]
fn a_whole_game_with_the_solver_is_found_as_it_was_played() {
    let gumbel = RootSearch::Gumbel(GumbelParams::default());
    let mut decided = 0;
    for root in [RootSearch::Puct, gumbel] {
        let search = SearchParams {
            visits: 40,
            root: root.clone(),
            solver: true,
            ..SearchParams::default()
        };
        let near_mate = [
            "6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 1",
            "7k/8/8/6K1/8/8/8/RR6 w - - 0 1",
            "k7/8/8/8/8/8/6R1/K6R w - - 0 1",
        ];
        let starts = near_mate.map(|fen| GameStart {
            fen: Some(fen.to_owned()),
            moves: Vec::new(),
        });
        let (rules, games) = self_play_with(search, true, starts.into());
        for game in &games {
            let found = audit(&rules, game, whole(game));
            assert_same(found, &format!("{root:?}"));
            decided += game.plies.iter().filter(|ply| ply.is_decided()).count();
        }
    }
    assert!(decided > 0, "some results were proven");
}

#[test]
fn a_span_needs_nothing_before_it_but_its_warm_up() {
    let gumbel = RootSearch::Gumbel(GumbelParams::default());
    for (root, reuse) in [(RootSearch::Puct, false), (gumbel, true)] {
        let (rules, games) = self_play(root, reuse);
        assert_eq!(warm_up(&rules), 0);
        let span = Span {
            game: 0,
            first: 20,
            compared: 20,
            end: 28,
        };
        let found = audit(&rules, &games[0], span);
        assert_same(found, "");
    }
    let (rules, games) = self_play(RootSearch::Puct, true);
    let mean = |warm_up: u32| {
        let blocks = games.iter().flat_map(|game| {
            let plies = game.plies.len() as u32;
            (8..plies).step_by(8).map(move |compared| {
                let span = Span {
                    game: game.index,
                    first: compared - warm_up,
                    compared,
                    end: (compared + 8).min(plies),
                };
                (game, span)
            })
        });
        blocks.fold(Disagreement::default(), |sum, (game, span)| {
            sum.and(audit(&rules, game, span))
        })
    };
    let (cold, warm) = (mean(0), mean(warm_up(&rules)));
    assert!(warm.policy < 1e-3, "{warm:?}");
    assert!(cold.policy > 2.0 * warm.policy, "{warm:?} {cold:?}");
}

#[test]
fn both_sides_of_a_match_are_found() {
    let (rules, games) = a_match([None; 2]);
    for game in &games {
        let found = audit(&rules, game, whole(game));
        assert_same(found, "");
    }
}

#[test]
fn what_a_program_played_is_found_from_any_ply_on() {
    let sometimes = Program::AlphaBeta {
        depth: 1,
        random: 50,
    };
    for program in [Program::Random, Program::alpha_beta(1), sometimes] {
        let programs = [None, Some(program)];
        let (rules, games) = a_match(programs);
        for game in &games {
            let found = audit_with(programs, &rules, game, whole(game));
            assert_same(found, &program.to_string());
            // The program's plies alone need no warm-up.
            let theirs = usize::from(game.index == 0) + 4;
            let span = Span {
                game: game.index,
                first: theirs as u32,
                compared: theirs as u32,
                end: theirs as u32 + 1,
            };
            let found = audit_with(programs, &rules, game, span);
            assert_same(found, &program.to_string());
        }
    }
}

/// Whoever plays other moves in the program's place is found out.
#[test]
fn another_program_in_its_place_is_found_out() {
    let random = [None, Some(Program::Random)];
    let (rules, games) = a_match(random);
    let searcher = [None, Some(Program::alpha_beta(1))];
    let found = audit_with(searcher, &rules, &games[0], whole(&games[0]));
    assert!(found.policy > 0.25, "{found:?}");
}

/// Two games of a match, one with each side.
fn a_match(programs: Programs) -> (AuditedRules, Vec<GameRecord>) {
    let params = MatchParams {
        search: SearchParams {
            visits: 30,
            ..SearchParams::default()
        },
        ply_limit: 60,
        ..MatchParams::default()
    };
    let games = [Side::White, Side::Black].map(|candidate| MatchGame {
        pair: 0,
        candidate,
        start: GameStart::default(),
    });
    let work = Work::Match {
        params: params.clone(),
        games: planned(games),
    };
    let games = run_with(programs, 8, work);
    let rules = AuditedRules::Match {
        candidate: ContentHash::of(b"hand"),
        opponent: ContentHash::of(b"uniform"),
        params,
    };
    (rules, games)
}
