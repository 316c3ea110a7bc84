//! Lies of workers: every class of bad chunk is refused with its code, and nothing counts.

use anyhow::Context;
use rookery_common::chess::{GameEnd, GameResult, Termination};
use rookery_common::chunk::{ChunkHeader, Effort, GameKind, GameRecord};
use rookery_common::ids::{ContentHash, JobId, Seed};
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_tests::client::Client;
use rookery_tests::on_all_stores;
use rookery_tests::params::tiny;
use rookery_tests::player::{Chunk, header, honest_chunk, play};
use rookery_tests::site::Site;
use rookery_tests::stores::Stores;

on_all_stores!(
    every_lie_is_refused_with_its_code_and_counts_nothing,
    bytes_that_are_no_chunk_are_refused,
    a_chunk_counts_once_and_for_its_contributor,
    games_of_another_job_are_refused,
);

async fn site(stores: Stores) -> anyhow::Result<(Site, Client, Job)> {
    let site = Site::start_on(stores, &tiny()).await?;
    let network = site.random_network("1x8", 1)?;
    site.submit(&network).await?;
    let alice = site.client().register("alice").await?;
    let job = alice.job().await?.context("there is a job")?;
    Ok((site, alice, job))
}

/// A way to lie, and the code that it must get.
type Lie = (&'static str, fn(&mut ChunkHeader, &mut Vec<GameRecord>));

const LIES: &[Lie] = &[
    ("wrong-run", |header, _| {
        header.run = "other".parse().expect("a run's name");
    }),
    ("wrong-networks", |header, _| {
        header.networks = vec![ContentHash::of(b"weaker")];
    }),
    ("wrong-kind", |header, games| {
        header.kind = WorkKind::Puzzles;
        for game in games {
            game.kind = GameKind::Puzzle {
                puzzle: "x".into(),
                solved: true,
            };
        }
    }),
    ("bad-index", |_, games| games[1].index = 1000),
    ("duplicate-index", |_, games| games[1] = games[0].clone()),
    ("wrong-seed", |_, games| games[0].seed = Seed(1)),
    ("wrong-start", |_, games| {
        games[0].start.fen =
            Some("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1".into());
    }),
    ("too-many-visits", |_, games| {
        games[0].plies[0].visits[0] += 1000;
    }),
    ("wrong-effort", |_, games| {
        games[0].plies[0].effort = Effort::Fast;
    }),
    ("too-few-visits", |_, games| {
        let visits = &mut games[0].plies[0].visits;
        let most = visits.iter_mut().max().expect("there are moves");
        *most -= 1;
    }),
    ("wrong-play-on", |_, games| {
        games[0].kind = GameKind::SelfPlay { play_on: true };
    }),
    ("wrong-choice", |_, games| {
        let visits = &mut games[0].plies[0].visits;
        let all = visits.iter().sum();
        let unvisited = visits.iter().position(|n| *n == 0).expect("few visits");
        visits.fill(0);
        visits[unvisited] = all;
    }),
    ("bad-visits", |_, games| games[0].plies[0].visits.fill(0)),
    ("false-termination", |_, games| {
        games[0].plies.truncate(3);
        games[0].end = GameEnd {
            result: GameResult::WhiteWins,
            termination: Termination::Checkmate,
        };
    }),
    ("false-termination", |_, games| {
        games[0].plies.truncate(3);
        games[0].end = GameEnd::draw(Termination::PlyLimit);
    }),
    ("false-termination", |_, games| {
        games[0].plies.clear();
        games[0].end = GameEnd {
            result: GameResult::BlackWins,
            termination: Termination::Resignation,
        };
    }),
    ("false-result", |_, games| {
        games[0].plies.truncate(3);
        games[0].end = GameEnd {
            result: GameResult::WhiteWins,
            termination: Termination::PlyLimit,
        };
    }),
    ("termination-not-allowed", |_, games| {
        games[0].plies.truncate(4);
        games[0].end = GameEnd {
            result: GameResult::BlackWins,
            termination: Termination::Resignation,
        };
    }),
    ("termination-not-allowed", |_, games| {
        games[0].plies.truncate(4);
        games[0].end = GameEnd {
            result: GameResult::BlackWins,
            termination: Termination::Adjudication,
        };
    }),
    ("bad-target", |_, games| {
        for ply in &mut games[0].plies {
            ply.target = match ply.target {
                None => Some(vec![1; ply.visits.len()]),
                Some(_) => None,
            };
        }
    }),
];

async fn every_lie_is_refused_with_its_code_and_counts_nothing(
    stores: Stores,
) -> anyhow::Result<()> {
    let (site, alice, job) = site(stores).await?;
    let honest = play(&job)?;
    for (code, lie) in LIES {
        let (mut header, mut games) = (header(&job), honest.clone());
        lie(&mut header, &mut games);
        let refusal = alice
            .upload(&Chunk::of(&header, &games)?)
            .await?
            .expect_err(code);
        assert_eq!(refusal.code.as_str(), "chunk-refused", "{code}: {refusal}");
        assert_eq!(refusal.chunk_error.as_deref(), Some(*code), "{refusal}");
    }
    assert_eq!(site.run().await?.games, 0);
    let receipt = alice.upload(&Chunk::of(&header(&job), &honest)?).await?;
    assert_eq!(
        receipt.expect("the honest chunk still counts").games,
        job.work.games()
    );
    site.check_ledger()?;
    Ok(())
}

async fn bytes_that_are_no_chunk_are_refused(stores: Stores) -> anyhow::Result<()> {
    let (site, alice, job) = site(stores).await?;
    let honest = honest_chunk(&job)?;
    let chunk = |bytes: Vec<u8>| Chunk {
        hash: ContentHash::of(&bytes),
        bytes,
    };
    let mut longer = honest.bytes.clone();
    longer.push(0);
    for (bytes, code) in [
        (vec![], "bad-compression"),
        (b"hello".to_vec(), "bad-compression"),
        (
            honest.bytes[..honest.bytes.len() / 2].to_vec(),
            "bad-compression",
        ),
        (longer, "bad-compression"),
    ] {
        let refusal = alice.upload(&chunk(bytes)).await?.expect_err(code);
        assert_eq!(refusal.chunk_error.as_deref(), Some(code), "{refusal}");
    }
    let other = Chunk {
        hash: ContentHash::of(b"other"),
        bytes: honest.bytes,
    };
    let refusal = alice
        .upload(&other)
        .await?
        .expect_err("the hash is another");
    assert_eq!(refusal.code.as_str(), "hash-mismatch");
    assert_eq!(site.run().await?.games, 0);
    Ok(())
}

async fn a_chunk_counts_once_and_for_its_contributor(stores: Stores) -> anyhow::Result<()> {
    let (site, alice, job) = site(stores).await?;
    let bob = site.client().register("bob").await?;
    let chunk = honest_chunk(&job)?;
    let stolen = bob.upload(&chunk).await?.expect_err("the lease is alice's");
    assert!([403, 404, 409].contains(&stolen.status), "{stolen}");
    let first = alice
        .upload(&chunk)
        .await?
        .expect("the honest chunk counts");
    let second = alice.upload(&chunk).await?.expect("the same bytes again");
    assert_eq!((first.duplicate, second.duplicate), (false, true));
    assert_eq!(first.sequence, second.sequence);
    let copied = bob
        .upload(&chunk)
        .await?
        .expect_err("the games are alice's");
    assert!([403, 404, 409].contains(&copied.status), "{copied}");
    // The same games in another file are the same games.
    let mut header = header(&job);
    header.worker_version = "0.1.0-again".into();
    let repacked = alice
        .upload(&Chunk::of(&header, &play(&job)?)?)
        .await?
        .expect_err("twice");
    assert_eq!(repacked.code.as_str(), "chunk-refused");
    assert_eq!(site.run().await?.games, u64::from(job.work.games()));
    site.check_ledger()?;
    Ok(())
}

async fn games_of_another_job_are_refused(stores: Stores) -> anyhow::Result<()> {
    let (site, alice, job) = site(stores).await?;
    let other = alice.job().await?.context("there is another job")?;
    let mut stolen = header(&job);
    stolen.job = other.id;
    let refusal = alice
        .upload(&Chunk::of(&stolen, &play(&job)?)?)
        .await?
        .expect_err("wrong job");
    assert_eq!(refusal.chunk_error.as_deref(), Some("wrong-seed"));
    stolen.job = JobId("00000000-0000-4000-8000-000000000000".parse()?);
    let refusal = alice
        .upload(&Chunk::of(&stolen, &play(&job)?)?)
        .await?
        .expect_err("no such job");
    assert!([404, 410, 422].contains(&refusal.status), "{refusal}");
    assert_eq!(site.run().await?.games, 0);
    Ok(())
}
