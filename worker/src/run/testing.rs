//! What `run` shares, against a coordinator that answers as a test says.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::Parser as _;
use rookery_backend_cpu::CpuBackend;
use rookery_client::testing::{Answer, Request, Server};
use rookery_common::protocol::jobs::Job;
use rookery_engine::Precision;

use super::*;
use crate::api::Token;
use crate::cli::{Cli, Command};
use crate::config::ConfigFile;
use crate::device_pool::DevicePool;
use crate::spool::testing::games;

/// A worker that plays nothing yet.
pub(super) struct Fixture {
    pub(super) folder: tempfile::TempDir,
    pub(super) shared: Shared,
    /// What the supervisor would hear.
    pub(super) inbox: mpsc::UnboundedReceiver<Event>,
    server: Server,
}

impl Fixture {
    /// Its coordinator gives each request this answer.
    pub(super) async fn new(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let server = Server::start(answer).await;
        let folder = tempfile::tempdir().unwrap();
        let (events, inbox) = mpsc::unbounded_channel();
        let shared = shared(folder.path(), &server.url, events);
        Self {
            folder,
            shared,
            inbox,
            server,
        }
    }

    /// Begins a job and finishes this number of its games.
    pub(super) async fn begin(&self, job: &Job, finished: usize) {
        let spool = &self.shared.spool;
        let backend = self.shared.machine.devices.job_info().class;
        spool.begin(job.clone(), backend).await.unwrap();
        for game in games(job).into_iter().take(finished) {
            spool.keep(job.id, Box::new(game));
        }
    }

    /// What the coordinator was asked so far, for example `DELETE jobs/ID`.
    pub(super) fn asked(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(Request::call).collect()
    }
}

fn shared(folder: &Path, server: &str, events: mpsc::UnboundedSender<Event>) -> Shared {
    let dir = folder.to_str().unwrap();
    let words = ["rookery-worker", "run", "--server", server, "--dir", dir];
    let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
        panic!("another command")
    };
    let settings = Settings::resolve(args, &ConfigFile::default()).unwrap();
    let token = Token::parse("rk_test").unwrap();
    let login = Login::new(Client::new(settings.server.clone()).unwrap(), None, token);
    let machine = Machine {
        devices: DevicePool::single(Arc::new(CpuBackend::new(Precision::F32).unwrap())),
        threads: NonZeroUsize::MIN,
        games: NonZeroUsize::MIN,
        beside: None,
        memory: 1 << 30,
    };
    let shutdown = Shutdown::default();
    let retry = Retry::new(RetryPolicy::default(), shutdown.clone());
    let spool = Spool::open(&folder.join("spool")).unwrap();
    let to_supervisor = events.clone();
    let spool = SpoolHandle::start(spool, move |event| {
        drop(to_supervisor.send(Event::Spool(event)));
    });
    let (counters, stops) = (Arc::default(), (retry, shutdown));
    Shared::new(
        settings,
        machine,
        login,
        stops,
        spool.unwrap(),
        counters,
        events,
    )
    .unwrap()
}
