//! What the load showed, as JSON or for people.

use std::io::Write as _;

use serde_json::{Map, Value, json};

use crate::measure::Samples;
use crate::phases::Swarm;
use crate::reconcile::Outcome;

/// Prints the report.
///
/// # Errors
///
/// If it cannot be printed.
pub(crate) fn report(swarm: &Swarm, outcome: &Outcome) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if swarm.cli.json {
        writeln!(out, "{:#}", as_json(swarm, outcome))?;
    } else {
        write!(out, "{}", as_text(swarm, outcome))?;
    }
    Ok(out.flush()?)
}

fn as_json(swarm: &Swarm, outcome: &Outcome) -> Value {
    let routes: Map<String, Value> = swarm
        .record
        .0
        .iter()
        .map(|(route, samples)| (route.name().to_owned(), route_json(samples)))
        .collect();
    let (refused, broken_off, kills, candidates) = swarm.ground.book.with(|accounts| {
        (
            accounts.refused.clone(),
            accounts.broken_off,
            accounts.kills,
            accounts.submitted.len(),
        )
    });
    json!({
        "seconds": rounded(swarm.measured.as_secs_f64()),
        "workers": swarm.cli.workers,
        "connections": swarm.cli.connections,
        "modes": swarm.cli.mode.iter().map(|mode| mode.name()).collect::<Vec<_>>(),
        "routes": routes,
        "acknowledged_chunks": outcome.acknowledged_chunks,
        "ledger_chunks": outcome.ledger_chunks,
        "lost": outcome.lost,
        "double_counted": outcome.double_counted,
        "leases": outcome.leases,
        "leases_finished": outcome.finished,
        "leases_abandoned": outcome.abandoned,
        "leases_lost": outcome.leases_lost,
        "unheard_acknowledgements": outcome.unheard,
        "uploads_broken_off": broken_off,
        "kills": kills,
        "lies": outcome.lies,
        "lies_believed": outcome.believed,
        "honest_chunks_refused": refused,
        "candidates": candidates,
        "gates_decided": outcome.gates.promotions + outcome.gates.rejections,
        "promotions": outcome.gates.promotions,
        "rejections": outcome.gates.rejections,
        "gates_overdue": outcome.gates.overdue,
        "candidates_lost": outcome.gates.lost,
        "ledger_check": outcome.ledger_check.as_ref().map(|check| match check {
            Ok(()) => json!("passed"),
            Err(reason) => json!(reason),
        }),
        "clean": outcome.is_clean(),
    })
}

fn route_json(samples: &Samples) -> Value {
    let [p50, p95, p99, most] = samples.percentiles([0.5, 0.95, 0.99, 1.0]);
    json!({
        "requests": samples.requests(),
        "per_s": rounded(samples.per_second()),
        "errors": samples.failed(),
        "errors_by_code": samples.errors,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
        "max_ms": most,
    })
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn as_text(swarm: &Swarm, outcome: &Outcome) -> String {
    let mut text = format!(
        "{:<28} {:>10} {:>9} {:>8} {:>8} {:>8} {:>8}\n",
        "route", "requests", "per s", "errors", "p50 ms", "p95 ms", "p99 ms"
    );
    for (route, samples) in &swarm.record.0 {
        let [p50, p95, p99] = samples.percentiles([0.5, 0.95, 0.99]);
        text += &format!(
            "{:<28} {:>10} {:>9.0} {:>8} {p50:>8.2} {p95:>8.2} {p99:>8.2}\n",
            route.name(),
            samples.requests(),
            samples.per_second(),
            samples.failed(),
        );
        for (code, count) in &samples.errors {
            text += &format!("  {count} times {code}\n");
        }
    }
    let lines = [
        ("chunks acknowledged", outcome.acknowledged_chunks),
        ("chunks in the ledger", outcome.ledger_chunks),
        ("  of these unheard of", outcome.unheard),
        ("lost", outcome.lost),
        ("counted twice", outcome.double_counted),
        ("jobs handed out", outcome.leases),
        ("  finished", outcome.finished),
        ("  abandoned", outcome.abandoned),
        ("  lost", outcome.leases_lost),
        ("lies told", outcome.lies),
        ("  believed", outcome.believed),
        ("honest chunks refused", outcome.refused),
        ("candidates promoted", outcome.gates.promotions),
        ("  rejected", outcome.gates.rejections),
        ("  lost", outcome.gates.lost),
        ("gates overdue", outcome.gates.overdue),
    ];
    for (what, count) in lines {
        text += &format!("{what:<28} {count:>10}\n");
    }
    if let Some(Err(reason)) = &outcome.ledger_check {
        text += &format!("the coordinator's own check failed: {reason}\n");
    }
    text + if outcome.is_clean() {
        "clean\n"
    } else {
        "NOT CLEAN\n"
    }
}
