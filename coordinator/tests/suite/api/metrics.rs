//! What trainers report, and how it is shown.

use axum::http::{Method, StatusCode};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::runs::{MetricPoint, RunInfo};
use serde_json::json;

use crate::support::app::{TestApp, code, run};
use crate::support::noon;

#[tokio::test]
async fn metrics_are_taken_replaced_and_bounded() {
    let app = TestApp::new().await;
    let report = async |body: serde_json::Value| {
        app.call(
            Method::POST,
            "/runs/main/metrics",
            &app.trainer,
            body.to_string(),
        )
        .await
    };
    let point = |step: u64, loss: f64| json!({"step": step, "values": {"loss": loss}});
    let first = report(json!({"points": [point(1, 3.0), point(2, 2.0)]})).await;
    assert_eq!(first.status(), StatusCode::NO_CONTENT);
    report(json!({"points": [point(2, 1.5)]})).await;
    let points: Vec<MetricPoint> = app.get("/runs/main/metrics?after=1").await;
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].values["loss"], 1.5);
    let last = async || {
        let info: RunInfo = app.get("/runs/main").await;
        info.last_report.unwrap()
    };
    assert_eq!(
        (last().await.step, last().await.at),
        (2, noon().to_string())
    );
    app.clock.advance_seconds(600);
    let page = app.page("/runs/main/training").await;
    assert!(page.contains("last seen 10 min ago, at step 2"), "{page}");
    report(json!({"points": [point(1, 2.5)]})).await;
    assert_eq!(last().await.step, 1, "a trainer that began anew");
    let many: Vec<_> = (0..1001).map(|step| point(step, 0.0)).collect();
    assert_eq!(
        code(report(json!({"points": many})).await).await,
        ProblemCode::BadRequest
    );
    for name in [&*"n".repeat(65), "loss\0", "\u{1b}[2J", "\u{202e}ssol"] {
        let odd = json!({"step": 1, "values": {name: 1.0}});
        assert_eq!(
            code(report(json!({"points": [odd]})).await).await,
            ProblemCode::BadRequest,
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn a_long_training_is_shown_from_its_beginning_to_its_last_step() {
    let app = TestApp::new().await;
    let db = &app.app.db;
    for thousand in 0..=20 {
        let steps = (1_000 * thousand..=20_000).take(1_000);
        let points = steps.map(|step| MetricPoint {
            step,
            values: [("loss".to_owned(), 1.0)].into(),
        });
        let points = points.collect();
        db.add_metrics(&run(), points, noon()).await.unwrap();
    }
    let page = app.page("/runs/main/training").await;
    assert!(page.contains("up to step 20\u{202f}000"), "{page}");
    let few = db.metrics_throughout(&run(), 10).await.unwrap();
    let steps: Vec<u64> = few.iter().map(|record| record.point.step).collect();
    assert!(steps.is_sorted() && steps.len() <= 10, "{steps:?}");
    assert!(
        steps[0] <= 2_001 && steps.last() == Some(&20_000),
        "{steps:?}"
    );
    let all = db.metrics_throughout(&run(), 20_001).await.unwrap();
    assert_eq!(all.len(), 20_001);
}

#[tokio::test]
async fn training_is_drawn_over_steps_or_over_the_times_of_reports() {
    let app = TestApp::new().await;
    let db = &app.app.db;
    let day = jiff::SignedDuration::from_hours(24);
    for (step, at) in [(1, noon()), (2, noon() + day)] {
        let values = [("loss".to_owned(), 1.0)].into();
        let point = MetricPoint { step, values };
        db.add_metrics(&run(), vec![point], at).await.unwrap();
    }
    let records = db.metrics_throughout(&run(), 10).await.unwrap();
    let times: Vec<_> = records.iter().map(|record| record.reported_at).collect();
    assert_eq!(times, [noon(), noon() + day]);
    let path = "/runs/main/training";
    let over_time = format!("{path}?over=time");
    let axes = |over: &str| {
        [("by step", path), ("by time", &*over_time)].map(|(name, address)| {
            let current = if name == over {
                " aria-current=\"true\""
            } else {
                ""
            };
            format!("href=\"{address}\"{current}>{name}")
        })
    };
    for (address, over, axis) in [
        (path, "by step", ">step</text>"),
        (&*over_time, "by time", ">time (UTC)</text>"),
    ] {
        let page = app.page(address).await;
        let [steps, time] = axes(over);
        for part in [axis, &steps, &time, "data-span=\""] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let later = app.page(&format!("{over_time}&from=99999")).await;
    let whole = format!("href=\"{over_time}\">whole run");
    for part in ["No data in this part of the charts.", &whole] {
        assert!(later.contains(part), "{part}: {later}");
    }
    let odd = app.open(&format!("{path}?over=moons")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn one_report_of_a_far_step_hides_no_others() {
    let app = TestApp::new().await;
    let db = &app.app.db;
    let point = |step: u64| MetricPoint {
        step,
        values: [("loss".to_owned(), 1.0)].into(),
    };
    let add = async |points: Vec<MetricPoint>| {
        db.add_metrics(&run(), points, noon()).await.unwrap();
    };
    add((1..=1_000).map(|n| point(10 * n)).collect()).await;
    for far in [1_000_000_000, 1 << 53, i64::MAX.cast_unsigned()] {
        add(vec![point(far)]).await;
        let points = db.metrics_throughout(&run(), 400).await.unwrap();
        assert!((100..=400).contains(&points.len()), "{}", points.len());
        let steps: Vec<u64> = points.iter().map(|record| record.point.step).collect();
        assert!(steps.is_sorted() && steps.last() == Some(&far), "{steps:?}");
        let own = steps.iter().filter(|step| **step <= 10_000).count();
        assert!(steps[0] <= 200 && own >= steps.len() - 3, "{steps:?}");
    }
    let said = ["up to step 10\u{202f}000", "A few reports are not drawn"];
    let page = app.says("/runs/main/training", &said).await;
    // Hardly a point would be left of the line if the far steps were on the axis.
    let line = page.split("class=\"line plain\" d=\"").nth(1).unwrap();
    let line = line.split('"').next().unwrap();
    assert!(line.matches('L').count() >= 300, "{line}");
}
