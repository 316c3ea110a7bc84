//! What a fleet has shown.

use std::collections::HashMap;

use jiff::Timestamp;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::trust::TrustLevel;
use serde::Serialize;

use super::FleetParams;
use super::account::Role;
use super::fleet::Fleet;
use super::games::PLIES;
use crate::support::app::run;

/// Seconds that a chunk stays in the window of a trainer.
const WINDOW: i64 = 24 * 3_600;
/// Seconds after which it is looked whether a false chunk is excluded.
const DELAYS: [i64; 5] = [60, 600, 3_600, 2 * 3_600, 6 * 3_600];

#[derive(Debug, Serialize)]
pub(super) struct Report {
    params: FleetParams,
    pub(super) chunks: usize,
    pub(super) false_chunks: usize,
    /// Of the false chunks, those that are excluded in the end.
    pub(super) excluded: usize,
    /// Of the false chunks that came six hours before the end or earlier, the share that was excluded a
    /// minute, ten minutes, an hour, two, six hours after it came.
    excluded_after: [f64; 5],
    /// Of the chunks that came in, the share that is false.
    pub(super) false_share: f64,
    /// The same of what a trainer draws from a window of a day.
    pub(super) false_share_trained: f64,
    /// Sybils that have lied, and of those the ones in quarantine.
    pub(super) sybils: usize,
    pub(super) sybils_found: usize,
    /// Minutes from the first false chunk to quarantine, of those that were found: median and longest.
    detection_minutes: [i64; 2],
    /// False chunks that a Sybil has uploaded before it was found, or till the end: mean.
    pub(super) false_before_found: f64,
    pub(super) honest_quarantined: usize,
    honest_chunks_excluded: usize,
    pub(super) accusations: u64,
    acquittals: u64,
    pub(super) audits: u64,
    /// Audits answered for each chunk.
    audits_per_chunk: f64,
    /// Searches made for audits in all searches.
    pub(super) cost: f64,
}

impl Fleet {
    /// What has come of it until now.
    pub(super) async fn report(&self) -> Report {
        let end = self.start + self.params.hours * 3_600;
        let excluded_at = self.excluded_at().await;
        let quarantined_at = self.quarantined_at().await;
        let at = |chunk: &ContentHash| excluded_at.get(chunk).copied();
        let all_false: Vec<_> = self.chunks.iter().filter(|c| c.is_false).collect();
        let early = |delay: i64| {
            let came = all_false.iter().filter(|c| c.at + DELAYS[3] <= end);
            let out = came
                .clone()
                .filter(|c| at(&c.hash).is_some_and(|t| t <= c.at + delay));
            out.count() as f64 / came.count().max(1) as f64
        };
        let in_window = |is_false: bool| -> f64 {
            let wanted = self.chunks.iter().filter(|c| c.is_false || !is_false);
            let seconds = wanted.map(|c| {
                let last = (c.at + WINDOW).min(end);
                at(&c.hash).map_or(last, |out| out.min(last)) - c.at
            });
            seconds.sum::<i64>() as f64
        };
        let liars = self.accounts.iter().enumerate();
        let liars: Vec<_> = liars.filter_map(|(n, a)| Some((n, a.lied_at?))).collect();
        let mut waits: Vec<i64> = liars
            .iter()
            .filter_map(|(n, lied)| Some((quarantined_at[*n]? - lied) / 60))
            .collect();
        waits.sort_unstable();
        let unseen = |c: &&&super::fleet::Played| quarantined_at[c.author].is_none_or(|t| c.at < t);
        let honest = |n: usize| self.accounts[n].role != Role::Sybil;
        let quarantined = quarantined_at.iter().enumerate();
        let wrongly = self.chunks.iter().filter(|c| honest(c.author));
        let searched = self.searched as f64;
        let positions = self.chunks.len() as f64 * f64::from(self.params.games * PLIES);
        let per_chunk = self.audits as f64 / self.chunks.len().max(1) as f64;
        Report {
            params: self.params.clone(),
            chunks: self.chunks.len(),
            false_chunks: all_false.len(),
            excluded: all_false.iter().filter(|c| at(&c.hash).is_some()).count(),
            excluded_after: DELAYS.map(early),
            false_share: all_false.len() as f64 / self.chunks.len().max(1) as f64,
            false_share_trained: in_window(true) / in_window(false).max(1.0),
            sybils: liars.len(),
            sybils_found: waits.len(),
            detection_minutes: [
                waits.get(waits.len() / 2).copied().unwrap_or_default(),
                waits.last().copied().unwrap_or_default(),
            ],
            false_before_found: all_false.iter().filter(unseen).count() as f64
                / liars.len().max(1) as f64,
            honest_quarantined: quarantined
                .filter(|(n, t)| t.is_some() && honest(*n))
                .count(),
            honest_chunks_excluded: wrongly.filter(|c| at(&c.hash).is_some()).count(),
            accusations: self.accusations,
            acquittals: self.acquittals,
            audits: self.audits,
            audits_per_chunk: per_chunk,
            cost: searched / (positions + searched).max(1.0),
        }
    }

    /// Since when chunks are excluded; a newcomer's that then fails its audit, since it came.
    async fn excluded_at(&self) -> HashMap<ContentHash, i64> {
        let (mut found, mut after) = (HashMap::new(), 0);
        loop {
            let page = self.app.app.db.holds(&run(), after, 1_000).await.unwrap();
            for hold in page.holds {
                let at: Timestamp = hold.at.parse().unwrap();
                if hold.held {
                    found.entry(hold.chunk).or_insert(at.as_second());
                } else {
                    found.remove(&hold.chunk);
                }
            }
            after = page.next;
            if !page.more {
                return found;
            }
        }
    }

    /// Since when accounts are in quarantine.
    async fn quarantined_at(&self) -> Vec<Option<i64>> {
        let mut all = Vec::new();
        for account in &self.accounts {
            let trust = self.app.app.db.trust(&account.name).await.unwrap();
            assert_eq!(
                trust.level == TrustLevel::Quarantined,
                trust.quarantine.is_some()
            );
            let since = trust
                .quarantine
                .map(|one| one.since.parse::<Timestamp>().unwrap());
            all.push(since.map(Timestamp::as_second));
        }
        all
    }
}

impl Report {
    pub(super) const HEAD: &str = "| fleet | root | Sybils | false chunks | of all | excluded after 1 min, 10 min, 1 h, \
         2 h, 6 h | in the end | trained on | found | minutes | false before found | honest quarantined | audits a chunk | \
         cost |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

    pub(super) fn row(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let p = &self.params;
        let strategy = serde_json::to_value(p.strategy).unwrap();
        let root = serde_json::to_value(p.root).unwrap();
        format!(
            "| {} accounts, {} | {} | {} {}, 1 in {} | {} | {} | {} | {} | {} | {} of {} | {}, {} | {:.1} | {} | {:.3} | {:.2} % |",
            p.accounts,
            if p.record > 0 {
                format!("{} passed", p.record)
            } else {
                "new".to_owned()
            },
            root.as_str().unwrap(),
            percent(p.sybils),
            strategy.as_str().unwrap(),
            p.lie_every,
            self.false_chunks,
            percent(self.false_share),
            self.excluded_after.map(percent).join(", "),
            percent(self.excluded as f64 / self.false_chunks.max(1) as f64),
            percent(self.false_share_trained),
            self.sybils_found,
            self.sybils,
            self.detection_minutes[0],
            self.detection_minutes[1],
            self.false_before_found,
            self.honest_quarantined,
            self.audits_per_chunk,
            100.0 * self.cost,
        )
    }
}
