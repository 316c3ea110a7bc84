//! The networks that became best, as an Atom feed (RFC 4287) for feed readers and bots.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::IntoResponse as _;
use rookery_common::ids::RunName;
use rookery_common::protocol::networks::NetworkInfo;

use super::layout::Page;
use super::networks::was_best;
use super::rating_scale::RatingScale;
use super::{PagesState, text};
use crate::server::address::Address;

/// Networks in the feed, the newest.
const NETWORKS: usize = 50;
/// When a feed has changed in which there is nothing yet.
const NEVER: &str = "1970-01-01T00:00:00Z";

#[derive(Template)]
#[template(path = "feed.xml")]
struct Feed {
    run: RunName,
    address: Address,
    path: String,
    updated: String,
    entries: Vec<Entry>,
}

struct Entry {
    info: NetworkInfo,
    summary: String,
}

/// `GET /runs/{run}/networks.atom`
pub(super) async fn networks(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(run) = name?;
    state.db.run(&run).await?;
    let all = state.db.networks_in_short(&run).await?;
    let scale = RatingScale::of(&all);
    let best = all.into_iter().filter(was_best).take(NETWORKS);
    let entries = best.map(|info| Entry {
        summary: summary(&info, &scale),
        info,
    });
    let entries: Vec<Entry> = entries.collect();
    let newest = entries.first();
    let feed = Feed {
        path: format!("/runs/{run}/networks.atom"),
        updated: newest.map_or_else(|| NEVER.to_owned(), |entry| entry.info.submitted_at.clone()),
        run,
        address,
        entries,
    };
    let kind = [(header::CONTENT_TYPE, "application/atom+xml; charset=utf-8")];
    Ok((kind, feed.render()?).into_response())
}

/// What a network is, in a line.
fn summary(info: &NetworkInfo, scale: &RatingScale) -> String {
    let shape = info.spec.shape();
    let step = text::count(info.spec.training_step);
    let rating = info.rating.as_ref().map_or_else(String::new, |rating| {
        let (elo, unit) = (scale.rating(rating), scale.unit());
        format!(", {elo} {unit} counted from {scale}")
    });
    format!("{shape}, training step {step}{rating}")
}
