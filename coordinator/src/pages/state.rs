//! What every page reads from.

use std::ops::Deref;

use jiff::Timestamp;

use crate::app::App;

use super::digests::Digests;
use super::manifests::Manifests;
use super::rasterizer::Pictures;

/// What pages read from: the app, and what is kept for the next page.
#[derive(Clone)]
pub(crate) struct PagesState {
    app: App,
    /// What is told of games.
    pub(super) digests: Digests,
    /// What was read of datasets.
    pub(super) manifests: Manifests,
    /// What previews of links show.
    pub(super) pictures: Pictures,
}

impl PagesState {
    pub(super) fn new(app: App) -> Self {
        Self {
            app,
            digests: Digests::default(),
            manifests: Manifests::default(),
            pictures: Pictures::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Deref for PagesState {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}
