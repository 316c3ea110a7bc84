//! What `run` shares, against a coordinator that answers as a test says.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::Parser as _;
use rookery_backend_cpu::CpuBackend;
use rookery_common::protocol::jobs::Job;
use rookery_common::protocol::{API_PREFIX, Problem, ProblemCode};
use rookery_engine::Precision;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::api::Token;
use crate::cli::{Cli, Command};
use crate::config::ConfigFile;
use crate::device_pool::DevicePool;
use crate::spool::testing::games;

/// An HTTP status and a body.
pub(super) type Answer = (u16, String);

/// A good answer.
pub(super) fn answer(body: &impl Serialize) -> Answer {
    (200, serde_json::to_string(body).unwrap())
}

/// An answer that tells of a problem.
pub(super) fn problem(code: ProblemCode) -> Answer {
    let problem = Problem::new(code, "in a test");
    (problem.status, serde_json::to_string(&problem).unwrap())
}

/// A worker that plays nothing yet.
pub(super) struct Fixture {
    pub(super) folder: tempfile::TempDir,
    pub(super) shared: Shared,
    /// What the supervisor would hear.
    pub(super) inbox: mpsc::UnboundedReceiver<Event>,
    /// What the coordinator was asked, for example `DELETE jobs/ID`.
    pub(super) requests: mpsc::UnboundedReceiver<String>,
}

impl Fixture {
    /// Its coordinator gives each request this answer.
    pub(super) async fn new(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let (log, requests) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(respond(stream, log.clone(), Arc::clone(&answer)));
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let (events, inbox) = mpsc::unbounded_channel();
        let shared = shared(folder.path(), &server, events);
        Self {
            folder,
            shared,
            inbox,
            requests,
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

    /// The requests that came so far.
    pub(super) fn asked(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

async fn respond(
    mut stream: TcpStream,
    log: mpsc::UnboundedSender<String>,
    answer: Arc<impl Fn(&str) -> Answer>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| rest.split('\r').next().unwrap().parse().unwrap());
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let path = path.strip_prefix(API_PREFIX).unwrap();
    let request = format!("{} {}", method.to_uppercase(), &path[1..]);
    let (status, body) = answer(&request);
    log.send(request).unwrap();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    // A client that has gone needs no answer.
    drop(stream.write_all((head + &body).as_bytes()).await);
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
