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
use crate::db::rooms::Runs;
use crate::db::sql::doors::{read, write};
use crate::db::sql::{SqlDatabase, anchors, exports, keys, metrics, networks, rejections, runs};

#[async_trait]
impl Runs for SqlDatabase {
    async fn create_run(&self, run: RunDraft, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        write!(self, runs::create(run, actor, now))
    }

    async fn runs(&self) -> Result<Vec<RunInfo>> {
        read!(self.readers, runs::all())
    }

    async fn run(&self, run: &RunName) -> Result<RunInfo> {
        read!(self.readers, runs::info(run))
    }

    async fn patch_run(
        &self,
        run: &RunName,
        patch: RunPatch,
        actor: &str,
        now: Timestamp,
    ) -> Result<RunInfo> {
        let (run, actor) = (run.clone(), actor.to_owned());
        write!(self, runs::patch(run, patch, actor, now))
    }

    async fn delete_run(&self, run: &RunName, actor: &str, now: Timestamp) -> Result<()> {
        let (run, actor) = (run.clone(), actor.to_owned());
        write!(self, runs::delete(run, actor, now))
    }

    async fn remove_deleted(&self) -> Result<u64> {
        write!(self, runs::remove_deleted())
    }

    async fn intake(&self, run: &RunName, since: Timestamp) -> Result<Intake> {
        read!(self.readers, runs::intake(run, since))
    }

    async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>> {
        read!(self.readers, keys::of_run(run))
    }

    async fn add_run_key(
        &self,
        run: &RunName,
        key: RunKey,
        endorsement: Option<Signature>,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (run, actor) = (run.clone(), actor.to_owned());
        write!(self, keys::add(run, key, endorsement, actor, now))
    }

    async fn add_signatures(
        &self,
        run: &RunName,
        key: RunKey,
        signatures: Vec<(ContentHash, Signature)>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        write!(self, keys::sign(run, key, signatures, now))
    }

    async fn signature(
        &self,
        run: &RunName,
        network: &ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>> {
        read!(self.readers, keys::signature(run, network, key))
    }

    async fn must_have_room(&self, run: &RunName, network: &ContentHash) -> Result<()> {
        read!(self.readers, networks::must_have_room(run, network))
    }

    async fn submit_network(
        &self,
        network: NetworkDraft,
        now: Timestamp,
    ) -> Result<NetworkSubmitted> {
        write!(self, networks::submit(network, now))
    }

    async fn reject_network(
        &self,
        run: &RunName,
        rejection: Rejection,
        now: Timestamp,
    ) -> Result<Vec<Event>> {
        let run = run.clone();
        write!(self, rejections::reject(run, rejection, now))
    }

    async fn set_anchor_elo(&self, run: &RunName, order: EloOrder, now: Timestamp) -> Result<()> {
        let run = run.clone();
        write!(self, anchors::set(run, order, now))
    }

    async fn networks(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        read!(self.readers, networks::all(run))
    }

    async fn networks_in_short(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        read!(self.readers, networks::in_short(run))
    }

    async fn network(&self, run: &RunName, name: NetworkName) -> Result<NetworkInfo> {
        read!(self.readers, networks::one(run, name))
    }

    async fn network_by_hash(&self, hash: &ContentHash) -> Result<NetworkInfo> {
        read!(self.readers, networks::by_hash(hash))
    }

    async fn add_export(&self, export: ExportDraft, now: Timestamp) -> Result<ExportReceipt> {
        write!(self, exports::add(export, now))
    }

    async fn add_metrics(
        &self,
        run: &RunName,
        points: Vec<MetricPoint>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        write!(self, metrics::add(run, points, now))
    }

    async fn metrics(
        &self,
        run: &RunName,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<MetricPoint>> {
        read!(self.readers, metrics::list(run, after, limit))
    }

    async fn metrics_throughout(&self, run: &RunName, most: u32) -> Result<Vec<MetricPoint>> {
        read!(self.readers, metrics::throughout(run, most))
    }
}
