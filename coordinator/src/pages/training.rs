//! What the trainer reported: a chart for each number.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::RunName;
use rookery_common::params::{Optimizer, TrainingParams};
use rookery_common::protocol::runs::{MetricPoint, RunInfo};

use super::address::Address;
use super::chart::{Chart, ChartData, Line, Size};
use super::layout::{Layout, Page, Tab, page};
use super::{PagesState, text};

/// Most reports that are read: twenty for each point that is drawn.
const POINTS: u32 = 7_200;

/// Most points of a line: more than the pixels it is drawn on help nobody.
const DRAWN: usize = 360;

#[derive(Template)]
#[template(path = "training.html")]
struct TrainingPage {
    layout: Layout,
    address: Address,
    run: RunInfo,
    last_step: u64,
    charts: Vec<(String, String, String)>,
    settings: Vec<(&'static str, String)>,
    /// All parameters of the run, as a file of them.
    parameters: String,
}

/// `GET /runs/{run}/training`
pub(super) async fn charts(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    let run = state.store.run(&name).await?;
    let points = state.store.metrics_throughout(&name, POINTS).await?;
    let mut charts = Vec::new();
    for (name, values) in series(&points) {
        let latest = values
            .last()
            .map_or_else(String::new, |(_, value)| precise(*value));
        if let Some(chart) = draw(&name, &values)? {
            charts.push((name.replace('_', " "), latest, chart));
        }
    }
    page(&TrainingPage {
        layout: Layout::of(&name, Tab::Training),
        address,
        last_step: points.last().map_or(0, |point| point.step),
        charts,
        settings: settings(&run.params.training),
        parameters: run.params.to_text().map_err(anyhow::Error::from)?,
        run,
    })
}

/// Values over steps, by name; losses first.
fn series(points: &[MetricPoint]) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut series: BTreeMap<(bool, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        for (name, value) in &point.values {
            let key = (!name.contains("loss"), name.as_str());
            series
                .entry(key)
                .or_default()
                .push((point.step as f64, *value));
        }
    }
    series
        .into_iter()
        .map(|((_, name), values)| (name.to_owned(), values))
        .collect()
}

fn draw(name: &str, values: &[(f64, f64)]) -> Result<Option<String>, askama::Error> {
    let line = Line {
        name: String::new(),
        class: "plain",
        points: thinned(values),
    };
    Chart::render(ChartData {
        title: format!("{name} over optimiser steps"),
        x_name: "step",
        lines: vec![line],
        size: Size::Half,
        ..ChartData::default()
    })
}

/// Means of as many neighbours as it takes to come down to [`DRAWN`] points.
fn thinned(values: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let group = values.len().div_ceil(DRAWN).max(1);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        let sum = part
            .iter()
            .fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x, sum.1 + y));
        (sum.0 / n, sum.1 / n)
    };
    values.chunks(group).map(mean).collect()
}

fn precise(value: f64) -> String {
    let digits = match value.abs() {
        n if n >= 1_000.0 => {
            let sign = if value < 0.0 { "−" } else { "" };
            return format!("{sign}{}", text::count(n.round() as u64));
        }
        0.0 => 0,
        n if n >= 1.0 => 3,
        n if n >= 0.001 => 5,
        _ => return format!("{value:.2e}"),
    };
    text::decimal(value, digits)
}

fn settings(params: &TrainingParams) -> Vec<(&'static str, String)> {
    let optimizer = match params.optimizer {
        Optimizer::Sgd { momentum } => format!("SGD, momentum {momentum}"),
        Optimizer::Adam => "Adam".to_owned(),
        Optimizer::AdamW => "AdamW".to_owned(),
    };
    let window = &params.window;
    vec![
        ("Batch", text::count(params.batch_size)),
        ("Steps a candidate", text::count(params.steps_per_candidate)),
        (
            "New positions a candidate",
            text::count(params.positions_per_candidate),
        ),
        (
            "Window",
            format!(
                "{} to {} positions",
                text::count(window.min),
                text::count(window.max)
            ),
        ),
        ("Optimiser", optimizer),
        ("Learning rate", params.learning_rate.base.to_string()),
        ("Weight decay", params.weight_decay.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_first_and_long_series_are_thinned() {
        let values = |step: u64| {
            [("accuracy", 0.5), ("policy_loss", step as f64)]
                .map(|(n, v)| (n.to_owned(), v))
                .into()
        };
        let points: Vec<_> = (0..1000)
            .map(|step| MetricPoint {
                step,
                values: values(step),
            })
            .collect();
        let series = series(&points);
        assert_eq!(
            series
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["policy_loss", "accuracy"]
        );
        let thin = thinned(&series[0].1);
        assert_eq!(thin.len(), 334);
        assert_eq!(thin[0], (1.0, 1.0), "the mean of steps 0, 1, 2");
    }
}
