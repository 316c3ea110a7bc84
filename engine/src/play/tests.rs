//! Games come out right and reproducibly.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameHistory, GameResult, Termination};
use rookery_common::chunk::record::{Effort, GameKind, GameRecord, GameStart, Side};
use rookery_common::ids::Seed;
use rookery_common::params::{
    AdjudicationParams, GumbelParams, MatchParams, PuzzleParams, ResignParams, RootSearch,
    SearchParams, SelfPlayParams, Temperature,
};
use rookery_common::puzzle::Puzzle;
use std::sync::Arc;

use super::*;
use crate::cache::EvaluationCache;
use crate::dummy::{HandEvaluator, UniformEvaluator};
use crate::evaluator::{Batch, Evaluations, Evaluator};

fn planned<G>(games: impl IntoIterator<Item = G>) -> Vec<Planned<G>> {
    (0..)
        .zip(games)
        .map(|(index, game)| Planned { index, game })
        .collect()
}

fn self_play(params: SelfPlayParams, games: usize) -> Job {
    let games = planned(vec![GameStart::default(); games]);
    Job {
        seed: Seed(42),
        work: Work::SelfPlay { params, games },
    }
}

fn quick() -> SelfPlayParams {
    SelfPlayParams {
        search: SearchParams {
            visits: 12,
            ..SearchParams::default()
        },
        ply_limit: 60,
        ..SelfPlayParams::default()
    }
}

/// Plays a job to its end; the records by index.
fn play_with(job: &Job, concurrency: usize, cache: usize) -> (Vec<GameRecord>, Progress) {
    let caches = [(); 2].map(|()| Arc::new(EvaluationCache::new(cache)));
    let caches = if cache == 0 { &[][..] } else { &caches[..] };
    let mut table = Table::new(job, concurrency, caches).unwrap();
    let (mut hand, mut uniform) = (HandEvaluator::default(), UniformEvaluator::default());
    let mut records = table.run(&mut [&mut hand, &mut uniform]).unwrap();
    assert!(table.done());
    records.sort_by_key(|record| record.index);
    (records, table.progress())
}

fn play(job: &Job) -> Vec<GameRecord> {
    play_with(job, 4, 0).0
}

/// Replays a record: moves legal, visits sound, the end true.
fn check_record(record: &GameRecord, visits: u32, search: &RootSearch) {
    let mut game = record.start.history().unwrap();
    for ply in &record.plies {
        assert_eq!(game.end(), None);
        let legal = canonical_moves(game.position());
        assert_eq!(ply.visits.len(), legal.len());
        let played = legal.iter().position(|m| *m == ply.played).expect("legal");
        assert!(ply.visits[played] > 0, "only what was visited is played");
        assert!((1..=visits).contains(&ply.visits.iter().sum()));
        assert!((-1.0..=1.0).contains(&ply.root_q) && (-1.0..=1.0).contains(&ply.best_q));
        assert!((0.0..=1.0).contains(&ply.root_draw));
        let gumbel = matches!(search, RootSearch::Gumbel(_));
        assert_eq!(ply.target.is_some(), gumbel && ply.effort == Effort::Full);
        if let Some(target) = &ply.target {
            assert_eq!(target.len(), legal.len());
            let sum: u32 = target.iter().map(|weight| u32::from(*weight)).sum();
            assert!((400..600).contains(&sum), "500 units, rounded: {sum}");
        }
        game.push(ply.played);
    }
    let by_rule = [
        Termination::Resignation,
        Termination::Adjudication,
        Termination::PlyLimit,
    ];
    if !by_rule.contains(&record.end.termination) {
        assert_eq!(game.end(), Some(record.end));
    }
}

#[test]
fn self_play_games_are_sound_and_no_more_than_planned() {
    let gumbel = RootSearch::Gumbel(GumbelParams {
        considered: 4,
        ..GumbelParams::default()
    });
    for root in [RootSearch::Puct, gumbel] {
        let mut params = quick();
        params.search.root = root.clone();
        params.opening_plies = 3;
        params.full_search_share = 0.5;
        params.fast_visits = 5;
        let (records, progress) = play_with(&self_play(params, 9), 4, 0);
        assert!(records.iter().map(|record| record.index).eq(0..9));
        for record in &records {
            check_record(record, 12, &root);
            assert_eq!(record.start.moves.len(), 3);
            assert_eq!(record.seed, Seed(42).of_game(record.index));
        }
        let plies: usize = records.iter().map(|record| record.plies.len()).sum();
        assert_eq!((progress.finished, progress.positions), (9, plies as u64));
        // A visit is an evaluation or a known end; the opening is evaluated without visits.
        assert!(progress.visits >= progress.evaluations);
        assert!(progress.visits <= plies as u64 * 13 + 9 * 4);
        let fast = records
            .iter()
            .flat_map(|r| &r.plies)
            .filter(|p| p.effort == Effort::Fast);
        assert!(
            (plies / 3..2 * plies / 3).contains(&fast.count()),
            "about half are fast"
        );
    }
}

