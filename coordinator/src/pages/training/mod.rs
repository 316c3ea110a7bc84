//! What the trainer reported: a chart for each number.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::RunName;
use rookery_common::params::{LearningRate, Optimizer, TrainingParams};
use rookery_common::protocol::runs::RunInfo;
use serde::{Deserialize, Serialize};

use super::chart::{
    Axis, AxisChoice, Chart, ChartData, ChartLinks, ChartQuery, Line, Size, View, ends,
};
use super::layout::{Layout, Page, Tab, page};
use super::measures::{Measure, Unit};
use super::{PagesState, text};
use crate::db::MetricRecord;
use crate::server::address::Address;

#[cfg(test)]
mod tests;

/// Most reports that are read: twenty for each point that is drawn.
const POINTS: u32 = 7_200;

/// Most points of a line: more than the pixels it is drawn on help nobody.
const DRAWN: usize = 360;
/// Most charts; a report has at most as many values.
const CHARTS: usize = 64;

/// Steps are far from the others if the way to them is so many times as long as these reach.
const FAR: u64 = 10;

/// One report in so many may be left out for its step.
const FEW: usize = 10;

#[derive(Template)]
#[template(path = "training.html")]
struct TrainingPage {
    layout: Layout,
    address: Address,
    run: RunInfo,
    last_step: u64,
    /// When the trainer reported last.
    heard: Option<String>,
    /// A step of reports that are left out.
    stray: Option<u64>,
    charts: Vec<Card>,
    links: ChartLinks,
    is_zoomed: bool,
    settings: Vec<(&'static str, String)>,
    /// All parameters of the run, as a file of them.
    parameters: String,
}

/// A chart with what it says in words.
struct Card {
    title: String,
    latest: String,
    meaning: &'static str,
    chart: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Over {
    /// Optimiser steps.
    #[default]
    Steps,
    /// When they were reported.
    Time,
}

impl AxisChoice for Over {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Steps, "by step"), (Self::Time, "by time")];
}

impl Over {
    /// Where a report is.
    fn place(self, record: &MetricRecord) -> f64 {
        match self {
            Self::Steps => record.point.step as f64,
            Self::Time => text::day_of(record.reported_at),
        }
    }

    const fn axis(self) -> Axis {
        match self {
            Self::Steps => Axis::Whole,
            Self::Time => Axis::Days,
        }
    }

    /// What it is called below a chart, and in a chart's title.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Steps => ("step", "optimiser steps"),
            Self::Time => ("time (UTC)", "time"),
        }
    }
}

/// What was measured of one thing: values over steps, or over time.
#[derive(Debug, Default, PartialEq)]
struct Measured {
    training: Vec<(f64, f64)>,
    /// On positions that are never trained on.
    held_out: Vec<(f64, f64)>,
}

/// `GET /runs/{run}/training`
pub(super) async fn charts(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<ChartQuery<Over>>, QueryRejection>,
) -> Page {
    let (Path(name), Query(query)) = (name?, query?);
    let (over, view) = (query.over, query.view());
    let run = state.db.run(&name).await?;
    let records = state.db.metrics_throughout(&name, POINTS).await?;
    let (records, stray) = drop_strays(&records);
    let ends = ends(records.iter().map(|record| over.place(record)));
    let path = format!("/runs/{}/training", run.name);
    let mut charts = Vec::new();
    for (name, measured) in series(records, over) {
        charts.extend(card(&name, &measured, over, view)?);
    }
    page(&TrainingPage {
        layout: Layout::of(&state.presentation, &run, Tab::Training).pictured(&address),
        address,
        links: ChartQuery::links(&path, &query, |query| query, ends),
        is_zoomed: view.is_part() && !records.is_empty(),
        last_step: records.last().map_or(0, |record| record.point.step),
        heard: run
            .last_report
            .as_ref()
            .map(|report| text::reported(state.now(), report)),
        stray,
        charts,
        settings: settings(&run.params.training),
        parameters: run.params.to_text().map_err(anyhow::Error::from)?,
        run,
    })
}

/// Reports without the few whose steps are far from those of all others, in whose charts nothing
/// else could be seen, and the farthest of these steps.
fn drop_strays(records: &[MetricRecord]) -> (&[MetricRecord], Option<u64>) {
    let few = records.len() / FEW;
    let far = |way: u64, reach: u64| way > reach.saturating_mul(FAR);
    // The way from one report to a later one.
    let way =
        |from: &MetricRecord, to: &MetricRecord| to.point.step.saturating_sub(from.point.step);
    let end = (records.len() - few..records.len())
        .find(|&place| {
            let before = &records[..place];
            before
                .last()
                .is_some_and(|last| far(way(last, &records[place]), way(&before[0], last)))
        })
        .unwrap_or(records.len());
    let begin = (0..few.min(end))
        .rev()
        .find(|&place| {
            let behind = &records[place + 1..end];
            behind
                .last()
                .is_some_and(|last| far(way(&records[place], &behind[0]), way(&behind[0], last)))
        })
        .map_or(0, |place| place + 1);
    let above = records[end..].last();
    let stray = above.or_else(|| records[..begin].first());
    (&records[begin..end], stray.map(|record| record.point.step))
}

