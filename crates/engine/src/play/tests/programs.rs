//! Matches against programs.

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::Program;
use rookery_common::params::AdjudicationParams;

use super::contests::{match_job, quick_match};
use super::*;
use crate::evaluator::EvaluatorError;

const PROGRAMS: [Program; 2] = [Program::Random, Program::alpha_beta(2)];

/// Nobody may ask it.
struct Unasked;

impl Evaluator for Unasked {
    fn input(&self) -> InputEncoding {
        InputEncoding::Classic19
    }

    fn policy(&self) -> PolicyEncoding {
        PolicyEncoding::Lc01858
    }

    fn evaluate(&mut self, _: &Batch, _: &mut Evaluations) -> Result<(), EvaluatorError> {
        Err(EvaluatorError("a program needs no evaluation".to_owned()))
    }
}

/// Plays a match of the hand-made evaluator against a program.
fn against(program: Program, params: MatchParams, concurrency: usize) -> Vec<GameRecord> {
    let job = match_job(params, 3);
    let pool = GamePool::new(&job, concurrency, &[]).unwrap();
    let mut pool = pool.with_programs([None, Some(program)]);
    let mut hand = HandEvaluator::default();
    let mut records = pool.run(&mut [&mut hand, &mut Unasked]).unwrap();
    records.sort_by_key(|record| record.index);
    records
}

fn candidate(record: &GameRecord) -> Side {
    match record.kind {
        GameKind::Match { candidate, .. } => candidate,
        _ => unreachable!("a match"),
    }
}

#[test]
fn a_program_moves_where_it_is_its_turn_and_is_never_evaluated_for() {
    for program in PROGRAMS {
        let records = against(program, quick_match(), 4);
        assert_eq!(records.len(), 6);
        for record in &records {
            check_record(record, 40, &RootSearch::Puct);
            let mut game = record.start.history().unwrap();
            for ply in &record.plies {
                if Side::from(game.turn()) != candidate(record) {
                    assert_eq!(ply.effort, Effort::Full);
                    assert_eq!(ply.visits.iter().sum::<u32>(), 1, "of the move played");
                    assert_eq!((ply.root_q, ply.root_draw, ply.best_q), (0.0, 0.0, 0.0));
                }
                game.push(ply.played);
            }
        }
        assert_eq!(against(program, quick_match(), 1), records, "{program}");
    }
}

#[test]
fn a_program_has_either_seat_or_both() {
    let job = match_job(quick_match(), 2);
    let pool = |programs| GamePool::new(&job, 4, &[]).unwrap().with_programs(programs);
    let [random, searcher] = PROGRAMS.map(Some);
    let mut hand = HandEvaluator::default();
    let games = pool([random, None]).run(&mut [&mut Unasked, &mut hand]);
    let score = |record: &GameRecord| record.end.result.score_for(candidate(record).into());
    let total: i8 = games.unwrap().iter().map(score).sum();
    assert!(total <= 0, "{total}");
    let games = pool([searcher, random]).run(&mut [&mut Unasked, &mut Unasked]);
    let total: i8 = games.unwrap().iter().map(score).sum();
    assert!(total > 0, "{total}");
}

#[test]
fn the_random_mover_differs_from_game_to_game() {
    let games = [(); 6].map(|()| MatchGame {
        pair: 0,
        candidate: Side::Black,
        start: GameStart::default(),
    });
    let params = MatchParams {
        ply_limit: 10,
        ..quick_match()
    };
    let work = Work::Match {
        params,
        games: planned(games),
    };
    let job = Job {
        seed: Seed(9),
        work,
    };
    let pool = GamePool::new(&job, 6, &[]).unwrap();
    let mut pool = pool.with_programs([Some(Program::Random); 2]);
    let games = pool.run(&mut [&mut Unasked, &mut Unasked]).unwrap();
    let first: Vec<_> = games.iter().map(|game| game.plies[0].played).collect();
    assert!(first.iter().any(|m| *m != first[0]), "{first:?}");
}

#[test]
fn expecting_nothing_a_program_never_agrees_that_a_game_is_decided() {
    let params = MatchParams {
        adjudication: Some(AdjudicationParams {
            win_value: 0.5,
            plies: 2,
            engine: None,
        }),
        ..quick_match()
    };
    for record in against(Program::Random, params, 4) {
        assert_ne!(record.end.termination, Termination::Adjudication);
    }
}

#[test]
fn a_game_of_one_network_has_no_seat_for_a_program() {
    let job = self_play(quick(), 2);
    let plain = play(&job);
    let pool = GamePool::new(&job, 2, &[]).unwrap();
    let mut pool = pool.with_programs([Some(Program::Random), None]);
    let mut hand = HandEvaluator::default();
    let mut records = pool.run(&mut [&mut hand]).unwrap();
    records.sort_by_key(|record| record.index);
    assert_eq!(records, plain);
}
