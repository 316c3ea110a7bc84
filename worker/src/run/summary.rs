//! What this worker has given, and what the coordinator has counted of it: once an hour and at the end.

use std::time::Duration;

use rookery_common::protocol::people::{ContributorDetail, Credit, Span};
use rookery_common::protocol::trust::{TrustInfo, TrustLevel};
use rookery_common::text::{printable, quantity};

use super::Shared;
use super::status::Uploaded;
use super::upload::Drained;
use crate::api;
use crate::shutdown::Phase;
use crate::spool::Remains;

/// Timeout of the question what was counted, at the end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Shown of a reason at most.
const REASON_CHARS: usize = 400;

/// What was given in some time, and how many positions an hour were searched for it: games of puzzles are short.
pub(super) fn given(uploaded: Uploaded, positions: u64, time: Duration) -> String {
    let speed = positions as f64 / time.as_secs_f64().max(1.0) * 3600.0;
    format!("{} ({speed:.0} positions/h)", uploaded.words())
}

/// Logs what the coordinator has counted, if it says so in time.
pub(super) async fn log_account(shared: &Shared) {
    match tokio::time::timeout(PATIENCE, Account::ask(shared)).await {
        Ok(Ok(account)) if account.is_quarantined() => tracing::warn!("{}", account.words()),
        Ok(Ok(account)) => tracing::info!("{}", account.words()),
        Ok(Err(error)) => tracing::debug!("what was counted is not known: {error}"),
        Err(_) => tracing::debug!("what was counted is not known in time"),
    }
}

/// Tells at the end what was done and what is left.
pub(super) async fn log_end(shared: &Shared, sent: Drained) {
    let Remains { kept, lost } = shared.spool.end().await.unwrap_or_default();
    if lost > 0 {
        tracing::error!("RK-0513: finished games are lost: {lost} could not be written");
    }
    let uploaded = shared.status.uploaded();
    // Who stops at once does not wait for what the coordinator has counted.
    if uploaded.chunks > 0 && !shared.shutdown.has_reached(Phase::Stopping) {
        log_account(shared).await;
    }
    let positions = shared.status.counts().positions;
    let uploaded = given(uploaded, positions, shared.begun.elapsed());
    match (sent, kept) {
        (Drained::All, 0) => tracing::info!("ended; uploaded: {uploaded}"),
        _ => tracing::warn!(
            "ended; uploaded: {uploaded}; kept and uploaded at the next start: {}",
            quantity(kept, "finished game")
        ),
    }
}

/// What the coordinator knows of this worker's account.
#[derive(Debug)]
struct Account {
    trust: TrustInfo,
    detail: ContributorDetail,
}

impl Account {
    async fn ask(shared: &Shared) -> api::Result<Self> {
        let trust = shared.client.trust().await?;
        let detail = shared.client.contributor(&trust.name).await?;
        Ok(Self { trust, detail })
    }

    fn is_quarantined(&self) -> bool {
        self.trust.level == TrustLevel::Quarantined
    }

    /// What was counted, or why nothing was.
    fn words(&self) -> String {
        if self.is_quarantined() {
            return quarantine(&self.trust);
        }
        let counted = |span: Span| {
            let mut spans = self.detail.credit.iter();
            spans.find(|credit| credit.span == span)
        };
        let (day, all) = (counted(Span::Day), counted(Span::All));
        let credit = day.map(|day| day.credit).unwrap_or_default();
        let mut text = format!(
            "counted for {} in the last 24 hours: {}, {}",
            printable(&self.trust.name, REASON_CHARS),
            words(credit),
            quantity(credit.positions, "position")
        );
        if let Some(rank) = day.and_then(|day| day.rank) {
            text += &format!(", rank {rank}");
        }
        let credit = all.map(|all| all.credit).unwrap_or_default();
        text += &format!("; in all: {}", words(credit));
        if self.trust.held_chunks > 0 {
            let chunks = quantity(self.trust.held_chunks, "chunk");
            text += &format!("; held back: {chunks}");
        }
        text
    }
}

/// Games and audits, as the worker counts what it uploads.
fn words(credit: Credit) -> String {
    let Credit { games, audits, .. } = credit;
    let uploaded = Uploaded {
        games,
        audits,
        chunks: 0,
    };
    uploaded.words()
}

/// Why nothing is counted.
fn quarantine(trust: &TrustInfo) -> String {
    let reason = match &trust.quarantine {
        Some(quarantine) => format!(" ({})", printable(&quarantine.reason, REASON_CHARS)),
        None => String::new(),
    };
    format!(
        "RK-0414: your account is in quarantine{reason}: none of its games count until the operator lifts it"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn account(level: &str, held: u32, rank: Option<u64>) -> Account {
        let trust = json!({
            "name": "ann", "level": level, "audits_passed": 1, "audits_failed": 0, "audits_open": 0,
            "audit_rate": 0.1, "held_chunks": held,
            "quarantine": {"reason": "audits\u{1b}[2J failed", "by": "audits", "since": ""},
        });
        let detail = json!({
            "name": "ann", "games": 900, "positions": 9000, "active_workers": 1, "joined_at": "",
            "credit": [
                {"span": "24h", "credit": {"games": 1, "positions": 90, "audits": 2}, "rank": rank},
                {"span": "all", "credit": {"games": 900, "positions": 9000}},
            ],
            "workers": [],
        });
        Account {
            trust: serde_json::from_value(trust).unwrap(),
            detail: serde_json::from_value(detail).unwrap(),
        }
    }

    #[test]
    fn positions_an_hour_follow_from_the_time() {
        let uploaded = Uploaded {
            games: 30,
            audits: 1,
            chunks: 2,
        };
        let half_an_hour = Duration::from_secs(1800);
        assert_eq!(
            given(uploaded, 3000, half_an_hour),
            "30 games, 1 audit (6000 positions/h)"
        );
    }

    #[test]
    fn the_account_tells_what_was_counted() {
        assert_eq!(
            account("trusted", 0, Some(3)).words(),
            "counted for ann in the last 24 hours: 1 game, 2 audits, 90 positions, rank 3; in all: 900 games"
        );
        let held = account("probation", 2, None).words();
        assert!(
            held.ends_with("90 positions; in all: 900 games; held back: 2 chunks"),
            "{held}"
        );
    }

    #[test]
    fn an_account_in_quarantine_claims_no_games() {
        let text = account("quarantined", 2, Some(1)).words();
        assert_eq!(
            text,
            "RK-0414: your account is in quarantine (audits[2J failed): none of its games count until the operator lifts it"
        );
    }
}
