//! Whole jobs by workers of all habits, while the coordinator may be killed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::calls::Ground;
use super::candidates::Submitter;
use super::{PATIENCE, Swarm, on_connections};
use crate::cli::Victim;
use crate::http::Connection;
use crate::measure::{Pace, Record};
use crate::target::Target;
use crate::workers::{Habit, Turn, Worker};

/// How long a connection waits when no worker is due.
const PAUSE: Duration = Duration::from_millis(5);

/// A worker and when it does its next step; the earliest is the greatest.
struct Due {
    at: Instant,
    worker: Worker,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

/// Workers that wait for their next step.
#[derive(Default)]
struct Queue(Mutex<BinaryHeap<Due>>);

impl Queue {
    /// A worker whose time has come.
    fn due(&self) -> Option<Due> {
        let mut heap = self.0.lock();
        let due = heap.peek().is_some_and(|first| first.at <= Instant::now());
        if due { heap.pop() } else { None }
    }

    /// Any worker with a chunk that was not acknowledged.
    fn take_sending(&self) -> Vec<Due> {
        let workers = std::mem::take(&mut *self.0.lock());
        workers
            .into_iter()
            .filter(|due| due.worker.is_sending())
            .collect()
    }
}

pub(super) async fn run(swarm: &mut Swarm) -> anyhow::Result<(Record, Duration)> {
    let cli = &swarm.cli;
    let queue = Queue::default();
    for index in 0..cli.workers {
        let habit = Habit::of(index, cli);
        let worker = Worker::new(index, cli.contributors, habit, cli.seed);
        queue.0.lock().push(Due {
            at: Instant::now(),
            worker,
        });
    }
    let queue = Arc::new(queue);
    let pace = Pace::new(cli.seconds, cli.rate);
    let ground = swarm.ground.clone();
    let load = on_connections(cli.connections, &ground, |ground, connection, _| {
        work(ground, connection, queue.clone(), pace.clone())
    });
    let submitter = Submitter::of(swarm)?;
    let submissions = async {
        match submitter {
            Some(submitter) => submitter.submit_now_and_then(&ground).await,
            None => std::future::pending().await,
        }
    };
    let (every, victims) = (swarm.cli.kill_every, &swarm.cli.kill);
    let load = tokio::select! {
        load = load => load?,
        failed = kill_now_and_then(&mut swarm.target, &ground, every, victims) => return Err(failed),
        failed = submissions => return Err(failed),
    };
    if swarm.cli.kill_every.is_some() {
        // The load may have ended while the coordinator was down.
        swarm.target.restart().await?;
    }
    drain(&ground, &queue).await?;
    Ok(load)
}

/// Kills one after the other and starts it again, until that fails.
async fn kill_now_and_then(
    target: &mut Target,
    ground: &Ground,
    every: Option<f64>,
    victims: &[Victim],
) -> anyhow::Error {
    let Some(every) = every else {
        return std::future::pending().await;
    };
    let begun = Instant::now();
    for victim in victims.iter().copied().cycle() {
        let share = 0.5 + f64::from(begun.elapsed().subsec_nanos() % 1000) / 1000.0;
        tokio::time::sleep(Duration::from_secs_f64(every * share)).await;
        if let Err(error) = target.kill(victim).await {
            return error;
        }
        ground.book.with(|accounts| accounts.kills += 1);
    }
    anyhow::anyhow!("there is nothing to kill")
}

async fn work(
    ground: Arc<Ground>,
    mut connection: Connection,
    queue: Arc<Queue>,
    pace: Pace,
) -> anyhow::Result<Record> {
    let mut record = Record::default();
    while let Some(begun) = pace.next().await {
        let Some(Due { mut worker, .. }) = queue.due() else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let mut turn = Turn {
            ground: &ground,
            connection: &mut connection,
            record: &mut record,
            begun,
        };
        let at = worker.step(&mut turn).await?;
        queue.0.lock().push(Due { at, worker });
    }
    Ok(record)
}

/// Chunks that were sent and not acknowledged are sent until they are, as workers do.
async fn drain(ground: &Arc<Ground>, queue: &Queue) -> anyhow::Result<()> {
    let (mut connection, mut unmeasured) = (ground.connection()?, Record::default());
    let until = Instant::now() + PATIENCE;
    for mut due in queue.take_sending() {
        while due.worker.is_sending() && Instant::now() < until {
            let mut turn = Turn {
                ground,
                connection: &mut connection,
                record: &mut unmeasured,
                begun: Instant::now(),
            };
            due.worker.step(&mut turn).await?;
        }
    }
    Ok(())
}
