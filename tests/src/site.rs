//! A coordinator with a run and users, in a folder of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rookery_common::params::RunParams;
use rookery_common::protocol::networks::NetworkReceipt;
use rookery_common::protocol::people::NewToken;
use rookery_common::protocol::runs::RunInfo;
use tempfile::TempDir;

use crate::client::Client;
use crate::programs::{Running, eventually, quiet_port, run, run_with};
use crate::stores::{Servers, Stores};

/// The run of every test.
pub const RUN: &str = "main";

/// Where a site keeps what it keeps.
#[derive(Debug, Clone, Default)]
pub struct SiteOptions {
    /// Arguments for every command of the coordinator, for example another database.
    pub arguments: Vec<String>,
    /// Variables of its environment, for example how to reach its store.
    pub environment: Vec<(String, String)>,
    /// The folder in which the site's own folder is made, if not the system's temporary one.
    pub folder: Option<PathBuf>,
}

/// A coordinator's folder and, while it runs, its process.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
    program: Coordinator,
    port: u16,
    coordinator: Option<Running>,
    /// Reads chunks, submits networks.
    pub trainer: Client,
    trainer_token: String,
    /// Changes runs.
    pub operator: Client,
    /// Its own servers, if it has any. (Last: they are stopped after the coordinator.)
    servers: Option<Servers>,
}

impl Site {
    /// A coordinator with one run of these parameters, started and ready.
    ///
    /// # Errors
    ///
    /// If anything fails on the way.
    pub async fn start(params: &RunParams) -> anyhow::Result<Self> {
        Self::start_with(params, SiteOptions::default()).await
    }

    /// The same on stores of this kind, with servers of its own where they need some.
    ///
    /// # Errors
    ///
    /// If anything fails on the way.
    pub async fn start_on(stores: Stores, params: &RunParams) -> anyhow::Result<Self> {
        let servers = stores.start()?;
        let options = servers.as_ref().map(Servers::options).unwrap_or_default();
        let mut site = Self::start_with(params, options).await?;
        site.servers = servers;
        Ok(site)
    }

    /// The same with other stores, or in another place.
    ///
    /// # Errors
    ///
    /// If anything fails on the way.
    pub async fn start_with(params: &RunParams, options: SiteOptions) -> anyhow::Result<Self> {
        let folder = match &options.folder {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        };
        let file = folder.path().join("run.json").display().to_string();
        std::fs::write(&file, serde_json::to_vec(params)?)?;
        let program = Coordinator::new(&folder, options);
        program.run(&["run", "create", RUN, "--params", &file])?;
        Self::start_in(folder, program).await
    }