#[test]
fn games_depend_on_their_seed_only() {
    let job = self_play(quick(), 7);
    let (alone, _) = play_with(&job, 1, 0);
    let (together, _) = play_with(&job, 7, 0);
    assert_eq!(alone, together, "not on how many run");
    let (cached, progress) = play_with(&job, 3, 10_000);
    assert_eq!(alone, cached, "not on the cache");
    assert!(progress.cache_hits > 0);
    let last = Planned {
        index: 5,
        game: GameStart::default(),
    };
    let one = Job {
        work: Work::SelfPlay {
            params: quick(),
            games: vec![last],
        },
        ..job
    };
    assert_eq!(play(&one)[0], alone[5], "not on the other games");
    assert_ne!(alone[0].plies, alone[1].plies, "other seeds, other games");
}

#[test]
fn every_visit_is_an_evaluation_a_hit_or_a_known_end() {
    let mut params = quick();
    params.ply_limit = 10;
    let (_, progress) = play_with(&self_play(params, 3), 3, 10_000);
    assert!(progress.visits >= progress.evaluations + progress.cache_hits);
    assert!(progress.evaluations > 0);
}

#[test]
fn a_lost_side_resigns_unless_the_game_is_played_on() {
    let start = GameStart {
        fen: Some("3qk3/8/8/8/8/8/P7/4K3 w - - 0 1".into()),
        moves: vec![],
    };
    let job = |play_on_share| {
        let resign = Some(ResignParams {
            threshold: -0.5,
            play_on_share,
        });
        let params = SelfPlayParams {
            resign,
            temperature: Temperature::NONE,
            ..quick()
        };
        let games = planned(vec![start.clone(); 4]);
        Job {
            seed: Seed(1),
            work: Work::SelfPlay { params, games },
        }
    };
    for record in play(&job(0.0)) {
        assert_eq!(record.end.termination, Termination::Resignation);
        assert_eq!(record.end.result, GameResult::BlackWins);
        assert_eq!(record.kind, GameKind::SelfPlay { play_on: false });
        check_record(&record, 12, &RootSearch::Puct);
    }
    for record in play(&job(1.0)) {
        assert_ne!(record.end.termination, Termination::Resignation);
        assert_eq!(record.kind, GameKind::SelfPlay { play_on: true });
    }
}

#[test]
fn the_ply_limit_makes_a_draw() {
    let params = SelfPlayParams {
        ply_limit: 10,
        ..quick()
    };
    for record in play(&self_play(params, 3)) {
        assert_eq!(record.plies.len(), 10);
        assert_eq!(record.end, GameEnd::draw(Termination::PlyLimit));
    }
}

fn puzzle(id: &str, fen: &str, moves: &str, setup: u32) -> Puzzle {
    let moves = moves.split_whitespace().map(str::to_owned).collect();
    Puzzle {
        id: id.into(),
        fen: fen.into(),
        moves,
        setup,
        rating: 0,
        themes: Vec::new(),
    }
}

#[test]
fn puzzles_are_solved_or_not() {
    let mate = puzzle("mate", "5k2/5ppp/8/8/8/8/8/R3K3 b - - 0 1", "f8g8 a1a8", 1);
    // The solution does not take the queen: nobody plays that.
    let absurd = puzzle(
        "absurd",
        "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1",
        "e4e5 d5e5 e1f1",
        0,
    );
    let params = PuzzleParams {
        search: SearchParams {
            visits: 100,
            ..SearchParams::default()
        },
        ply_limit: 6,
        ..PuzzleParams::default()
    };
    let work = Work::Puzzles {
        params,
        games: planned([mate, absurd]),
    };
    let records = play(&Job {
        seed: Seed(3),
        work,
    });
    let solved = |name: &str, solved| GameKind::Puzzle {
        puzzle: name.into(),
        solved,
    };
    assert_eq!(records[0].kind, solved("mate", true));
    assert_eq!(records[0].start.moves.len(), 1);
    assert_eq!(records[0].end.termination, Termination::Checkmate);
    assert_eq!(records[1].kind, solved("absurd", false));
    records
        .iter()
        .for_each(|record| check_record(record, 100, &RootSearch::Puct));
}

fn match_job(params: MatchParams, pairs: u32) -> Job {
    let mut opening = GameHistory::default();
    let mut games = Vec::new();
    for pair in 0..pairs {
        let m = canonical_moves(opening.position())[pair as usize];
        opening = GameHistory::default();
        let start = GameStart {
            fen: None,
            moves: vec![m],
        };
        for candidate in [Side::White, Side::Black] {
            games.push(MatchGame {
                pair,
                candidate,
                start: start.clone(),
            });
        }
    }
    Job {
        seed: Seed(9),
        work: Work::Match {
            params,
            games: planned(games),
        },
    }
}

fn quick_match() -> MatchParams {
    let search = SearchParams {
        visits: 40,
        ..MatchParams::default().search
    };
    MatchParams {
        search,
        ply_limit: 120,
        ..MatchParams::default()
    }
}

