//! The beginning: the state of an earlier session, or a fresh one with the run's best network, or
//! with its very first.

use std::path::Path;

use anyhow::Context as _;
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::networks::{NetworkName, NetworkStatus};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::text::quantity;
use rookery_model::Weights;

use super::state::{Phase, State};
use super::{FirstNetwork, Session, SessionContext, Settings};
use crate::api::{CallError, Client};
use crate::buffer::{GameStore, Window};
use crate::checkpoint::CheckpointFolder;
use crate::data::ledger_sync::LedgerSync;
use crate::data::{ChunkFolder, ChunkIngest, ExcludedChunks, HeldOut, Ledger};
use crate::exports;
use crate::folder_lock;
use crate::learner::Learner;
use crate::metrics::endpoint::Endpoint;
use crate::metrics::{MetricLog, MetricSender};
use crate::presets;
use rookery_cli::network_file;
use rookery_cli::network_file::creator;

impl Session {
    /// Opens the folder and goes on from its checkpoint, or begins.
    pub(super) async fn begin(settings: Settings, context: SessionContext) -> anyhow::Result<Self> {
        let dir = settings.dir.clone();
        let lock = folder_lock::take(&dir)?;
        let mut checkpoints = CheckpointFolder::open(dir.join("checkpoints"))?;
        let open = |state: &State, path: &Path| resume(state, path, &context.client, &settings);
        let (state, learner) = match checkpoints.load(open)? {
            Some(loaded) => (loaded.state, loaded.learner),
            None => {
                let (state, learner) = fresh(&context.client, &settings).await?;
                checkpoints.save(&state, |path| Ok(learner.trainer.save(path)?))?;
                (state, learner)
            }
        };
        let log = MetricLog::open(&dir.join("metrics.jsonl"))?;
        let log = log.with_events(&dir.join("tensorboard"))?;
        let endpoint = match settings.metrics_listen {
            Some(address) => Some(Endpoint::start(address, log.gauges().clone()).await?),
            None => None,
        };
        let ledger = Ledger::open(&dir.join("ledger.jsonl"))?;
        let chunks = ChunkFolder::new(dir.join("chunks"));
        let holds = ExcludedChunks::open(&dir.join("holds.json"))?;
        let store = GameStore::open(dir.join("window"))?;
        let capacity = state.params.window.max;
        let others = open_library(&settings, &context)?;
        let mut session = Self {
            ledger_sync: LedgerSync::new(ledger, chunks, holds, settings.chunk_delay),
            others,
            ingest: ChunkIngest::new(store, capacity, HeldOut::share(settings.held_out)),
            checkpoints,
            learner,
            log,
            _endpoint: endpoint,
            sender: MetricSender::start(context.client.clone()),
            state,
            settings,
            context,
            _lock: lock,
        };
        session.follow_divergence().await?;
        session.refill().await?;
        Ok(session)
    }

    /// Brings the games that were in the window back.
    async fn refill(&mut self) -> anyhow::Result<()> {
        let capacity = self.state.params.window.max;
        let until = match self.state.cursor {
            // Training begins, perhaps in a folder whose checkpoints are gone: only the newest chunks are needed.
            0 => self.ledger_sync.ready_until(),
            cursor => cursor,
        };
        if self.ledger_sync.ledger().cursor() < until {
            // The ledger's copy was lost; what it held is still with the coordinator.
            self.ledger_sync.update(&self.context.client).await?;
        }
        let client = &self.context.client;
        self.ledger_sync
            .refill(client, &mut self.ingest, until, capacity)
            .await?;
        let positions = self.ingest.training().positions();
        if positions > 0 {
            let positions = quantity(positions, "position");
            tracing::info!("back in the window: {positions}");
        }
        Ok(())
    }
}

/// The games of others, and their share of every batch.
fn open_library(settings: &Settings, context: &SessionContext) -> anyhow::Result<(Window, f64)> {
    let Some(library) = &settings.library else {
        return Ok((Window::new(Vec::new(), 0), 0.0));
    };
    let opened = library.open(settings.dir.join("pgn"), &context.shutdown)?;
    Ok((opened.ok_or(CallError::Stopped)?, library.share))
}

