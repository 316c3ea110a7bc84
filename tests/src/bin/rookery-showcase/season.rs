//! What has happened on the coordinator: three candidates, some hundred games.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use reqwest::Method;
use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::network::NetworkSpec;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::Job;
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::runs::{MetricPoint, MetricReport};
use rookery_common::rating::gate::GateRule;
use rookery_engine::dummy::{HandEvaluator, UniformEvaluator};
use rookery_engine::evaluator::Evaluator;
use rookery_model::{Weights, onnx};
use rookery_tests::client::Client;
use rookery_tests::player::{Chunk, header, play_with};
use rookery_tests::site::{RUN, Site, SiteOptions};
use tempfile::TempDir;

/// Those who play in turn.
const CONTRIBUTORS: [&str; 3] = ["ada", "bronstein", "shannon"];

/// Jobs after which a season that does not come to its end is broken.
const MOST_JOBS: usize = 400;

/// Mates in one and two with ratings, in Lichess's form.
const PUZZLES: &str = include_str!("puzzles.csv");

/// Where people would get datasets; nothing is there.
const DATASETS_URL: &str = "https://data.example.org";

/// How a network of the showcase plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skill {
    /// It knows nothing.
    Beginner,
    /// It knows what pieces are worth.
    Player,
}

/// A coordinator, its contributors, and how its networks play.
pub(crate) struct Season {
    pub(crate) site: Site,
    /// What was published, a folder for each dataset.
    datasets: TempDir,
    contributors: Vec<Client>,
    skills: BTreeMap<ContentHash, Skill>,
    jobs: usize,
}