#[test]
fn the_better_evaluator_wins_the_match_with_both_colours() {
    let adjudication = Some(AdjudicationParams {
        win_value: 0.6,
        plies: 4,
    });
    let job = match_job(
        MatchParams {
            adjudication,
            ..quick_match()
        },
        4,
    );
    let score = |record: &GameRecord| {
        let GameKind::Match { candidate, .. } = record.kind else {
            unreachable!("a match")
        };
        record.end.result.score_for(candidate.into())
    };
    let records = play(&job);
    assert_eq!(records.len(), 8);
    let total: i8 = records.iter().map(score).sum();
    assert!(total >= 4, "{total}");
    assert!(records.iter().all(|record| score(record) >= 0));
    records
        .iter()
        .for_each(|record| check_record(record, 40, &RootSearch::Puct));
    assert_eq!(
        play_with(&job, 8, 10_000).0,
        records,
        "no chance is involved"
    );
}

#[test]
fn a_game_is_adjudicated_when_both_agree() {
    let fen = "3qk3/8/8/8/8/8/P7/4K3 w - - 0 1";
    let start = GameStart {
        fen: Some(fen.into()),
        moves: vec![],
    };
    let adjudication = Some(AdjudicationParams {
        win_value: 0.5,
        plies: 4,
    });
    let params = MatchParams {
        adjudication,
        ..quick_match()
    };
    let game = MatchGame {
        pair: 0,
        candidate: Side::White,
        start,
    };
    let job = Job {
        seed: Seed(9),
        work: Work::Match {
            params,
            games: planned([game]),
        },
    };
    // Both sides evaluate alike here.
    let mut table = Table::new(&job, 1, &[]).unwrap();
    let (mut a, mut b) = (HandEvaluator::default(), HandEvaluator::default());
    let records = table.run(&mut [&mut a, &mut b]).unwrap();
    assert_eq!(records[0].end.termination, Termination::Adjudication);
    assert_eq!(records[0].end.result, GameResult::BlackWins);
    assert_eq!(records[0].plies.len(), 4);
}

#[test]
fn stopping_finishes_the_games_in_hand() {
    let mut table = Table::new(&self_play(quick(), 10), 2, &[]).unwrap();
    let mut evaluator = HandEvaluator::default();
    let mut batches = [Batch::new(evaluator.input(), evaluator.policy())];
    table.gather(&mut batches);
    assert_eq!(batches[0].len(), 2);
    table.stop_new();
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batches[0], &mut answer).unwrap();
    table.apply(&[answer]).unwrap();
    assert_eq!(table.run(&mut [&mut evaluator]).unwrap().len(), 2);
    assert!(table.done());
}

#[test]
fn answers_that_do_not_fit_are_refused_and_can_be_repeated() {
    let mut table = Table::new(&self_play(quick(), 2), 2, &[]).unwrap();
    let mut evaluator = HandEvaluator::default();
    let mut batches = [Batch::new(evaluator.input(), evaluator.policy())];
    table.gather(&mut batches);
    let mut answer = Evaluations::default();
    assert!(table.apply(&[]).is_err());
    assert!(table.apply(&[answer.clone()]).is_err());
    evaluator.evaluate(&batches[0], &mut answer).unwrap();
    let mut bad = answer.clone();
    bad.logits[3] = f32::NAN;
    assert!(table.apply(&[bad]).is_err());
    table.apply(&[answer]).unwrap();
    assert_eq!(table.run(&mut [&mut evaluator]).unwrap().len(), 2);
}

#[test]
fn bad_jobs_are_refused() {
    let refused = |job: &Job| Table::new(job, 1, &[]).map(drop).unwrap_err();
    let start = |fen: &str| GameStart {
        fen: Some(fen.into()),
        moves: vec![],
    };
    let job = |game| {
        let games = planned([GameStart::default(), game]);
        Job {
            seed: Seed(1),
            work: Work::SelfPlay {
                params: quick(),
                games,
            },
        }
    };
    assert!(matches!(
        refused(&job(start("?"))),
        JobError::Start { index: 1, .. }
    ));
    let over = start("7k/5KQ1/8/8/8/8/8/8 b - - 0 1");
    assert!(matches!(refused(&job(over)), JobError::Over { index: 1 }));
    let m = canonical_moves(GameHistory::default().position())[0];
    let twice = GameStart {
        fen: None,
        moves: vec![m, m],
    };
    assert!(matches!(
        refused(&job(twice)),
        JobError::Move { index: 1, place: 1 }
    ));
    let mut double = self_play(quick(), 2);
    if let Work::SelfPlay { games, .. } = &mut double.work {
        games[1].index = 0;
    }
    assert!(matches!(refused(&double), JobError::Twice { index: 0 }));
    let mut params = quick();
    params.search.visits = 0;
    assert!(matches!(
        refused(&self_play(params, 1)),
        JobError::Params(_)
    ));
}