/// Values over steps or time, by name; losses first. There are no more than [`CHARTS`]: each report may have names of its
/// own.
fn series(records: &[MetricRecord], over: Over) -> Vec<(String, Measured)> {
    let mut series: BTreeMap<(bool, &str), Measured> = BTreeMap::new();
    let mut placed: Vec<(f64, &MetricRecord)> = records
        .iter()
        .map(|record| (over.place(record), record))
        .collect();
    // A trainer that began anew reports its first steps last.
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, record) in placed {
        for (name, value) in &record.point.values {
            let of_validation = name.strip_prefix("validation_");
            let name = of_validation.unwrap_or(name);
            let key = (!name.contains("loss"), name);
            let measured = series.entry(key).or_default();
            let values = match of_validation {
                Some(_) => &mut measured.held_out,
                None => &mut measured.training,
            };
            values.push((place, *value));
        }
    }
    series
        .into_iter()
        .take(CHARTS)
        .map(|((_, name), measured)| (name.to_owned(), measured))
        .collect()
}

/// The chart of what has this name in reports; none if there is nothing to draw.
fn card(
    name: &str,
    measured: &Measured,
    over: Over,
    view: View,
) -> Result<Option<Card>, askama::Error> {
    let known = Measure::named(name);
    let unit = known.map_or(Unit::None, |measure| measure.unit);
    let title = known.map_or_else(|| name.replace('_', " "), |m| m.title.to_owned());
    let parts = [
        ("in training", "plain", &measured.training),
        ("held out", "second", &measured.held_out),
    ];
    let parts = parts
        .into_iter()
        .filter(|(_, _, values)| !values.is_empty());
    let told_apart = !measured.held_out.is_empty();
    let latest = parts.clone().filter_map(|(part, _, values)| {
        let (_, value) = values.last()?;
        let value = format_value(*value, unit);
        Some(if told_apart {
            format!("{value} {part}")
        } else {
            value
        })
    });
    let latest = latest.collect::<Vec<_>>().join(", ");
    let lines = parts.map(|(part, class, values)| Line {
        name: part.to_owned(),
        class,
        points: in_unit(thinned(&keep_visible(values, view)), unit),
    });
    let (x_name, x_title) = over.names();
    let chart = Chart::render(ChartData {
        title: format!("{title} over {x_title}, at last {latest}"),
        x_name,
        x_axis: over.axis(),
        lines: lines.collect(),
        size: Size::Half,
        view,
        ..ChartData::default()
    })?;
    Ok(chart.map(|chart| Card {
        title,
        latest,
        meaning: known.map_or("", |measure| measure.meaning),
        chart,
    }))
}

/// The values that are drawn: a part of the chart has more detail than all of it.
fn keep_visible(values: &[(f64, f64)], view: View) -> Vec<(f64, f64)> {
    let drawn = values.iter().filter(|(place, _)| view.holds(*place));
    drawn.copied().collect()
}

fn format_value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::None => precise(value),
        Unit::Of(things) => format!("{} {things}", precise(value)),
        Unit::About(things) => format!("{} {things}", rounded(value)),
        Unit::Percent => format!("{}\u{a0}%", text::decimal(100.0 * value, 1)),
    }
}

/// Points as they are drawn.
fn in_unit(points: Vec<(f64, f64)>, unit: Unit) -> Vec<(f64, f64)> {
    let factor = if unit == Unit::Percent { 100.0 } else { 1.0 };
    let points = points.into_iter();
    points
        .map(|(place, value)| (place, factor * value))
        .collect()
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

/// To a whole number, or a small one to a tenth.
fn rounded(value: f64) -> String {
    if (0.0..99.95).contains(&value) {
        text::decimal(value, 1)
    } else {
        text::rate(value)
    }
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

/// The rate after warm-up, and what it drops to: `0.002, then 0.001 from step 12 000`.
fn learning_rate(params: &LearningRate) -> String {
    let mut drops = params.drops.clone();
    drops.sort_unstable_by_key(|(step, _)| *step);
    let mut rate = params.base;
    let mut text = rate.to_string();
    for (step, factor) in drops {
        rate *= factor;
        // Without the noise of the product.
        let rate = format!("{rate:.6e}").parse().unwrap_or(rate);
        text.push_str(&format!(", then {rate} from step {}", text::count(step)));
    }
    text
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
        ("Learning rate", learning_rate(&params.learning_rate)),
        ("Weight decay", params.weight_decay.to_string()),
    ]
}
