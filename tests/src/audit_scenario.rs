//! A coordinator whose contributors play in rounds, and an auditor of the operator's who searches
//! again what they sent.

use anyhow::Context;
use reqwest::Method;
use rookery_common::chunk::{ChunkHeader, GameRecord};
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Backend, ChunkReceipt, Job, Work, WorkKind};
use rookery_common::protocol::matches::MatchInfo;
use rookery_common::protocol::people::NewToken;
use rookery_common::protocol::trust::{ContributorTrust, TrustInfo, TrustLevel};

use crate::client::{Answer, Client};
use crate::liars::{Past, Player, honest};
use crate::params::tiny;
use crate::player::{Chunk, header};
use crate::programs::eventually;
use crate::site::{RUN, Site};
use crate::stores::Stores;

/// Pairs of the match that throwers play in: more than they get.
const PAIRS: u32 = 5000;

/// A contributor.
#[derive(Debug)]
struct Person {
    name: String,
    player: Player,
    client: Client,
    past: Option<Past>,
    /// Positions of its games that were searched again.
    searched: u64,
    /// Audits that were made of its chunks.
    audits: u32,
    /// It has been quarantined and sends no more.
    out: bool,
}

/// What somebody sent in a round.
#[derive(Debug)]
pub struct Sent {
    /// By name.
    pub name: String,
    /// Who.
    pub player: Player,
    /// Games of the job.
    pub given: u32,
    /// The coordinator's answer.
    pub answer: Answer<ChunkReceipt>,
}

impl Sent {
    /// The code with which the chunk was refused, if it was.
    pub fn refusal(&self) -> Option<&str> {
        let problem = self.answer.as_ref().err()?;
        let code = problem.chunk_error.as_deref();
        Some(code.unwrap_or_else(|| problem.code.as_str()))
    }

    /// The receipt of a chunk that was to be accepted.
    ///
    /// # Errors
    ///
    /// If it was refused.
    pub fn receipt(&self) -> anyhow::Result<&ChunkReceipt> {
        let answer = self.answer.as_ref();
        answer.map_err(|problem| anyhow::anyhow!("{}: {problem}", self.player.name))
    }
}

/// The coordinator with its people.
#[derive(Debug)]
pub struct AuditScenario {
    /// The coordinator.
    pub site: Site,
    auditor: Client,
    people: Vec<Person>,
}

/// Enough visits that an audit can tell searches apart, in small jobs.
fn params() -> RunParams {
    let mut params = tiny();
    params.selfplay.search.visits = 40;
    params.matches.search.visits = 40;
    params.matches.ply_limit = 40;
    params.scheduling.selfplay_games = 8;
    params.scheduling.match_games = 8;
    params
}

impl AuditScenario {
    /// All jobs are of self-play.
    ///
    /// # Errors
    ///
    /// If the coordinator cannot be started.
    pub async fn of_selfplay(stores: Stores) -> anyhow::Result<Self> {
        Self::open(stores, &params()).await
    }

    /// All jobs are of one long match.
    ///
    /// # Errors
    ///
    /// If the coordinator cannot be started.
    pub async fn of_matches(stores: Stores) -> anyhow::Result<Self> {
        let mut params = params();
        params.scheduling.rating_share = 1.0;
        params.scheduling.rating_pairs = 0;
        params.gate = rookery_common::rating::gate::GateRule::None;
        let scenario = Self::open(stores, &params).await?;
        scenario.site.submit_random(2).await?;
        let order = serde_json::json!({"run": RUN, "candidate": 1, "opponent": 0, "pairs": PAIRS});
        let operator = &scenario.site.operator;
        let opened = operator.json::<MatchInfo>(Method::POST, "/matches", Some(&order));
        let opened = opened.await?;
        opened.map_err(|problem| anyhow::anyhow!("no match was opened: {problem}"))?;
        Ok(scenario)
    }

    async fn open(stores: Stores, params: &RunParams) -> anyhow::Result<Self> {
        let site = Site::start_on(stores, params).await?;
        site.submit_random(1).await?;
        let create = ["user", "create", "auditor", "--scope", "contribute"];
        let create = [&create[..], &["--scope", "audit", "--json"]].concat();
        let token: NewToken = serde_json::from_str(&site.command(&create)?)?;
        Ok(Self {
            auditor: site.client().with_token(&token.token),
            site,
            people: Vec::new(),
        })
    }

    /// Registers one more contributor who plays so.
    ///
    /// # Errors
    ///
    /// If registration fails.
    pub async fn admit(&mut self, player: &Player) -> anyhow::Result<()> {
        let name = format!("p{}", self.people.len());
        self.people.push(Person {
            client: self.site.client().register(&name).await?,
            name,
            player: *player,
            past: None,
            searched: 0,
            audits: 0,
            out: false,
        });
        Ok(())
    }

    /// The name under which the first who plays so is registered.
    ///
    /// # Errors
    ///
    /// If no worker plays so.
    pub fn name_of(&self, player: &Player) -> anyhow::Result<&str> {
        let person = self.people.iter().find(|p| p.player.name == player.name);
        Ok(&person.context("somebody plays so")?.name)
    }

