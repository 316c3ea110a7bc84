//! Runs with their keys, networks and metrics.

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::{ExportReceipt, NetworkInfo, NetworkName};
use rookery_common::protocol::runs::{MetricPoint, RunInfo, RunPatch};
use rookery_common::signing::{RunKey, RunKeyInfo, Signature};

use crate::db::NetworkSubmitted;
use crate::db::error::Result;
use crate::db::models::{anchors, keys, metrics, networks, runs};
use crate::db::sql::Ledger;
use crate::db::sql::transactions::{in_read, in_write};
use crate::db::types::{EloOrder, ExportDraft, Intake, NetworkDraft, Rejection, RunDraft};
use crate::db::use_cases::{rejections, submissions};

impl Ledger {
    /// Creates a run.
    pub async fn create_run(&self, run: RunDraft, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        in_write!(self, runs::create(run, actor, now))
    }

    /// All runs, oldest first.
    pub async fn runs(&self) -> Result<Vec<RunInfo>> {
        in_read!(self.readers, runs::all())
    }

    /// One run.
    pub async fn run(&self, run: &RunName) -> Result<RunInfo> {
        in_read!(self.readers, runs::info(run))
    }

    /// Changes a run.
    pub async fn patch_run(
        &self,
        run: &RunName,
        patch: RunPatch,
        actor: &str,
        now: Timestamp,
    ) -> Result<RunInfo> {
        let (run, actor) = (run.clone(), actor.to_owned());
        in_write!(self, runs::patch(run, patch, actor, now))
    }

    /// Deletes an archived run; what it leaves is removed by [`remove_deleted`](Self::remove_deleted), and its
    /// blobs are needed by nothing any more.
    pub async fn delete_run(&self, run: &RunName, actor: &str, now: Timestamp) -> Result<()> {
        let (run, actor) = (run.clone(), actor.to_owned());
        in_write!(self, runs::delete(run, actor, now))
    }

    /// Removes some of what deleted runs have left, and tells how many rows; 0 when nothing is left.
    pub async fn remove_deleted(&self) -> Result<u64> {
        in_write!(self, runs::remove_deleted())
    }

    /// What was acknowledged in a run since `since`.
    pub async fn intake(&self, run: &RunName, since: Timestamp) -> Result<Intake> {
        in_read!(self.readers, runs::intake(run, since))
    }

    /// The keys of a run, oldest first; the last one is in use.
    pub async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>> {
        in_read!(self.readers, keys::of_run(run))
    }

    /// Makes a key the run's; every one but the first is endorsed by the one before.
    pub async fn add_run_key(
        &self,
        run: &RunName,
        key: RunKey,
        endorsement: Option<Signature>,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (run, actor) = (run.clone(), actor.to_owned());
        in_write!(self, keys::add(run, key, endorsement, actor, now))
    }

    /// Keeps signatures of networks of a run; those that are there already stay.
    pub async fn add_signatures(
        &self,
        run: &RunName,
        key: RunKey,
        signatures: Vec<(ContentHash, Signature)>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        in_write!(self, keys::sign(run, key, signatures, now))
    }

    /// The signature of a network by a key.
    pub async fn signature(
        &self,
        run: &RunName,
        network: &ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>> {
        in_read!(self.readers, keys::signature(run, network, key))
    }

    /// Refuses a network for which a run has no room, as too many of its candidates are not decided
    /// yet. There is room for one that the run has.
    pub async fn must_have_room(&self, run: &RunName, network: &ContentHash) -> Result<()> {
        in_read!(self.readers, part "networks", submissions::must_have_room(run, network))
    }

    /// Enters a network: the first becomes best, a later one opens its gate match, waits for the
    /// present one to end, or is promoted at once if the rule says so.
    pub async fn submit_network(
        &self,
        network: NetworkDraft,
        now: Timestamp,
    ) -> Result<NetworkSubmitted> {
        in_write!(self, part "networks", submissions::submit(network, now))
    }

    /// Rejects a candidate, whatever its gate match says; the next one's begins. The answer is what
    /// happened.
    pub async fn reject_network(
        &self,
        run: &RunName,
        rejection: Rejection,
        now: Timestamp,
    ) -> Result<Vec<Event>> {
        let run = run.clone();
        in_write!(self, rejections::reject(run, rejection, now))
    }

    /// Gives an anchor another Elo, or none. The ratings are to be fitted again then.
    pub async fn set_anchor_elo(
        &self,
        run: &RunName,
        order: EloOrder,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        in_write!(self, anchors::set(run, order, now))
    }

    /// Networks of a run, newest first.
    pub async fn networks(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        in_read!(self.readers, networks::all(run))
    }

    /// The same, of puzzles only how many each network tried and solved.
    pub async fn networks_in_short(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        in_read!(self.readers, networks::in_short(run))
    }

    /// One network.
    pub async fn network(&self, run: &RunName, name: NetworkName) -> Result<NetworkInfo> {
        in_read!(self.readers, networks::one(run, name))
    }

    /// A network by its file, in whichever run.
    pub async fn network_by_hash(&self, hash: &ContentHash) -> Result<NetworkInfo> {
        in_read!(self.readers, networks::by_hash(hash))
    }

    /// Enters a stored export of a network; another one in its place is a conflict.
    pub async fn add_export(&self, export: ExportDraft, now: Timestamp) -> Result<ExportReceipt> {
        in_write!(self, part "exports", submissions::add_export(export, now))
    }

    /// Adds a trainer's metrics; a step that was reported before is replaced.
    pub async fn add_metrics(
        &self,
        run: &RunName,
        points: Vec<MetricPoint>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        in_write!(self, metrics::add(run, points, now))
    }

    /// Metrics of a run after a step, in order.
    pub async fn metrics(
        &self,
        run: &RunName,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<MetricPoint>> {
        in_read!(self.readers, metrics::list(run, after, limit))
    }

    /// Metrics of a run in order, from its beginning to the last one: at most so many, and of those
    /// whose steps lie closer than that many do in all, only some.
    pub async fn metrics_throughout(&self, run: &RunName, most: u32) -> Result<Vec<MetricPoint>> {
        in_read!(self.readers, metrics::throughout(run, most))
    }
}
