//! Requests that come at once and are served together: as if they had come one after the other.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::SignedDuration;
use rookery_common::chess::{GameResult, Termination};
use rookery_common::chunk::Side;
use rookery_common::ids::{ContentHash, JobId, Seed, UserId};
use rookery_common::protocol::jobs::{Job, Work};
use rookery_common::protocol::people::Scope;
use rookery_coordinator::db::{
    ChunkAccepted, ChunkDraft, DbError, GameFact, GameFactDetail, GameRefusal, LeaseQuotas,
    SharedDatabase, TokenDraft,
};
use rookery_coordinator::tokens::Token;
use rookery_coordinator::trust::verdict::Auditor;
use uuid::Uuid;

use super::{chances, name, network, request, run, user};
use crate::support::app::params;
use crate::support::{by, noon};

/// Plies of every game here.
const PLIES: u32 = 7;

/// A run with a network, and contributors.
async fn contributors(db: &SharedDatabase, count: usize) -> Vec<UserId> {
    run(db, "a", params()).await;
    let mut users = Vec::new();
    for number in 0..count {
        users.push(user(db, &format!("user{number}")).await);
    }
    let first = network("a", users[0], 0);
    db.submit_network(first, noon()).await.unwrap();
    users
}

async fn lease(db: &SharedDatabase, user: UserId, job: u128) -> Job {
    let asked = request(user, chances(job, 0.9));
    db.lease(asked, noon()).await.unwrap().unwrap()
}

fn game(index: u32, fingerprint: u128) -> GameFact {
    GameFact {
        index,
        result: GameResult::Draw,
        termination: Termination::FiftyMove,
        plies: PLIES,
        opening: None,
        fingerprint: Some(fingerprint.to_be_bytes()),
        detail: GameFactDetail::SelfPlay,
    }
}

fn chunk(user: UserId, job: JobId, content: u128, games: Vec<GameFact>) -> ChunkDraft {
    ChunkDraft {
        hash: ContentHash::of(&content.to_be_bytes()),
        bytes: 100,
        user,
        job,
        backend: "uniform".to_owned(),
        worker_version: "v".to_owned(),
        games,
        searches: None,
        chance: 0.0,
        opinion: None,
        auditor: Auditor::Volunteer,
    }
}

/// Sends all of them at once, by clocks of which each is ten minutes ahead of the one before: hours
/// and a day end among them. They are one batch, which none of them ends.
async fn send(db: &SharedDatabase, chunks: Vec<ChunkDraft>) -> Vec<Result<ChunkAccepted, DbError>> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let lines = Arc::new(log.reopen().unwrap());
    let lines = tracing_subscriber::fmt().with_writer(lines).finish();
    let listening = tracing::subscriber::set_default(lines);
    let sending: Vec<_> = (0..)
        .zip(chunks)
        .map(|(place, chunk)| {
            let db = db.clone();
            let now = noon() + SignedDuration::from_mins(10 * place);
            tokio::spawn(async move { db.accept_chunk(chunk, now).await })
        })
        .collect();
    let mut answers = Vec::new();
    for answer in sending {
        answers.push(answer.await.unwrap());
    }
    drop(listening);
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(!log.contains("one by one"), "{log}");
    answers
}

async fn assert_consistent(db: &SharedDatabase, chunks: u64, games: u64) {
    let info = db.run(&name("a")).await.unwrap();
    assert_eq!((info.chunks, info.games), (chunks, games));
    assert_eq!(info.training_positions, games * u64::from(PLIES));
    assert_eq!(info.chunk_bytes, 100 * chunks);
    let wrong = db.check(&name("a")).await.unwrap().discrepancies;
    assert!(wrong.is_empty(), "{wrong:?}");
}

pub(super) async fn chunks_at_once_count_once_each(db: SharedDatabase) {
    let users = contributors(&db, 3).await;
    let mut chunks = Vec::new();
    for number in 0..60_u128 {
        let who = users[number as usize % 3];
        let job = lease(&db, who, number).await.id;
        let games = vec![game(0, 2 * number), game(1, 2 * number + 1)];
        chunks.push(chunk(who, job, number, games));
    }
    // Two chunks of one job, and every third chunk twice.
    let first = &chunks[0];
    chunks.push(chunk(first.user, first.job, 1000, vec![game(2, 1000)]));
    let again: Vec<ChunkDraft> = chunks[..60].iter().step_by(3).cloned().collect();
    chunks.extend(again);
    let answers = send(&db, chunks).await;
    let receipts: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.unwrap().receipt)
        .collect();
    let new: HashSet<i64> = receipts
        .iter()
        .filter(|receipt| !receipt.duplicate)
        .map(|receipt| receipt.sequence)
        .collect();
    assert_eq!((receipts.len(), new.len()), (81, 61));
    assert!(
        receipts
            .iter()
            .all(|receipt| new.contains(&receipt.sequence))
    );
    assert_consistent(&db, 61, 121).await;
}

