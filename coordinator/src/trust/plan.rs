//! Open audits get their tasks: the chunk is read and searches of it are chosen by chance. Then somebody is
//! drawn for each, and what nobody confirms is decided.

use std::time::Duration;

use rookery_common::audit::{AuditDepth, Span, sample, warm_up};
use rookery_common::protocol::audits::{AuditTask, AuditedRules};

use super::compare::{self, AuditError};
use super::drift::suspects;
use super::follow;
use super::rate::{audit_depth, audited_parts, match_positions};
use crate::app::App;
use crate::archives::{ArchiveError, read_chunk};
use crate::blobs::BlobError;
use crate::db::{AuditPlan, UnplannedAudit};
use crate::random;

/// Between two looks for audits without tasks.
const EVERY: Duration = Duration::from_secs(2);

/// Looks for audits between two looks at drift.
const DRIFT_EVERY: u64 = 30;

/// The same between two looks for gates that wait for audits no more.
const GATES_EVERY: u64 = 15;

/// Plans audits, and looks who drifts, until the coordinator stops.
pub async fn keep_planning(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for look in 0_u64.. {
        ticks.tick().await;
        if look.is_multiple_of(DRIFT_EVERY)
            && let Err(error) = watch_drift(&app).await
        {
            tracing::error!(%error, "RK-0236: A background task failed: drift could not be measured.");
        }
        if let Err(error) = plan_waiting(&app).await {
            tracing::error!(%error, "RK-0236: A background task failed: audits could not be planned.");
        }
        if let Err(error) = draw_waiting(&app).await {
            tracing::error!(%error, "RK-0236: A background task failed: auditors could not be drawn.");
        }
        if let Err(error) = release_audited(&app).await {
            tracing::error!(
                %error, "RK-0236: A background task failed: chunks that waited for their audits could not be released."
            );
        }
        if let Err(error) = decide_overdue(&app).await {
            tracing::error!(%error, "RK-0236: A background task failed: overdue audits could not be decided.");
        }
        if look.is_multiple_of(GATES_EVERY)
            && let Err(error) = settle_gates(&app).await
        {
            tracing::error!(
                %error, "RK-0236: A background task failed: gates that waited for audits could not be decided."
            );
        }
    }
}

/// Brings the recent chunks of contributors who stand out before the auditors.
pub async fn watch_drift(app: &App) -> anyhow::Result<()> {
    for run in app.db.runs().await? {
        let found = suspects(&app.db.samples(&run.name).await?);
        for one in &found {
            tracing::warn!(
                run = %run.name,
                user = one.user.0,
                worker = %one.worker,
                backend = %one.backend,
                z = one.z,
                "A contributor stands out by {}; recent chunks are audited.",
                one.feature
            );
        }
        if !found.is_empty() {
            let now = app.clock.now();
            app.db.suspect(&run.name, found, now).await?;
        }
    }
    Ok(())
}

/// Lets trainers have newcomers' chunks whose audit has passed, or was awaited for long enough.
///
/// # Errors
///
/// If the ledger fails.
pub async fn release_audited(app: &App) -> anyhow::Result<()> {
    app.db.release_audited(app.clock.now()).await?;
    Ok(())
}

/// Decides an audit that no auditor of the operator's has confirmed in time.
pub async fn decide_overdue(app: &App) -> anyhow::Result<()> {
    let effects = app.db.decide_overdue_audit(app.clock.now()).await?;
    follow(app, effects);
    Ok(())
}

/// Ends a gate that has waited for audits of its games for long enough, or whose audits were given up.
pub async fn settle_gates(app: &App) -> anyhow::Result<()> {
    let effects = app.db.settle_waiting_gate(app.clock.now()).await?;
    follow(app, effects);
    Ok(())
}

/// Draws somebody for each audit that waits. Several coordinators may draw for the same one, and who was drawn
/// first stays.
pub async fn draw_waiting(app: &App) -> anyhow::Result<()> {
    let now = app.clock.now();
    let mut drawn = Vec::new();
    for board in app.db.draw_boards(now).await? {
        drawn.extend(board.draw(random::unit)?);
    }
    if !drawn.is_empty() {
        app.db.enter_draws(drawn, now).await?;
    }
    Ok(())
}

