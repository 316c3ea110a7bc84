//! Runs with their keys, networks and metrics.

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::{ExportReceipt, NetworkInfo, NetworkName};
use rookery_common::protocol::runs::{MetricPoint, RunInfo, RunPatch};
use rookery_common::signing::{RunKey, RunKeyInfo, Signature};

use crate::db::NetworkSubmitted;
use crate::db::error::Result;
use crate::db::model::{EloOrder, ExportDraft, Intake, NetworkDraft, Rejection, RunDraft};

/// Runs with their keys, networks and metrics.
#[async_trait]
pub trait Runs {
    /// Creates a run.
    async fn create_run(&self, run: RunDraft, actor: &str, now: Timestamp) -> Result<()>;
    /// All runs, oldest first.
    async fn runs(&self) -> Result<Vec<RunInfo>>;
    /// One run.
    async fn run(&self, run: &RunName) -> Result<RunInfo>;
    /// Changes a run.
    async fn patch_run(
        &self,
        run: &RunName,
        patch: RunPatch,
        actor: &str,
        now: Timestamp,
    ) -> Result<RunInfo>;
    /// Deletes an archived run; what it leaves is removed by [`remove_deleted`](Self::remove_deleted), and its
    /// blobs are needed by nothing any more.
    async fn delete_run(&self, run: &RunName, actor: &str, now: Timestamp) -> Result<()>;
    /// Removes some of what deleted runs have left, and tells how many rows; 0 when nothing is left.
    async fn remove_deleted(&self) -> Result<u64>;
    /// What was acknowledged in a run since `since`.
    async fn intake(&self, run: &RunName, since: Timestamp) -> Result<Intake>;
    /// The keys of a run, oldest first; the last one is in use.
    async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>>;
    /// Makes a key the run's; every one but the first is endorsed by the one before.
    async fn add_run_key(
        &self,
        run: &RunName,
        key: RunKey,
        endorsement: Option<Signature>,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Keeps signatures of networks of a run; those that are there already stay.
    async fn add_signatures(
        &self,
        run: &RunName,
        key: RunKey,
        signatures: Vec<(ContentHash, Signature)>,
        now: Timestamp,
    ) -> Result<()>;
    /// The signature of a network by a key.
    async fn signature(
        &self,
        run: &RunName,
        network: &ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>>;
    /// Refuses a network for which a run has no room, as too many of its candidates are not decided
    /// yet. There is room for one that the run has.
    async fn must_have_room(&self, run: &RunName, network: &ContentHash) -> Result<()>;
    /// Enters a network: the first becomes best, a later one opens its gate match, waits for the
    /// present one to end, or is promoted at once if the rule says so.
    async fn submit_network(
        &self,
        network: NetworkDraft,
        now: Timestamp,
    ) -> Result<NetworkSubmitted>;
    /// Rejects a candidate, whatever its gate match says; the next one's begins. The answer is what
    /// happened.
    async fn reject_network(
        &self,
        run: &RunName,
        rejection: Rejection,
        now: Timestamp,
    ) -> Result<Vec<Event>>;
    /// Gives an anchor another Elo, or none. The ratings are to be fitted again then.
    async fn set_anchor_elo(&self, run: &RunName, order: EloOrder, now: Timestamp) -> Result<()>;
    /// Networks of a run, newest first.
    async fn networks(&self, run: &RunName) -> Result<Vec<NetworkInfo>>;
    /// The same, of puzzles only how many each network tried and solved.
    async fn networks_in_short(&self, run: &RunName) -> Result<Vec<NetworkInfo>>;
    /// One network.
    async fn network(&self, run: &RunName, name: NetworkName) -> Result<NetworkInfo>;
    /// A network by its file, in whichever run.
    async fn network_by_hash(&self, hash: &ContentHash) -> Result<NetworkInfo>;
    /// Enters a stored export of a network; another one in its place is a conflict.
    async fn add_export(&self, export: ExportDraft, now: Timestamp) -> Result<ExportReceipt>;
    /// Adds a trainer's metrics; a step that was reported before is replaced.
    async fn add_metrics(
        &self,
        run: &RunName,
        points: Vec<MetricPoint>,
        now: Timestamp,
    ) -> Result<()>;
    /// Metrics of a run after a step, in order.
    async fn metrics(
        &self,
        run: &RunName,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<MetricPoint>>;
    /// Metrics of a run in order, from its beginning to the last one: at most so many, and of those
    /// whose steps lie closer than that many do in all, only some.
    async fn metrics_throughout(&self, run: &RunName, most: u32) -> Result<Vec<MetricPoint>>;
}
