//! Many games at once: stopping, answers, jobs that are refused.

use super::*;

#[test]
fn stopping_finishes_the_games_in_hand() {
    let mut pool = GamePool::new(&self_play(quick(), 10), 2, &[]).unwrap();
    let mut evaluator = HandEvaluator::default();
    let mut batches = [Batch::new(evaluator.input(), evaluator.policy())];
    pool.gather(&mut batches);
    assert_eq!(batches[0].len(), 2);
    pool.stop_new();
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batches[0], &mut answer).unwrap();
    pool.apply(&[answer]).unwrap();
    assert_eq!(pool.run(&mut [&mut evaluator]).unwrap().len(), 2);
    assert!(pool.done());
}

#[test]
fn answers_that_do_not_fit_are_refused_and_can_be_repeated() {
    let mut pool = GamePool::new(&self_play(quick(), 2), 2, &[]).unwrap();
    let mut evaluator = HandEvaluator::default();
    let mut batches = [Batch::new(evaluator.input(), evaluator.policy())];
    pool.gather(&mut batches);
    let mut answer = Evaluations::default();
    assert!(pool.apply(&[]).is_err());
    assert!(pool.apply(&[answer.clone()]).is_err());
    evaluator.evaluate(&batches[0], &mut answer).unwrap();
    let mut bad = answer.clone();
    bad.logits[3] = f32::NAN;
    assert!(pool.apply(&[bad]).is_err());
    pool.apply(&[answer]).unwrap();
    assert_eq!(pool.run(&mut [&mut evaluator]).unwrap().len(), 2);
}

#[test]
fn bad_jobs_are_refused() {
    let refused = |job: &Job| GamePool::new(job, 1, &[]).map(drop).unwrap_err();
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
