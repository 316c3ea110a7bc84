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

/// A load of this many seconds is not made longer.
const LONG: u32 = 60;

/// The report of a load of this number of seconds with about this number of kills. A load that was not enough is followed by
/// a longer one: a slow machine does less in the same time.
fn swarm_until(
    is_enough: impl Fn(&Value) -> bool,
    (seconds, kills): (u32, u32),
    arguments: &[&str],
) -> anyhow::Result<Value> {
    let mut seconds = seconds;
    loop {
        let every = f64::from(seconds) / f64::from(kills);
        let (time, every) = (seconds.to_string(), every.to_string());
        let mut words = vec!["--seconds", &time];
        if kills > 0 {
            words.extend(["--kill-every", &every]);
        }
        words.extend(arguments);
        let report = swarm(&words)?;
        if is_enough(&report) || seconds >= LONG {
            return Ok(report);
        }
        seconds *= 4;
    }
}

fn count(report: &Value, key: &str) -> u64 {
    report[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {report:#}"))
}

/// No candidate is lost, every gate was decided in time and by its games.
fn assert_gates(report: &Value) {
    assert_eq!(report["ledger_check"], "passed", "{report:#}");
    for key in ["candidates_lost", "gates_overdue"] {
        assert_eq!(count(report, key), 0, "{key} in {report:#}");
    }
}

/// Chunks were acknowledged and gates decided.
fn has_work(report: &Value) -> bool {
    ["acknowledged_chunks", "gates_decided"]
        .iter()
        .all(|key| count(report, key) > 0)
}

/// Under load with candidates, what was acknowledged is there, once.
fn assert_nothing_lost(report: &Value) {
    assert_gates(report);
    assert!(has_work(report), "{report:#}");
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
    let arguments = [
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
    ];
    let happened = ["acknowledged_chunks", "lies", "uploads_broken_off"];
    let is_enough = |report: &Value| happened.iter().all(|key| count(report, key) > 0);
    let report = swarm_until(is_enough, (4, 0), &arguments)?;
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
    let arguments = ["--mode", modes, "--workers", "200", "--chunks", "300"];
    let routes = [
        "POST /jobs",
        "POST /jobs/{id}/heartbeat",
        "PUT /chunks/{sha256}",
        "reconnect",
    ];
    let is_measured = |report: &Value, route: &str| {
        let requests = &report["routes"][route]["requests"];
        requests.as_u64() > Some(0)
    };
    let is_enough = |report: &Value| routes.iter().all(|route| is_measured(report, route));
    let report = swarm_until(is_enough, (1, 0), &arguments)?;
    assert_keys(&report);
    for route in routes {
        assert!(is_measured(&report, route), "{route} in {report:#}");
        assert_eq!(report["routes"][route]["errors"], 0, "{report:#}");
    }
    assert_eq!(count(&report, "leases_lost"), 0, "{report:#}");
    Ok(())
}

#[test]
fn a_coordinator_that_is_killed_again_and_again_loses_nothing() -> anyhow::Result<()> {
    let arguments = [
        "--workers",
        "30",
        "--duplicating",
        "0.2",
        "--gate-every",
        "1",
    ];
    let is_enough = |report: &Value| count(report, "kills") > 0 && has_work(report);
    let report = swarm_until(is_enough, (8, 5), &arguments)?;
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
    let arguments = [
        "--postgres",
        "--s3",
        "--kill",
        "coordinator,postgres,s3",
        "--workers",
        "30",
        "--duplicating",
        "0.2",
        "--gate-every",
        "1",
    ];
    let is_enough = |report: &Value| count(report, "kills") > 2 && has_work(report);
    let report = swarm_until(is_enough, (20, 13), &arguments)?;
    assert_nothing_lost(&report);
    assert!(count(&report, "kills") > 2, "{report:#}");
    Ok(())
}