fn resume(
    state: &State,
    path: &Path,
    client: &Client,
    settings: &Settings,
) -> anyhow::Result<Learner> {
    anyhow::ensure!(
        state.run == *client.run_name(),
        "RK-0706: the folder {} belongs to run {}; use another folder for run {}",
        settings.dir.display(),
        state.run,
        client.run_name()
    );
    let learner = Learner::resume(path, &state.params, settings.compute)
        .with_context(|| format!("cannot go on from {}", path.display()))?;
    tracing::info!(
        "going on with run {} after {}",
        state.run,
        quantity(state.step, "step")
    );
    Ok(learner)
}

async fn fresh(client: &Client, settings: &Settings) -> anyhow::Result<(State, Learner)> {
    let info = fetch_run(client).await?;
    let params = info.params.training;
    let (hash, weights) = match info.best {
        Some(number) => {
            tracing::info!("beginning with the run's best network, number {number}");
            fetch_best(client).await?
        }
        None => submit_first(client, settings).await?,
    };
    let first = client
        .network(NetworkName::Number(NetworkNumber(0)))
        .await
        .context("cannot find the run's first network")?;
    let learner = Learner::new(&weights, &params, settings.compute)?;
    let state = State {
        run: client.run_name().clone(),
        seed: settings.seed,
        params,
        candidate: 0,
        step: weights.spec().training_step,
        rate_from: first.spec.training_step,
        parent: hash,
        cursor: 0,
        phase: Phase::Gather,
    };
    Ok((state, learner))
}

/// The run; where there is none of its name, the error names those that there are.
async fn read_run(client: &Client) -> anyhow::Result<RunInfo> {
    let error = match client.run().await {
        Ok(info) => return Ok(info),
        Err(error) => error,
    };
    let mut what = "cannot read the run".to_owned();
    if error.is_missing()
        && let Ok(names) = client.run_names().await
    {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        what = format!(
            "RK-0404: there is no run {} at this coordinator: its runs are {} (--run)",
            client.run_name(),
            names.join(", ")
        );
    }
    Err(anyhow::Error::from(error).context(what))
}

/// The run, whose training parameters can be followed.
pub(super) async fn fetch_run(client: &Client) -> anyhow::Result<RunInfo> {
    let info = read_run(client).await?;
    if let Err(error) = info.params.training.check() {
        anyhow::bail!(
            "RK-0720: run {} cannot be followed: training.{error}; update this trainer, or give the run other \
             parameters (rookery-coordinator run set)",
            info.name
        );
    }
    Ok(info)
}

/// The run's best network.
pub(super) async fn fetch_best(client: &Client) -> anyhow::Result<(ContentHash, Weights)> {
    let info = client
        .network(NetworkName::Best)
        .await
        .context("cannot find the best network")?;
    let bytes = client
        .network_file(info.hash)
        .await
        .context("cannot fetch the best network")?;
    let (verified, weights) = Weights::from_bytes(&bytes)?;
    Ok((verified.hash, weights))
}

async fn submit_first(
    client: &Client,
    settings: &Settings,
) -> anyhow::Result<(ContentHash, Weights)> {
    let weights = match &settings.first {
        FirstNetwork::Shape(shape) => {
            let spec = NetworkSpec {
                creator: creator(),
                ..presets::named_or_shaped(shape)?
            };
            Weights::random(spec, settings.seed)?
        }
        FirstNetwork::File(path) => network_file::read(path)?,
        FirstNetwork::Existing => anyhow::bail!(
            "RK-0703: run {} has no network yet; give it one with --init 6x64 (blocks x filters) or \
             --network FILE",
            client.run_name()
        ),
    };
    let bytes = weights.to_bytes()?;
    let hash = ContentHash::of(&bytes);
    let receipt = client
        .submit(bytes)
        .await
        .context("cannot submit the first network")?;
    anyhow::ensure!(
        receipt.status != NetworkStatus::Rejected,
        "RK-0713: the coordinator has rejected the first network, {hash}"
    );
    tracing::info!(
        "submitted a {} network as number {}: {}",
        weights.spec().shape(),
        receipt.number,
        hash.short()
    );
    exports::offer(client, hash, &weights).await?;
    Ok((hash, weights))
}
