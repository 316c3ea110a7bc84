//! What somebody tries who has read the code: honest searches in games whose moves, ends or fields were chosen
//! freely. The door refuses what seed and parameters determine, audits find the rest.

use prost::Message as _;
use rookery_common::chess::{GameEnd, GameResult, Termination};
use rookery_common::chunk::{GameRecord, wire};
use rookery_common::params::{
    ForcedPlayouts, GumbelParams, ResignParams, RootSearch, RunParams, Temperature,
};
use rookery_common::play::halving::visit_counts;
use rookery_common::play::quantize;
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::runs::RunInfo;
use rookery_coordinator::trust::plan::plan_waiting;

use crate::support::app::{TestApp, problem, user};
use crate::support::games::Found::Same;
use crate::support::games::Score::{Loss, Win};
use crate::support::games::{audit, chunk, pair_games, selfplay_of};

const FOOLS_MATE: [&str; 4] = ["f2f3", "e7e5", "g2g4", "d8h4"];

/// The code and the ply with which these games are refused, if they are.
async fn refusal(app: &TestApp, job: &Job, games: &[GameRecord]) -> Option<(String, Option<u32>)> {
    refusal_of(app, &chunk(job, games)).await
}

async fn refusal_of(app: &TestApp, bytes: &[u8]) -> Option<(String, Option<u32>)> {
    let answer = app.upload(&app.alice, bytes).await;
    if answer.status().is_success() {
        return None;
    }
    let problem = problem(answer).await;
    Some((problem.chunk_error.unwrap_or_default(), problem.ply))
}

fn at(code: &str, ply: u32) -> (String, Option<u32>) {
    (code.to_owned(), Some(ply))
}

/// Searches that want something else than what is played.
fn recombined(game: &mut GameRecord) {
    for ply in &mut game.plies {
        ply.visits.rotate_right(1);
    }
}

#[tokio::test]
async fn moves_that_the_searches_do_not_give_are_refused() {
    for temperature in [Temperature::NONE, Temperature::default()] {
        let app = TestApp::of_run(1, |params| params.selfplay.temperature = temperature).await;
        let job = app.lease(&app.alice).await;
        let mut game = selfplay_of(&job, 0, &FOOLS_MATE);
        recombined(&mut game);
        let refused = refusal(&app, &job, &[game]).await;
        assert_eq!(refused, Some(at("wrong-choice", 0)));
        assert_eq!(app.get::<RunInfo>("/runs/main").await.games, 0);
    }
}

/// Where both moves were visited it is the seed that chooses.
#[tokio::test]
async fn of_two_visited_moves_the_seed_chooses() {
    let sampled = |params: &mut RunParams| params.selfplay.temperature = Temperature::default();
    let app = TestApp::of_run(1, sampled).await;
    let job = app.lease(&app.alice).await;
    for index in 0..job.work.games() {
        let [first, second] = ["f2f3", "f2f4"].map(|first| {
            let mut moves = FOOLS_MATE;
            moves[0] = first;
            selfplay_of(&job, index, &moves)
        });
        let both = first.plies[0].visits.iter().zip(&second.plies[0].visits);
        let both: Vec<u32> = both.map(|(a, b)| (a + b) / 2).collect();
        let mut refused = Vec::new();
        for mut game in [first, second] {
            game.plies[0].visits.clone_from(&both);
            refused.push(refusal(&app, &job, &[game]).await);
        }
        refused.sort();
        assert_eq!(refused, [None, Some(at("wrong-choice", 0))]);
    }
}

#[tokio::test]
async fn nobody_resigns_a_level_position() {
    let resigns = |params: &mut RunParams| {
        params.selfplay.resign = Some(ResignParams {
            play_on_share: 0.0,
            ..ResignParams::default()
        });
    };
    let app = TestApp::of_run(1, resigns).await;
    let job = app.lease(&app.alice).await;
    let honest = selfplay_of(&job, 0, &FOOLS_MATE);
    let mut level = honest.clone();
    level.plies.truncate(2);
    for result in [GameResult::WhiteWins, GameResult::BlackWins] {
        level.end = GameEnd {
            result,
            termination: Termination::Resignation,
        };
        let refused = refusal(&app, &job, &[level.clone()]).await;
        assert_eq!(refused, Some(("termination-not-allowed".to_owned(), None)));
    }
    // Whose search gives up does not go on.
    let mut lost = honest;
    (lost.plies[1].root_q, lost.plies[1].best_q) = (-0.99, -0.99);
    assert_eq!(
        refusal(&app, &job, &[lost.clone()]).await,
        Some(at("played-past-end", 2))
    );
    lost.plies.truncate(2);
    lost.end = GameEnd {
        result: GameResult::WhiteWins,
        termination: Termination::Resignation,
    };
    assert_eq!(refusal(&app, &job, &[lost]).await, None);
}

