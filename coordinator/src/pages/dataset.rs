//! What a run has published as datasets: folders with a `manifest.json`, as `ledger export` writes them.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::RunName;

use super::layout::{Layout, Page, Tab, page};
use super::manifests::Manifest;
use super::{PagesState, text};
use crate::config::DatasetConfig;
use crate::server::address::Address;

#[derive(Template)]
#[template(path = "dataset.html")]
struct DatasetPage {
    layout: Layout,
    address: Address,
    run: RunName,
    /// When the next one comes.
    schedule: Option<String>,
    datasets: Vec<Dataset>,
}

/// A dataset, and where its files are.
struct Dataset {
    folder: String,
    made: String,
    bytes: u64,
    /// Where its folder is, with a slash at its end.
    address: Option<String>,
    manifest: Manifest,
}

/// `GET /runs/{run}/dataset`
pub(super) async fn published(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(run) = name?;
    let info = state.db.run(&run).await?;
    let config = state.datasets.clone();
    let found = match config.folder.clone() {
        Some(folder) => {
            let (manifests, run) = (state.manifests.clone(), run.clone());
            tokio::task::spawn_blocking(move || manifests.of_run(&folder, &run))
                .await
                .map_err(anyhow::Error::from)?
        }
        None => Vec::new(),
    };
    let dataset = |(folder, manifest)| Dataset::new(folder, manifest, &config);
    page(&DatasetPage {
        layout: Layout::of(&state.presentation, &info, Tab::Other)
            .titled(format!("Dataset of {run}"))
            .pictured(&address),
        address,
        schedule: config.schedule.clone(),
        datasets: found.into_iter().map(dataset).collect(),
        run,
    })
}

impl Dataset {
    fn new(folder: String, manifest: Manifest, config: &DatasetConfig) -> Self {
        let address = config.url.as_ref().map(|url| {
            let url = url.to_string();
            format!("{}/{folder}/", url.trim_end_matches('/'))
        });
        Self {
            made: text::minute(&manifest.made_at),
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            address,
            folder,
            manifest,
        }
    }
}