pub(super) async fn a_refused_chunk_takes_no_other_with_it(db: SharedDatabase) {
    let users = contributors(&db, 2).await;
    let (ann, bob) = (users[0], users[1]);
    let mut chunks = Vec::new();
    for number in 0..40_u128 {
        let job = lease(&db, ann, number).await.id;
        // Ten of them hold the same game.
        let print = if number % 4 == 0 { 9999 } else { number };
        chunks.push(chunk(ann, job, number, vec![game(0, print)]));
    }
    // The same index of one job in two chunks, a job that nobody has, and one that is another's.
    let job = lease(&db, ann, 100).await.id;
    chunks.push(chunk(ann, job, 100, vec![game(0, 100)]));
    chunks.push(chunk(ann, job, 101, vec![game(0, 101)]));
    let nobodys = JobId(Uuid::from_u128(12345));
    chunks.push(chunk(ann, nobodys, 102, vec![game(0, 102)]));
    chunks.push(chunk(bob, job, 103, vec![game(1, 103)]));
    let mut counts = [0; 4];
    for answer in send(&db, chunks).await {
        let which = match answer {
            Ok(_) => 0,
            Err(DbError::Game { game: 0, reason }) => match reason {
                GameRefusal::Duplicate => 1,
                GameRefusal::IndexCounted => 2,
            },
            Err(DbError::NotFound(_)) => 3,
            Err(other) => panic!("{other}"),
        };
        counts[which] += 1;
    }
    assert_eq!(counts, [32, 9, 1, 2]);
    assert_consistent(&db, 32, 32).await;
}

fn match_game(pair: u32, candidate: Side) -> GameFact {
    GameFact {
        index: 2 * pair + candidate as u32,
        detail: GameFactDetail::Match { pair, candidate },
        fingerprint: None,
        ..game(0, 0)
    }
}

/// A pair whose lease was over is another's. Its games come late, among good ones.
pub(super) async fn a_late_game_breaks_no_batch(db: SharedDatabase) {
    let users = contributors(&db, 2).await;
    let (ann, bob) = (users[0], users[1]);
    let mut chunks = Vec::new();
    for number in 0..3_u128 {
        let job = lease(&db, ann, number).await.id;
        chunks.push(chunk(ann, job, number, vec![game(0, number)]));
    }
    db.submit_network(network("a", ann, 1), noon())
        .await
        .unwrap();
    for (number, user) in [(10, ann), (11, bob)] {
        let now = noon() + SignedDuration::from_mins(5 * (number as i64 - 10));
        let asked = request(user, chances(number, 0.0));
        let job = db.lease(asked, now).await.unwrap().unwrap();
        let Work::Match { pairs, .. } = &job.work else {
            panic!("no match: {:?}", job.work)
        };
        assert_eq!(pairs[0].pair, 0, "she has lost it");
        let games = [Side::White, Side::Black].map(|side| match_game(0, side));
        chunks.push(chunk(user, job.id, number, games.to_vec()));
    }
    let answers = send(&db, chunks).await;
    let late: Vec<_> = answers.iter().map(Result::is_err).collect();
    assert_eq!(late, [false, false, false, true, false]);
    assert!(matches!(answers[3], Err(DbError::LeaseEnded(_))));
    let wrong = db.check(&name("a")).await.unwrap().discrepancies;
    assert!(wrong.is_empty(), "{wrong:?}");
}

pub(super) async fn a_quota_holds_for_those_who_ask_at_once(db: SharedDatabase) {
    let users = contributors(&db, 2).await;
    let (ann, bob) = (users[0], users[1]);
    let asking: Vec<_> = (0..40)
        .map(|number| {
            let mut asked = request(ann, chances(number, 0.9));
            asked.request.worker = format!("w{}", number % 2);
            asked.quotas = LeaseQuotas {
                contributor: Some(5),
                worker: Some(3),
            };
            if number % 4 == 3 {
                asked = request(bob, chances(number, 0.9));
            }
            if number == 11 {
                asked.request.run = Some(name("missing"));
            }
            let db = db.clone();
            tokio::spawn(async move { db.lease(asked, noon()).await })
        })
        .collect();
    let mut counts = [0; 3];
    let mut jobs = HashSet::new();
    for job in asking {
        let which = match job.await.unwrap() {
            Ok(job) => {
                jobs.insert(job.unwrap().id);
                0
            }
            Err(DbError::TooManyLeases { .. }) => 1,
            Err(DbError::NotFound(_)) => 2,
            Err(other) => panic!("{other}"),
        };
        counts[which] += 1;
    }
    assert_eq!(counts, [5 + 9, 25, 1]);
    assert_eq!(jobs.len(), 14, "every job is another one");
    for id in jobs {
        assert_eq!(db.leased_job(id).await.unwrap().seed, Seed(u64::MAX));
    }
}

/// An auditor does not audit its own games, but those of others who ask at the same time.
pub(super) async fn newcomers_get_small_jobs_whoever_asks_with_them(db: SharedDatabase) {
    let users = contributors(&db, 2).await;
    let (ann, bob) = (users[0], users[1]);
    let token = TokenDraft {
        hash: Token::generate().unwrap().hash(),
        scopes: vec![Scope::Audit],
        machine: "m".to_owned(),
    };
    db.add_token("user0", token, by("operator")).await.unwrap();
    lease(&db, ann, 0).await;
    let games = async |user: UserId, job: u128| {
        let mut asked = request(user, chances(job, 0.9));
        asked.request.concurrent_games = 1_000;
        let job = db.lease(asked, noon()).await.unwrap().unwrap();
        job.work.games()
    };
    let (of_ann, of_bob) = tokio::join!(games(ann, 1), games(bob, 2));
    let usual = params().scheduling.selfplay_games;
    assert!(of_ann > usual, "{of_ann}");
    assert_eq!(of_bob, usual);
}