impl Season {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let datasets = tempfile::tempdir()?;
        let published = [
            ("ROOKERY_DATASETS", datasets.path().display().to_string()),
            ("ROOKERY_DATASETS_URL", DATASETS_URL.to_owned()),
            ("ROOKERY_DATASETS_SCHEDULE", "every Sunday".to_owned()),
        ];
        let options = SiteOptions {
            environment: published
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..SiteOptions::default()
        };
        let site = Site::start_with(&params(), options).await?;
        let file = site.path("puzzles.csv");
        std::fs::write(&file, PUZZLES)?;
        site.command(&[
            "puzzles",
            "import",
            &file.display().to_string(),
            "--run",
            RUN,
        ])?;
        let mut contributors = Vec::new();
        for name in CONTRIBUTORS {
            contributors.push(site.client().register(name).await?);
        }
        Ok(Self {
            site,
            datasets,
            contributors,
            skills: BTreeMap::new(),
            jobs: 0,
        })
    }

    /// The tokens of the operator and of the contributors, by name.
    pub(crate) fn tokens(&self) -> BTreeMap<&str, &str> {
        let people = CONTRIBUTORS.iter().copied().zip(&self.contributors);
        std::iter::once(("operator", &self.site.operator))
            .chain(people)
            .filter_map(|(name, client)| Some((name, client.token()?)))
            .collect()
    }

    /// A first network, a better one, one that is no better, and one whose match goes on.
    pub(crate) async fn play_to_the_third_gate(&mut self) -> anyhow::Result<()> {
        self.submit(0, Skill::Beginner).await?;
        self.play_training_games(0).await?;
        self.submit(500, Skill::Player).await?;
        self.play_until_decided().await?;
        self.site.command(&["puzzles", "mine", "--run", RUN])?;
        self.play_training_games(1).await?;
        self.submit(1_000, Skill::Beginner).await?;
        self.play_until_decided().await?;
        self.submit(1_500, Skill::Player).await?;
        self.play_until_begun().await?;
        let statuses: Vec<_> = self
            .matches()
            .await?
            .iter()
            .map(|info| info.status)
            .collect();
        let expected = [
            MatchStatus::Open,
            MatchStatus::Rejected,
            MatchStatus::Promoted,
        ];
        ensure!(statuses == expected, "the matches ended {statuses:?}");
        Ok(())
    }

    /// Publishes what was played, and says where.
    pub(crate) fn publish(&self) -> anyhow::Result<PathBuf> {
        let folder = self.datasets.path().join("main-1");
        let output = folder.display().to_string();
        let export = ["ledger", "export", "--run", RUN, "--output", &output];
        self.site
            .command(&[&export[..], &["--licence", "CC0-1.0"]].concat())?;
        Ok(folder)
    }

    /// Plays another job and says what for.
    pub(crate) async fn play_one(&mut self) -> anyhow::Result<&'static str> {
        let client = &self.contributors[self.jobs % self.contributors.len()];
        self.jobs += 1;
        let job = client
            .job()
            .await?
            .context("there is always something to play")?;
        let chunk = Chunk::of(&header(&job), &self.games(&job)?)?;
        let receipt = client.upload(&chunk).await?;
        receipt.map_err(|problem| anyhow::anyhow!("an honest chunk was refused: {problem}"))?;
        Ok(job.work.kind().name())
    }

    /// Plays until the network has played itself and tried puzzles.
    async fn play_training_games(&mut self, number: u32) -> anyhow::Result<()> {
        let mut kinds = BTreeSet::new();
        while kinds.len() < 2 || !self.has_puzzle_score(number).await? {
            ensure!(
                self.jobs < MOST_JOBS,
                "network {number} got no puzzles in {MOST_JOBS} jobs"
            );
            kinds.insert(self.play_one().await?);
        }
        Ok(())
    }

    async fn has_puzzle_score(&self, number: u32) -> anyhow::Result<bool> {
        let networks = self.site.client().networks(RUN).await?;
        let network = networks
            .iter()
            .find(|info| info.number == NetworkNumber(number));
        Ok(network.is_some_and(|info| info.puzzles.is_some()))
    }

    /// Plays until the newest match has games.
    async fn play_until_begun(&mut self) -> anyhow::Result<()> {
        while self
            .matches()
            .await?
            .first()
            .is_some_and(|info| info.tally.games() == 0)
        {
            self.play_one().await?;
        }
        Ok(())
    }

    async fn play_until_decided(&mut self) -> anyhow::Result<()> {
        while self
            .matches()
            .await?
            .iter()
            .any(|info| info.status == MatchStatus::Open)
        {
            ensure!(
                self.jobs < MOST_JOBS,
                "the gate match is not decided after {MOST_JOBS} jobs"
            );
            self.play_one().await?;
        }
        Ok(())
    }

    fn games(&self, job: &Job) -> anyhow::Result<Vec<GameRecord>> {
        let mut players: Vec<_> = job
            .work
            .networks()
            .iter()
            .map(|hash| self.player(hash))
            .collect();
        let mut evaluators: Vec<&mut dyn Evaluator> = players
            .iter_mut()
            .map(|player| player.as_mut() as &mut dyn Evaluator)
            .collect();
        play_with(job, &mut evaluators)
    }

    fn player(&self, hash: &ContentHash) -> Box<dyn Evaluator> {
        match self.skills.get(hash) {
            Some(Skill::Player) => Box::new(HandEvaluator::default()),
            Some(Skill::Beginner) | None => Box::new(UniformEvaluator::default()),
        }
    }

    async fn submit(&mut self, step: u64, skill: Skill) -> anyhow::Result<()> {
        self.report(step).await?;
        let mut spec = NetworkSpec::from_shape("2x16")?;
        "rookery-showcase".clone_into(&mut spec.creator);
        spec.training_step = step;
        let weights = Weights::random(spec, step)?;
        let bytes = weights.to_bytes()?;
        let hash = ContentHash::of(&bytes);
        self.skills.insert(hash, skill);
        self.site.submit(&bytes).await?;
        self.export(&hash, onnx::to_bytes(&weights)?).await
    }

    /// Adds a network's ONNX file, which the page "Play" evaluates.
    async fn export(&self, network: &ContentHash, model: Vec<u8>) -> anyhow::Result<()> {
        let sha256 = ContentHash::of(&model);
        let path = format!("/networks/{network}/file?format=onnx&sha256={sha256}");
        let answer = self.site.trainer.send(Method::PUT, &path, model).await?;
        ensure!(
            answer.status().is_success(),
            "the export was refused: {}",
            answer.status()
        );
        Ok(())
    }

    /// Losses as they might be, for the 500 steps that end at `step`.
    async fn report(&self, step: u64) -> anyhow::Result<()> {
        let point = |step: u64| {
            let age = step as f64 / 700.0;
            let wave = (step as f64 / 23.0).sin() * 0.06;
            let policy = 1.4 + 1.9 * (-age).exp() + wave;
            let value = 0.62 + 0.41 * (-age).exp() - wave / 2.0;
            let values = [
                ("policy_loss", policy),
                ("value_loss", value),
                ("loss", policy + value),
                ("learning_rate", 0.02 * (step as f64 / 100.0).min(1.0)),
            ];
            MetricPoint {
                step,
                values: values.map(|(name, n)| (name.to_owned(), n)).into(),
            }
        };
        let points = (step.saturating_sub(490)..=step)
            .step_by(10)
            .map(point)
            .collect();
        let path = format!("/runs/{RUN}/metrics");
        let report = MetricReport { points };
        let sent = self
            .site
            .trainer
            .json::<()>(Method::POST, &path, Some(&report))
            .await?;
        sent.map_err(|problem| anyhow::anyhow!("metrics were refused: {problem}"))?;
        Ok(())
    }

    async fn matches(&self) -> anyhow::Result<Vec<MatchInfo>> {
        self.site.client().matches(RUN).await
    }
}

/// Short games, few visits, quick gates.
fn params() -> RunParams {
    let mut params = RunParams::default();
    params.selfplay.search.visits = 24;
    params.selfplay.ply_limit = 120;
    params.puzzle.search.visits = 64;
    params.puzzle.ply_limit = 12;
    params.matches.search.visits = 24;
    params.matches.ply_limit = 120;
    params.scheduling.selfplay_games = 6;
    params.scheduling.puzzle_games = 12;
    params.scheduling.puzzle_share = 0.4;
    params.scheduling.match_games = 6;
    params.scheduling.rating_pairs = 0;
    if let GateRule::Sprt {
        params: test,
        max_pairs,
        ..
    } = &mut params.gate
    {
        (test.elo0, test.elo1) = (0.0, 60.0);
        *max_pairs = 60;
    }
    params
}
