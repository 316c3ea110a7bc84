//! The coordinator under load: an own one in a temporary folder, or one that runs already.

use std::net::SocketAddr;

use anyhow::Context as _;
use reqwest::Method;
use rookery_common::ids::RunName;
use rookery_common::params::{RunParams, SearchParams, Temperature};
use rookery_common::protocol::people::{NewToken, NewUser};
use rookery_common::protocol::runs::RunInfo;
use rookery_tests::client::{Answer, Client};
use rookery_tests::network;
use rookery_tests::postgres::Postgres;
use rookery_tests::s3::S3;
use rookery_tests::site::{RUN, Site, SiteOptions};

use crate::cli::{Cli, Victim, local_address};
use crate::phases::candidates;

/// A coordinator that is ready.
pub(crate) struct Target {
    /// The own one.
    pub(crate) site: Option<Site>,
    /// Its database, if that is an own server. (After the site: it is stopped after it.)
    postgres: Option<Postgres>,
    /// Its store, if that is an own server.
    s3: Option<S3>,
    pub(crate) address: SocketAddr,
    pub(crate) run: RunName,
    /// A caller that may read the ledger.
    pub(crate) trainer: Client,
    client: Client,
    /// The run as it was before the load.
    pub(crate) before: RunInfo,
}

impl Target {
    /// Starts a coordinator, or looks at the one that is there.
    pub(crate) async fn ready(cli: &Cli) -> anyhow::Result<Self> {
        match &cli.url {
            Some(url) => Self::running(cli, url).await,
            None => Self::own(cli).await,
        }
    }

    async fn own(cli: &Cli) -> anyhow::Result<Self> {
        if let Some(dir) = &cli.dir {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot make the folder {}", dir.display()))?;
        }
        let postgres = cli
            .postgres
            .then(|| Postgres::start(cli.dir.as_deref()))
            .transpose()?;
        let database = postgres
            .as_ref()
            .map(Postgres::url)
            .or_else(|| cli.database.clone());
        let s3 = cli.s3.then(|| S3::start(cli.dir.as_deref())).transpose()?;
        let store = s3.as_ref().map(|_| S3::url()).or_else(|| cli.store.clone());
        let mut arguments = Vec::new();
        for (flag, value) in [("--database", &database), ("--store", &store)] {
            if let Some(value) = value {
                arguments.extend([flag.to_owned(), value.clone()]);
            }
        }
        let options = SiteOptions {
            arguments,
            environment: s3.as_ref().map(S3::environment).unwrap_or_default(),
            folder: cli.dir.clone(),
        };
        let site = Site::start_with(&params(cli), options).await?;
        let file = network::file("rookery-swarm", 0)?;
        site.submit(&file).await?;
        let (url, trainer) = (site.url(), site.trainer.clone());
        Ok(Self {
            address: local_address(&url)?,
            run: RUN.parse()?,
            before: trainer.run(RUN).await?,
            client: site.client(),
            trainer,
            site: Some(site),
            postgres,
            s3,
        })
    }

    async fn running(cli: &Cli, url: &str) -> anyhow::Result<Self> {
        let address = local_address(url)?;
        let client = Client::new(url.trim_end_matches('/'));
        let token = cli.token.as_ref().context("a token is given with --url")?;
        let trainer = client.with_token(token);
        Ok(Self {
            site: None,
            postgres: None,
            s3: None,
            address,
            run: cli.run.parse()?,
            before: trainer.run(&cli.run).await?,
            trainer,
            client,
        })
    }

    /// Registers contributors and returns their tokens.
    pub(crate) async fn register(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let mut tokens = Vec::with_capacity(count);
        for index in 0..count {
            let user = NewUser {
                name: format!("swarm-{}-{index}", std::process::id()),
                machine: "swarm".to_owned(),
                invitation: None,
            };
            let answer: Answer<NewToken> = self
                .client
                .json(Method::POST, "/users", Some(&user))
                .await?;
            let token =
                answer.map_err(|problem| anyhow::anyhow!("registration failed: {problem}"))?;
            tokens.push(token.token);
        }
        Ok(tokens)
    }

    /// Kills something and starts it again.
    pub(crate) async fn kill(&mut self, victim: Victim) -> anyhow::Result<()> {
        match victim {
            Victim::Coordinator => self.restart().await,
            Victim::Postgres => {
                let server = self.postgres.as_ref().context("there is an own server")?;
                // Both take a moment, in which the load must go on.
                tokio::task::block_in_place(|| {
                    server.kill()?;
                    server.run()
                })
            }
            Victim::S3 => {
                let server = self.s3.as_ref().context("there is an own store")?;
                tokio::task::block_in_place(|| {
                    server.kill()?;
                    server.run()
                })
            }
        }
    }

    /// Kills the own coordinator, if it runs, and starts it again.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        let site = self
            .site
            .as_mut()
            .context("only an own coordinator is killed")?;
        if site.is_running() {
            site.kill_coordinator()?;
        }
        site.start_coordinator().await
    }
}

/// A run that hands out self-play of one size for as long as anybody asks, and short matches where
/// there is a candidate.
fn params(cli: &Cli) -> RunParams {
    let mut params = RunParams::default();
    params.selfplay.search = SearchParams {
        visits: cli.visits,
        solver: false,
        ..SearchParams::default()
    };
    // Games are used again under other seeds, which must not draw other moves.
    params.selfplay.temperature = Temperature::NONE;
    params.selfplay.ply_limit = cli.plies;
    params.scheduling.puzzle_share = 0.0;
    params.scheduling.anchor_share = 0.0;
    params.scheduling.selfplay_games = cli.games;
    // Jobs that are taken and not played are asked for at the end, after all modes.
    params.scheduling.lease_seconds = 600;
    params.matches.search = SearchParams {
        noise: None,
        ..params.selfplay.search.clone()
    };
    params.matches.ply_limit = cli.plies;
    params.scheduling.match_games = candidates::JOB_GAMES;
    params.gate = candidates::rule(0);
    params
}
