//! One route at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::calls::Refusal;
use super::{Held, Swarm, on_connections};
use crate::book::Fate;
use crate::games::Made;
use crate::measure::{Pace, Record, Route};

/// Jobs, which are not played.
pub(super) async fn jobs(swarm: &Swarm) -> anyhow::Result<(Record, Duration)> {
    let pace = Pace::new(swarm.cli.seconds, swarm.cli.rate);
    on_connections(
        swarm.cli.connections,
        &swarm.ground,
        |ground, mut connection, lane| {
            let pace = pace.clone();
            async move {
                let mut record = Record::default();
                let contributor = lane % ground.contributors.len();
                let worker = format!("swarm-{lane}");
                while let Some(begun) = pace.next().await {
                    let answer = ground.lease(&mut connection, contributor, &worker).await;
                    record.note(Route::Jobs, begun, Refusal::error_of(&answer));
                }
                Ok(record)
            }
        },
    )
    .await
}

/// Heartbeats of all workers in turn.
pub(super) async fn heartbeats(swarm: &Swarm) -> anyhow::Result<(Record, Duration)> {
    let held = Arc::new(swarm.take_jobs(swarm.cli.workers).await?);
    let next = Arc::new(AtomicUsize::new(0));
    let pace = Pace::new(swarm.cli.seconds, swarm.cli.rate);
    on_connections(
        swarm.cli.connections,
        &swarm.ground,
        |ground, mut connection, _| {
            let (held, next, pace) = (held.clone(), next.clone(), pace.clone());
            async move {
                let mut record = Record::default();
                while let Some(begun) = pace.next().await {
                    let place = next.fetch_add(1, Ordering::Relaxed) % held.len();
                    let Held { contributor, job } = &held[place];
                    let answer = ground
                        .heartbeat(&mut connection, *contributor, job.id)
                        .await;
                    record.note(Route::Heartbeats, begun, Refusal::error_of(&answer));
                }
                Ok(record)
            }
        },
    )
    .await
}

/// Chunks of jobs that were taken before; one that got no answer is sent again.
pub(super) async fn uploads(swarm: &Swarm) -> anyhow::Result<(Record, Duration)> {
    let held = swarm.take_jobs(swarm.cli.chunks).await?;
    let made: Vec<(Held, Made)> = held
        .into_iter()
        .map(|held| swarm.ground.chunk(&held.job).map(|made| (held, made)))
        .collect::<anyhow::Result<_>>()?;
    let (made, next) = (Arc::new(made), Arc::new(AtomicUsize::new(0)));
    let pace = Pace::new(swarm.cli.seconds, swarm.cli.rate);
    on_connections(
        swarm.cli.connections,
        &swarm.ground,
        |ground, mut connection, _| {
            let (made, next, pace) = (made.clone(), next.clone(), pace.clone());
            async move {
                let mut record = Record::default();
                while let Some(mut begun) = pace.next().await {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some((held, made)) = made.get(place) else {
                        break;
                    };
                    loop {
                        let answer = ground.upload(&mut connection, held.contributor, made).await;
                        record.note(Route::Uploads, begun, Refusal::error_of(&answer));
                        match answer {
                            Ok(_) => break ground.book.ended(held.job.id, Fate::Finished),
                            Err(refusal) if refusal.passes() && !pace.is_over() => {
                                tokio::time::sleep(refusal.wait().unwrap_or_default()).await;
                                begun = std::time::Instant::now();
                            }
                            Err(_) => break,
                        }
                    }
                }
                Ok(record)
            }
        },
    )
    .await
}