/// Plans the audits that wait for it. One whose chunk is lost, or cannot be read as it was accepted,
/// is given up, and one whose chunk cannot be had now waits; neither keeps the others. Several
/// coordinators may plan the same one, and the first plan stands.
pub async fn plan_waiting(app: &App) -> anyhow::Result<()> {
    for audit in app.db.unplanned_audits(app.clock.now()).await? {
        let spans = spans(&audit)?;
        let UnplannedAudit {
            id,
            chunk,
            rules,
            drawing,
            ..
        } = audit;
        let bytes = match read_chunk(&app.db, &*app.blobs, &chunk).await {
            Ok(bytes) => bytes,
            Err(ArchiveError::Database(error)) => return Err(error.into()),
            Err(error @ (ArchiveError::Damaged(_) | ArchiveError::Blob(BlobError::Missing(_)))) => {
                tracing::error!(%chunk, %error, "RK-0242: An audit was abandoned.");
                app.db.plan_audit(id, None).await?;
                continue;
            }
            Err(error) => {
                tracing::warn!(%chunk, %error, "An audit cannot be planned now.");
                continue;
            }
        };
        let found = tokio::task::spawn_blocking({
            let spans = spans.clone();
            move || -> Result<Vec<AuditTask>, AuditError> {
                compare::tasks(&bytes, &spans, drawing.as_ref())
            }
        });
        let plan = match found.await? {
            Ok(tasks) if !tasks.is_empty() => Some(AuditPlan {
                rules,
                spans,
                tasks,
            }),
            Ok(_) => None,
            Err(error) => {
                tracing::error!(%chunk, %error, "RK-0242: An audit was abandoned.");
                None
            }
        };
        app.db.plan_audit(id, plan).await?;
    }
    Ok(())
}

/// Chooses what is searched again. The games of a large chunk are divided into parts, and each is audited as an ordinary
/// chunk.
fn spans(audit: &UnplannedAudit) -> Result<Vec<Span>, getrandom::Error> {
    let games = &audit.games;
    let positions = games.iter().map(|game| game.plies).sum();
    let positions = match audit.rules {
        AuditedRules::Match { .. } => match_positions(games.len() as u32, positions),
        AuditedRules::SelfPlay { .. } | AuditedRules::Puzzles { .. } => positions,
    };
    let (parts, warm_up) = (
        audited_parts(positions, random::unit()?),
        warm_up(&audit.rules),
    );
    let mut spans = Vec::new();
    for part in 0..parts {
        let games = &games[part * games.len() / parts..(part + 1) * games.len() / parts];
        let depth = match audit.sampled_from {
            Some(record) => audit_depth(record, random::unit()?),
            None => AuditDepth::Full,
        };
        spans.extend(sample(games, warm_up, depth, random::seed()?));
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rookery_common::audit::SampledGame;
    use rookery_common::chess::Termination;
    use rookery_common::ids::ContentHash;
    use rookery_common::params::{MatchParams, SelfPlayParams};

    use super::*;

    fn network() -> ContentHash {
        ContentHash::of(b"")
    }

    fn selfplay() -> AuditedRules {
        AuditedRules::SelfPlay {
            network: network(),
            params: SelfPlayParams::default(),
        }
    }

    fn audit(rules: AuditedRules, games: u32, plies: u32) -> UnplannedAudit {
        let game = |index| SampledGame {
            index,
            plies,
            termination: Termination::Checkmate,
        };
        UnplannedAudit {
            id: 1,
            chunk: network(),
            rules,
            drawing: None,
            games: (0..games).map(game).collect(),
            sampled_from: None,
        }
    }

    #[test]
    fn a_large_chunk_has_as_many_spans_as_ordinary_ones_of_its_size() {
        let spans = |games| spans(&audit(selfplay(), games, 100)).unwrap();
        assert_eq!(spans(32).len(), 8);
        let large = spans(16 * 32);
        assert_eq!(large.len(), 16 * 8);
        let games: HashSet<u32> = large.iter().map(|span| span.game).collect();
        assert_eq!(games.len(), large.len(), "each of another game");
        let parts: HashSet<u32> = games.iter().map(|game| game / 32).collect();
        assert_eq!(parts.len(), 16, "from everywhere in the chunk");
    }

    #[test]
    fn short_games_of_matches_count_as_ordinary_ones() {
        let rules = AuditedRules::Match {
            candidate: network(),
            opponent: network(),
            params: MatchParams::default(),
        };
        assert_eq!(spans(&audit(rules, 128, 7)).unwrap().len(), 4 * 8);
        assert_eq!(spans(&audit(selfplay(), 128, 7)).unwrap().len(), 8);
    }
}