    /// Everybody plays a job honestly, which liars who copy need; then nothing is open.
    ///
    /// # Errors
    ///
    /// If anything fails on the way.
    pub async fn honest_round(&mut self) -> anyhow::Result<()> {
        for person in &mut self.people {
            let job = own_job(&person.client, person.player.kind).await?;
            let games = upload_honest(&person.client, &job).await?;
            person.past = Some((job, games));
        }
        self.audit_all().await
    }

    /// Everybody who is not in quarantine plays a job in the own way, gives back what was not sent
    /// of it, and all audits that follow are made.
    ///
    /// # Errors
    ///
    /// If anything fails on the way; a chunk that is refused is an answer.
    pub async fn round(&mut self) -> anyhow::Result<Vec<Sent>> {
        let mut all = Vec::new();
        for person in self.people.iter().filter(|person| !person.out) {
            let Person {
                name,
                player,
                client,
                past,
                ..
            } = person;
            let job = own_job(client, player.kind).await?;
            let chunk = player.chunk(&job, past.as_ref())?;
            let given = job.work.games();
            let answer = client.upload(&chunk).await?;
            if answer.as_ref().is_ok_and(|receipt| receipt.games < given) {
                give_back(client, &job).await?;
            }
            all.push(Sent {
                name: name.clone(),
                player: *player,
                given,
                answer,
            });
        }
        self.audit_all().await?;
        let standings = self.found().await?;
        for person in &mut self.people {
            person.out = standings.iter().any(|found| {
                let trust = &found.trust;
                trust.name == person.name && trust.level == TrustLevel::Quarantined
            });
        }
        Ok(all)
    }

    /// How far everybody is trusted, in the order of admission.
    ///
    /// # Errors
    ///
    /// If the coordinator does not say.
    pub async fn standings(&self) -> anyhow::Result<Vec<(Player, TrustInfo)>> {
        let mut standings = Vec::new();
        for person in &self.people {
            let path = format!("/users/{}/trust", person.name);
            standings.push((person.player, self.site.operator.get(&path).await?));
        }
        Ok(standings)
    }

    /// How many audits were made of everybody's chunks, in the order of admission. Small chunks make a pass only together,
    /// so that records tell less.
    pub fn audits(&self) -> impl Iterator<Item = (Player, u32)> {
        self.people
            .iter()
            .map(|person| (person.player, person.audits))
    }

    /// Positions that count for training.
    ///
    /// # Errors
    ///
    /// If the coordinator does not say.
    pub async fn training_positions(&self) -> anyhow::Result<u64> {
        Ok(self.site.run().await?.training_positions)
    }

    /// What operators see of every contributor with an upload.
    ///
    /// # Errors
    ///
    /// If the coordinator does not say.
    pub async fn found(&self) -> anyhow::Result<Vec<ContributorTrust>> {
        found(&self.site).await
    }

    /// The auditor works until no chunk waits.
    async fn audit_all(&mut self) -> anyhow::Result<()> {
        let Self {
            site,
            auditor,
            people,
        } = self;
        eventually("all audits are made", async || {
            while let Some(job) = auditor.job().await? {
                if !matches!(job.work, Work::Audit { .. }) {
                    give_back(auditor, &job).await?;
                    break;
                }
                upload_honest(auditor, &job).await?;
                count_audit(people, &found(site).await?);
            }
            let found = found(site).await?;
            let done = found.iter().all(|found| found.trust.audits_open == 0);
            Ok(done.then_some(()))
        })
        .await
    }
}

/// What operators see of every contributor with an upload.
async fn found(site: &Site) -> anyhow::Result<Vec<ContributorTrust>> {
    site.operator.get("/trust/contributors").await
}

/// Counts the audit that was made last for whoever's games were searched again.
fn count_audit(people: &mut [Person], found: &[ContributorTrust]) {
    for person in people {
        let mut all = found.iter().map(|found| &found.trust);
        if let Some(trust) = all.find(|trust| trust.name == person.name)
            && trust.audited_positions > person.searched
        {
            person.searched = trust.audited_positions;
            person.audits += 1;
        }
    }
}

/// A job of this kind. Volunteers are asked for audits too where the operator's auditor is slow.
async fn own_job(client: &Client, kind: WorkKind) -> anyhow::Result<Job> {
    loop {
        let job = client.job().await?.context("there is a job")?;
        match job.work.kind() {
            own if own == kind => return Ok(job),
            WorkKind::Audit => {
                upload_honest(client, &job).await?;
            }
            other => anyhow::bail!("a job of {} was given, not {}", other.name(), kind.name()),
        }
    }
}

/// Gives a lease back, as a worker does that plays no more of the job.
async fn give_back(client: &Client, job: &Job) -> anyhow::Result<()> {
    let path = format!("/jobs/{}", job.id);
    let answer = client.send(Method::DELETE, &path, "").await?;
    answer.error_for_status()?;
    Ok(())
}

/// Plays a job honestly, whatever it is, and uploads it.
async fn upload_honest(client: &Client, job: &Job) -> anyhow::Result<Vec<GameRecord>> {
    let games = honest(job)?;
    let header = ChunkHeader {
        backend: Backend::CpuF32,
        ..header(job)
    };
    let answer = client.upload(&Chunk::of(&header, &games)?).await?;
    answer.map_err(|problem| anyhow::anyhow!("an honest chunk was refused: {problem}"))?;
    Ok(games)
}