    /// A coordinator without a run, started and ready.
    ///
    /// # Errors
    ///
    /// If anything fails on the way.
    pub async fn start_without_run() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = Coordinator::new(&folder, SiteOptions::default());
        Self::start_in(folder, program).await
    }

    async fn start_in(folder: TempDir, program: Coordinator) -> anyhow::Result<Self> {
        let port = quiet_port()?;
        program.run(&["migrate"])?;
        let trainer_token = program.create_user("trainer", "train")?;
        let operator_token = program.create_user("operator", "operate")?;
        let client = Client::new(&format!("http://127.0.0.1:{port}"));
        let mut site = Self {
            folder,
            program,
            port,
            coordinator: None,
            trainer: client.with_token(&trainer_token),
            trainer_token,
            operator: client.with_token(&operator_token),
            servers: None,
        };
        site.start_coordinator().await?;
        Ok(site)
    }

    /// Starts the coordinator, again if it ran before, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If it does not become ready.
    pub async fn start_coordinator(&mut self) -> anyhow::Result<()> {
        let log = self.path("coordinator.log");
        self.coordinator = Some(self.program.serve(&self.address(), &log).await?);
        Ok(())
    }

    /// Starts another coordinator on the same ledger and store, at this host and port, and waits
    /// until it is ready.
    ///
    /// # Errors
    ///
    /// If it does not become ready.
    pub async fn replica(&self, address: &str) -> anyhow::Result<Running> {
        let log = self.path(&format!("replica-{address}.log"));
        self.program.serve(address, &log).await
    }

    /// Kills the coordinator as a power cut would.
    ///
    /// # Errors
    ///
    /// If it is not running.
    pub fn kill_coordinator(&mut self) -> anyhow::Result<()> {
        self.coordinator
            .take()
            .context("the coordinator is running")?
            .kill()
    }

    /// Asks the coordinator to end, as for an update, and waits until it has.
    ///
    /// # Errors
    ///
    /// If it is not running, does not end, or ends with an error.
    pub fn stop_coordinator(&mut self) -> anyhow::Result<()> {
        self.coordinator
            .take()
            .context("the coordinator is running")?
            .stop()
    }

    /// Moves the site, whose coordinator is down, to other servers; its own are stopped, and their files gone.
    pub fn move_to(&mut self, servers: Servers) {
        self.program = Coordinator::new(&self.folder, servers.options());
        self.servers = Some(servers);
    }

    /// Its own servers, if it has any.
    pub const fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// The coordinator's address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A caller without a token.
    pub fn client(&self) -> Client {
        Client::new(&self.url())
    }

    /// What the coordinator has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("coordinator.log")).unwrap_or_default()
    }

    /// A path in the site's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the coordinator was started and not killed.
    pub const fn is_running(&self) -> bool {
        self.coordinator.is_some()
    }

    /// Starts a worker that keeps its spool and networks in the folder `name`.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn worker(&self, name: &str) -> anyhow::Result<Running> {
        self.worker_at(&self.url(), name)
    }

    /// The same for a worker that reaches the coordinator at another address.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn worker_at(&self, url: &str, name: &str) -> anyhow::Result<Running> {
        self.start_worker(url, name, &[], &[])
    }

    /// The same with more flags and variables of the environment.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn worker_with(
        &self,
        name: &str,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Running> {
        self.start_worker(&self.url(), name, flags, environment)
    }

    fn start_worker(
        &self,
        url: &str,
        name: &str,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Running> {
        let folder = self.path(name).display().to_string();
        let arguments = ["run", "--server", url, "--dir", &folder, "--name", name];
        Running::start(
            "rookery-worker",
            &self.path(&format!("{name}.log")),
            &[&arguments, flags].concat(),
            environment,
        )
    }

    /// Lets the worker of the folder `name` finish, as Ctrl-C does.
    ///
    /// # Errors
    ///
    /// If it does not end in order, or a game of its was refused.
    pub fn finish(&self, name: &str, mut worker: Running) -> anyhow::Result<()> {
        worker.interrupt()?;
        let refused = self.path(name).join("spool").join("refused");
        let kept_aside = std::fs::read_dir(refused).map_or(0, Iterator::count);
        ensure!(kept_aside == 0, "{}", worker.printed());
        Ok(())
    }

    /// Starts a trainer that keeps its state in the folder `trainer`; it makes the first network.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn trainer(&self, shape: &str) -> anyhow::Result<Running> {
        self.trainer_with(shape, &[])
    }

    /// The same with more flags.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn trainer_with(&self, shape: &str, flags: &[&str]) -> anyhow::Result<Running> {
        self.trainer_in(&self.path("trainer"), shape, flags)
    }

    /// The same with its state in another folder.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn trainer_in(
        &self,
        folder: &Path,
        shape: &str,
        flags: &[&str],
    ) -> anyhow::Result<Running> {
        let folder = folder.display().to_string();
        let arguments = [
            "run",
            "--server",
            &self.url(),
            "--run",
            RUN,
            "--dir",
            &folder,
            "--init",
            shape,
        ];
        let token = [("ROOKERY_TOKEN", self.trainer_token.as_str())];
        Running::start(
            "rookery-trainer",
            &self.path("trainer.log"),
            &[&arguments, flags].concat(),
            &token,
        )
    }

    /// Makes a random network of this shape.
    ///
    /// # Errors
    ///
    /// If the trainer cannot.
    pub fn random_network(&self, shape: &str, seed: u64) -> anyhow::Result<Vec<u8>> {
        let file = self.path(&format!("{shape}-{seed}.safetensors"));
        random_network(&file, shape, seed)
    }

    /// Submits a network, which must be taken.
    ///
    /// # Errors
    ///
    /// If the coordinator refuses it.
    pub async fn submit(&self, network: &[u8]) -> anyhow::Result<NetworkReceipt> {
        let answer = self.trainer.submit(RUN, network).await?;
        answer.map_err(|problem| anyhow::anyhow!("the network was refused: {problem}"))
    }

    /// Submits a network of shape 1x8 with random weights.
    ///
    /// # Errors
    ///
    /// If it cannot be made, or the coordinator refuses it.
    pub async fn submit_random(&self, seed: u64) -> anyhow::Result<NetworkReceipt> {
        self.submit(&self.random_network("1x8", seed)?).await
    }

    /// Waits until the run counts more games than these, and returns how many.
    ///
    /// # Errors
    ///
    /// If that takes too long.
    pub async fn wait_for_games(&self, more_than: u64) -> anyhow::Result<u64> {
        eventually("more games are counted", async || {
            let games = self.run().await?.games;
            Ok((games > more_than).then_some(games))
        })
        .await
    }

    /// How the run stands.
    ///
    /// # Errors
    ///
    /// If the coordinator does not say.
    pub async fn run(&self) -> anyhow::Result<RunInfo> {
        self.trainer.run(RUN).await
    }

    /// Runs a command of the coordinator on its data and returns what it prints.
    ///
    /// # Errors
    ///
    /// If the command fails.
    pub fn command(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.program.run(arguments)
    }

    /// What `ledger check` of the coordinator's data says.
    ///
    /// # Errors
    ///
    /// If the check finds a difference.
    pub fn check_ledger(&self) -> anyhow::Result<String> {
        self.command(&["ledger", "check"])
    }
}