/// A match by sequential halving, with honest targets and these visits.
fn gumbel(params: &mut RunParams) {
    params.matches.search.root = RootSearch::Gumbel(GumbelParams::default());
    params.matches.search.visits = 32;
}

/// Spreads the visits as sequential halving does, most of them on the move that is played.
fn halved(game: &mut GameRecord) {
    for ply in &mut game.plies {
        let moves = ply.visits.len();
        let most = ply.visits.iter().max();
        let played = ply.visits.iter().position(|n| Some(n) == most).unwrap();
        let considered = moves.min(GumbelParams::default().considered as usize);
        ply.visits = visit_counts(considered, 32);
        ply.visits.resize(moves, 0);
        ply.visits.rotate_right(played);
        ply.target = Some(quantize(&vec![1.0 / moves as f32; moves]));
    }
}

#[tokio::test]
async fn a_gumbel_match_with_all_visits_on_the_wished_move_is_refused() {
    let app = TestApp::of_run(2, gumbel).await;
    let job = app.lease(&app.alice).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    let mut games = pair_games(&job, 0, [Loss, Win]);
    for game in &mut games {
        let visits: Vec<_> = game.plies.iter().map(|ply| ply.visits.clone()).collect();
        halved(game);
        for (ply, visits) in game.plies.iter_mut().zip(visits) {
            ply.visits = visits;
        }
    }
    assert_eq!(
        refusal(&app, &job, &games).await,
        Some(at("wrong-schedule", 0))
    );
}

/// Who spreads the visits as the schedule says, but for the wished move, has an audit to fear that knows the
/// targets to be honest.
#[tokio::test]
async fn a_gumbel_match_with_most_visits_on_the_wished_move_fails_its_audit() {
    for failed in [0, 1] {
        let app = TestApp::of_run(2, gumbel).await;
        let auditor = user(&app.app, "auditor", &[Scope::Contribute, Scope::Audit]).await;
        let job = app.lease(&app.alice).await;
        let mut games = pair_games(&job, 0, [Loss, Win]);
        games.iter_mut().for_each(halved);
        assert_eq!(refusal(&app, &job, &games).await, None);
        plan_waiting(&app.app).await.unwrap();
        let task = app.lease(&auditor).await;
        assert_eq!(task.work.kind(), WorkKind::Audit);
        let mut again = games.clone();
        if failed == 1 {
            // The auditor's search wants other moves.
            let plies = again.iter_mut().flat_map(|game| &mut game.plies);
            plies.for_each(|ply| ply.visits.reverse());
        }
        app.accepted(&auditor, &audit(&task, &again, Same)).await;
        let alice = app.app.db.trust("alice").await.unwrap();
        // So few positions are only a part of a passed audit.
        assert_eq!((alice.audits_failed, alice.audits_open), (failed, 0));
    }
}

#[tokio::test]
async fn a_match_without_noise_forces_no_playouts() {
    let forced = |params: &mut RunParams| {
        params.matches.search.forced_playouts = Some(ForcedPlayouts::default());
    };
    let app = TestApp::of_run(2, forced).await;
    let job = app.lease(&app.alice).await;
    let mut games = pair_games(&job, 0, [Loss, Win]);
    for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
        // The honest target, beside visits that are said to be forced.
        let mut target: Vec<u16> = ply.visits.iter().map(|n| *n as u16).collect();
        target.fill(1);
        ply.target = Some(target);
        ply.visits.iter_mut().for_each(|n| *n = (*n).max(1));
        let all: u32 = ply.visits.iter().sum();
        let most = ply.visits.iter_mut().max().unwrap();
        *most -= all - 100;
    }
    assert_eq!(refusal(&app, &job, &games).await, Some(at("bad-target", 0)));
}

#[tokio::test]
async fn fields_that_self_play_does_not_use_are_refused() {
    let app = TestApp::of_run(1, |_| {}).await;
    let job = app.lease(&app.alice).await;
    let bytes = chunk(&job, &[selfplay_of(&job, 0, &FOOLS_MATE)]);
    let content = zstd::decode_all(bytes.as_slice()).unwrap();
    let honest = wire::Chunk::decode(content.as_slice()).unwrap();
    let junk: [fn(&mut wire::Game); 5] = [
        |game| game.puzzle = "junk".repeat(150_000),
        |game| game.solved = true,
        |game| game.pair = 7,
        |game| game.candidate_black = true,
        |game| game.chosen = vec![0; 4],
    ];
    for fill in junk {
        let mut chunk = honest.clone();
        fill(&mut chunk.games[0]);
        let bytes = zstd::encode_all(chunk.encode_to_vec().as_slice(), 3).unwrap();
        let refused = refusal_of(&app, &bytes).await;
        assert_eq!(refused, Some(("unused-field".to_owned(), None)));
    }
}
