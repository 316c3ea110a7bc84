//! Liars and honest workers together: everything they send is well-formed, and audits tell them
//! apart. The engine's hand-made evaluator stands for the network.

use anyhow::Context;
use rookery_common::chunk::{ChunkHeader, GameRecord};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Backend, Job, Work, WorkKind};
use rookery_common::protocol::people::NewToken;
use rookery_common::protocol::trust::{TrustInfo, TrustLevel};
use rookery_engine::dummy::{HandEvaluator, UniformEvaluator};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError};
use rookery_tests::client::Client;
use rookery_tests::params::tiny;
use rookery_tests::player::{Chunk, header, play_with};
use rookery_tests::programs::eventually;
use rookery_tests::site::{RUN, Site};

/// The hand-made evaluator, its outputs changed.
struct Changed {
    hand: HandEvaluator,
    change: fn(f32) -> f32,
}

impl Evaluator for Changed {
    fn input(&self) -> InputEncoding {
        self.hand.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.hand.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        self.hand.evaluate(batch, answer)?;
        let change = self.change;
        answer
            .logits
            .iter_mut()
            .for_each(|logit| *logit = change(*logit));
        for value in &mut answer.values {
            *value = rookery_engine::Wdl::from_q(change(value.q()));
        }
        Ok(())
    }
}

/// What bfloat16 leaves of a number.
fn rounded(number: f32) -> f32 {
    f32::from_bits((number.to_bits() + 0x8000) & 0xffff_0000)
}

fn with(job: &Job, change: fn(f32) -> f32) -> anyhow::Result<Vec<GameRecord>> {
    let changed = || Changed {
        hand: HandEvaluator::default(),
        change,
    };
    play_with(job, &mut [&mut changed(), &mut changed()])
}

fn honest(job: &Job) -> anyhow::Result<Vec<GameRecord>> {
    with(job, |number| number)
}

/// One who plays a job in a way of its own.
struct Player {
    name: &'static str,
    backend: Backend,
    play: fn(&Job) -> anyhow::Result<Vec<GameRecord>>,
}

const HONEST: &[Player] = &[
    Player {
        name: "plain",
        backend: Backend::CpuF32,
        play: honest,
    },
    Player {
        name: "rounded",
        backend: Backend::CudaBf16,
        play: |job| with(job, rounded),
    },
];

const LIARS: &[Player] = &[
    Player {
        name: "random-visits",
        backend: Backend::CpuF32,
        play: |job| {
            let mut games = honest(job)?;
            for (place, ply) in games
                .iter_mut()
                .flat_map(|game| &mut game.plies)
                .enumerate()
            {
                let moves = ply.visits.len();
                ply.visits.rotate_left(place % moves);
            }
            Ok(games)
        },
    },
    Player {
        name: "senseless",
        backend: Backend::CpuF32,
        play: |job| {
            let mut uniform = UniformEvaluator::default();
            play_with(job, &mut [&mut uniform, &mut UniformEvaluator::default()])
        },
    },
    Player {
        name: "weaker",
        backend: Backend::CudaF16,
        play: |job| with(job, |number| number * 0.3),
    },
    Player {
        name: "inflated",
        backend: Backend::CpuF32,
        play: |job| {
            let mut lazy = job.clone();
            let Work::SelfPlay { params, .. } = &mut lazy.work else {
                anyhow::bail!("self-play was expected");
            };
            params.search.visits /= 4;
            let mut games = honest(&lazy)?;
            for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
                ply.visits.iter_mut().for_each(|visits| *visits *= 4);
            }
            Ok(games)
        },
    },
];

fn params() -> RunParams {
    let mut params = tiny();
    params.selfplay.search.visits = 40;
    params.scheduling.selfplay_games = 8;
    params
}

