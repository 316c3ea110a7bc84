//! The load generator: everything that a coordinator acknowledges under load is there, once.

use rookery_tests::programs::run;
use serde_json::Value;

fn swarm(arguments: &[&str]) -> anyhow::Result<Value> {
    let small = [
        "--json",
        "--plies",
        "24",
        "--visits",
        "8",
        "--connections",
        "8",
    ];
    let said = run("rookery-swarm", &[&small, arguments].concat())?;
    Ok(serde_json::from_str(&said)?)
}

fn count(report: &Value, key: &str) -> u64 {
    report[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {report:#}"))
}

/// No candidate is lost, every gate was decided in time and by its games; gives how many were.
fn assert_gates(report: &Value) -> u64 {
    assert_eq!(report["ledger_check"], "passed", "{report:#}");
    for key in ["candidates_lost", "gates_overdue"] {
        assert_eq!(count(report, key), 0, "{key} in {report:#}");
    }
    count(report, "gates_decided")
}

/// Under load with candidates, what was acknowledged is there, once.
fn assert_nothing_lost(report: &Value) {
    assert!(assert_gates(report) > 0, "{report:#}");
    assert!(count(report, "acknowledged_chunks") > 0, "{report:#}");
    for key in ["lost", "double_counted", "leases_lost"] {
        assert_eq!(count(report, key), 0, "{key} in {report:#}");
    }
}

/// The keys on which other people's scripts lean.
fn assert_keys(report: &Value) {
    for key in [
        "seconds",
        "workers",
        "acknowledged_chunks",
        "ledger_chunks",
        "lost",
        "double_counted",
        "leases_lost",
    ] {
        assert!(report[key].is_number(), "{key} in {report:#}");
    }
    let routes = report["routes"].as_object().expect("routes");
    for (name, route) in routes {
        for key in ["requests", "errors", "p50_ms", "p95_ms", "p99_ms"] {
            assert!(route[key].is_number(), "{key} of {name} in {report:#}");
        }
    }
}

#[test]
fn workers_of_all_habits_leave_a_ledger_that_agrees() -> anyhow::Result<()> {
    let report = swarm(&[
        "--seconds",
        "4",
        "--workers",
        "40",
        "--slow",
        "0.2",
        "--crashing",
        "0.2",
        "--duplicating",
        "0.2",
        "--lying",
        "0.2",
        "--gate-every",
        "1",
    ])?;
    assert_keys(&report);
    // Workers that went away may have left one undecided.
    assert_gates(&report);
    let [acknowledged, ledger] =
        ["acknowledged_chunks", "ledger_chunks"].map(|key| count(&report, key));
    assert!(acknowledged > 0 && ledger >= acknowledged, "{report:#}");
    assert!(
        count(&report, "lies") > 0 && count(&report, "uploads_broken_off") > 0,
        "{report:#}"
    );
    for key in ["lost", "double_counted", "leases_lost", "lies_believed"] {
        assert_eq!(count(&report, key), 0, "{key} in {report:#}");
    }
    for (name, route) in report["routes"].as_object().expect("routes") {
        assert_eq!(route["errors"], 0, "{name} in {report:#}");
    }
    Ok(())
}

#[test]
fn every_route_is_measured_alone() -> anyhow::Result<()> {
    let modes = "jobs,heartbeats,uploads,reconnect";
    let report = swarm(&[
        "--mode",
        modes,
        "--seconds",
        "1",
        "--workers",
        "200",
        "--chunks",
        "300",
    ])?;
    assert_keys(&report);
    for route in [
        "POST /jobs",
        "POST /jobs/{id}/heartbeat",
        "PUT /chunks/{sha256}",
        "reconnect",
    ] {
        let route = &report["routes"][route];
        assert!(route["requests"].as_u64() > Some(0), "{report:#}");
        assert_eq!(route["errors"], 0, "{report:#}");
    }
    assert_eq!(count(&report, "leases_lost"), 0, "{report:#}");
    Ok(())
}

#[test]
fn a_coordinator_that_is_killed_again_and_again_loses_nothing() -> anyhow::Result<()> {
    let report = swarm(&[
        "--seconds",
        "8",
        "--workers",
        "30",
        "--duplicating",
        "0.2",
        "--kill-every",
        "1.5",
        "--gate-every",
        "1",
    ])?;
    assert_nothing_lost(&report);
    assert!(count(&report, "kills") > 0, "{report:#}");
    Ok(())
}

#[test]
fn other_machines_are_not_loaded() {
    let refusal = run(
        "rookery-swarm",
        &["--url", "http://192.0.2.1:8080", "--token", "rk_x"],
    );
    let refusal = format!("{:#}", refusal.expect_err("another machine"));
    assert!(refusal.contains("not on this machine"), "{refusal}");
}

#[test]
fn database_and_store_that_are_killed_in_turn_with_the_coordinator_lose_nothing()
-> anyhow::Result<()> {
    let report = swarm(&[
        "--postgres",
        "--s3",
        "--kill",
        "coordinator,postgres,s3",
        "--kill-every",
        "1.5",
        "--seconds",
        "20",
        "--workers",
        "30",
        "--duplicating",
        "0.2",
        "--gate-every",
        "1",
    ])?;
    assert_nothing_lost(&report);
    assert!(count(&report, "kills") > 2, "{report:#}");
    Ok(())
}
