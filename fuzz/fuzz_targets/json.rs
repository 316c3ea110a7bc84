//! Any text as what clients send and receive as JSON, and as positions and puzzles.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::chess::GameHistory;
use rookery_common::chunk::SearchSums;
use rookery_common::protocol::audits::AuditTask;
use rookery_common::protocol::jobs::{Heartbeat, Job, JobRequest};
use rookery_common::protocol::people::{NewUser, TokenRequest};
use rookery_common::protocol::runs::{MetricReport, RunPatch};
use rookery_common::protocol::trust::QuarantineOrder;
use rookery_common::puzzle::Puzzle;

fuzz_target!(|text: &str| {
    let _ = serde_json::from_str::<Job>(text);
    let _ = serde_json::from_str::<JobRequest>(text);
    let _ = serde_json::from_str::<Heartbeat>(text);
    let _ = serde_json::from_str::<NewUser>(text);
    let _ = serde_json::from_str::<MetricReport>(text);
    let _ = serde_json::from_str::<QuarantineOrder>(text);
    let _ = serde_json::from_str::<TokenRequest>(text);
    if let Ok(task) = serde_json::from_str::<AuditTask>(text) {
        let _ = task.parse();
    }
    if let Ok(sums) = serde_json::from_str::<SearchSums>(text) {
        let _ = serde_json::to_string(&sums);
    }
    if let Ok(RunPatch {
        params: Some(params),
        ..
    }) = serde_json::from_str(text)
    {
        let _ = params.check();
    }
    if let Ok(puzzle) = serde_json::from_str::<Puzzle>(text) {
        let _ = puzzle.pose();
    }
    if let Ok(game) = GameHistory::from_fen(text) {
        let _ = game.end();
    }
});