/// The program with what all its commands are given.
#[derive(Debug)]
struct Coordinator {
    /// `--data-dir` among them.
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Coordinator {
    fn new(folder: &TempDir, options: SiteOptions) -> Self {
        let data = folder.path().join("coordinator").display().to_string();
        Self {
            arguments: [vec!["--data-dir".to_owned(), data], options.arguments].concat(),
            environment: options.environment,
        }
    }

    fn with<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let global: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        [&global, command].concat()
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        let variables = self.environment.iter();
        let borrowed = variables.map(|(name, value)| (name.as_str(), value.as_str()));
        borrowed.collect()
    }

    /// Runs a command to its end.
    fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        let arguments = self.with(command);
        run_with("rookery-coordinator", &arguments, &self.environment())
    }

    /// Starts to serve, and waits until it is ready.
    async fn serve(&self, address: &str, log: &Path) -> anyhow::Result<Running> {
        let arguments = self.with(&["serve", "--listen", address, "--metrics-listen", "api"]);
        let environment = self.environment();
        let mut running = Running::start("rookery-coordinator", log, &arguments, &environment)?;
        let ready = format!("http://{address}/readyz");
        let answered = eventually("the coordinator is ready", async || {
            if let Some(status) = running.ended()? {
                anyhow::bail!(
                    "the coordinator ended with {status}:\n{}",
                    running.printed()
                );
            }
            let answer = reqwest::get(&ready).await;
            Ok(answer
                .is_ok_and(|answer| answer.status().is_success())
                .then_some(()))
        });
        answered.await?;
        Ok(running)
    }

    fn create_user(&self, name: &str, scope: &str) -> anyhow::Result<String> {
        let said = self.run(&["user", "create", name, "--scope", scope, "--json"])?;
        let token: NewToken = serde_json::from_str(&said)?;
        Ok(token.token)
    }
}

fn random_network(file: &Path, shape: &str, seed: u64) -> anyhow::Result<Vec<u8>> {
    let (path, seed) = (file.display().to_string(), seed.to_string());
    run(
        "rookery-trainer",
        &["init", shape, "--seed", &seed, "--output", &path],
    )?;
    Ok(std::fs::read(file)?)
}