/// Plays one job and uploads it.
async fn contribute(client: &Client, player: &Player) -> anyhow::Result<u64> {
    let job = loop {
        let job = client.job().await?.context("there is a job")?;
        match job.work.kind() {
            WorkKind::SelfPlay => break job,
            // Volunteers are asked too where the operator's auditor is slow.
            _ => answer(client, &job).await?,
        }
    };
    let header = ChunkHeader {
        backend: player.backend,
        ..header(&job)
    };
    let chunk = Chunk::of(&header, &(player.play)(&job)?)?;
    let receipt = client.upload(&chunk).await?;
    let receipt = receipt.map_err(|problem| anyhow::anyhow!("{}: {problem}", player.name))?;
    Ok(u64::from(receipt.positions))
}

/// Plays a job honestly, whatever it is.
async fn answer(client: &Client, job: &Job) -> anyhow::Result<()> {
    let header = ChunkHeader {
        backend: Backend::CpuF32,
        ..header(job)
    };
    let chunk = Chunk::of(&header, &honest(job)?)?;
    let receipt = client.upload(&chunk).await?;
    receipt.map_err(|problem| anyhow::anyhow!("{problem}"))?;
    Ok(())
}

async fn trust(site: &Site, name: &str) -> anyhow::Result<TrustInfo> {
    site.operator.get(&format!("/users/{name}/trust")).await
}

/// The operator's auditor works until nobody's chunk waits.
async fn audit_all(site: &Site, auditor: &Client, names: &[&str]) -> anyhow::Result<()> {
    eventually("all audits are made", async || {
        let mut open = 0;
        for name in names {
            open += trust(site, name).await?.audits_open;
        }
        if open == 0 {
            return Ok(Some(()));
        }
        if let Some(job) = auditor.job().await?
            && job.work.kind() == WorkKind::Audit
        {
            answer(auditor, &job).await?;
        }
        Ok(None)
    })
    .await
}

#[tokio::test]
async fn audits_tell_liars_from_honest_workers() -> anyhow::Result<()> {
    let site = Site::start(&params()).await?;
    let network = site.random_network("1x8", 1)?;
    site.trainer
        .submit(RUN, &network)
        .await?
        .expect("the first network is taken");
    let auditor = [
        "user",
        "create",
        "auditor",
        "--scope",
        "contribute",
        "--scope",
        "audit",
        "--json",
    ];
    let token: NewToken = serde_json::from_str(&site.command(&auditor)?)?;
    let auditor = site.client().with_token(&token.token);
    let mut clients = Vec::new();
    for player in HONEST.iter().chain(LIARS) {
        clients.push((player, site.client().register(player.name).await?));
    }
    let names: Vec<&str> = clients.iter().map(|(player, _)| player.name).collect();
    let mut good = 0;
    for _ in 0..2 {
        for (player, client) in &clients {
            let positions = contribute(client, player).await?;
            if HONEST.iter().any(|honest| honest.name == player.name) {
                good += positions;
            }
        }
        audit_all(&site, &auditor, &names).await?;
    }
    for player in HONEST {
        let trust = trust(&site, player.name).await?;
        assert_eq!(
            (trust.audits_passed, trust.audits_failed),
            (2, 0),
            "{trust:?}"
        );
        assert_eq!(trust.held_chunks, 0);
    }
    for player in LIARS {
        let trust = trust(&site, player.name).await?;
        assert_eq!(trust.level, TrustLevel::Quarantined, "{trust:?}");
        assert_eq!(
            (trust.audits_failed, trust.held_chunks),
            (2, 2),
            "{trust:?}"
        );
        assert!(trust.quarantine.is_some_and(|order| order.by == "audits"));
    }
    assert_eq!(site.trainer.run(RUN).await?.training_positions, good);
    site.check_ledger()?;
    site.command(&[
        "user",
        "clear",
        LIARS[0].name,
        "--reason",
        "looked at by hand",
    ])?;
    assert!(site.trainer.run(RUN).await?.training_positions > good);
    site.check_ledger()?;
    Ok(())
}
