//! A run's picture for link previews (Open Graph): its name, its best network and its ratings, as PNG.

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::protocol::runs::RunInfo;

use super::PagesState;
use super::chart::{Size, View, preview};
use super::layout::Page;
use super::networks::{Over, rating_data};
use super::rasterizer::{has_glyph, rasterize};
use super::rating_scale::RatingScale;
use super::text;
use crate::api::download::is_cached;

/// How long others may keep a picture: its address names the best network, and ratings move slowly.
const CACHE_CONTROL: &str = "public, max-age=300";

/// `GET /runs/{run}/picture.png`
pub(super) async fn of_run(
    State(state): State<PagesState>,
    headers: HeaderMap,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    let run = state.db.run(&name).await?;
    let networks = state.db.networks_in_short(&name).await?;
    let svg = drawing(&run, &networks)?;
    let hash = ContentHash::of(svg.as_bytes());
    let tag = format!("\"{hash}\"");
    let known = [
        (header::ETAG, &*tag),
        (header::CACHE_CONTROL, CACHE_CONTROL),
    ];
    if is_cached(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, known).into_response());
    }
    let png = match state.pictures.get(&name, &hash) {
        Some(png) => png,
        None => rendered(&state, name, hash, svg).await?,
    };
    Ok((known, [(header::CONTENT_TYPE, "image/png")], png).into_response())
}

/// Renders a picture, unless others who waited have done so.
async fn rendered(
    state: &PagesState,
    run: RunName,
    hash: ContentHash,
    svg: String,
) -> anyhow::Result<Bytes> {
    let turn = state.viewing.next().await;
    if let Some(png) = state.pictures.get(&run, &hash) {
        return Ok(png);
    }
    let png = Bytes::from(turn.work(move || rasterize(&svg)).await??);
    state.pictures.keep(run, hash, png.clone());
    Ok(png)
}

fn drawing(run: &RunInfo, networks: &[NetworkInfo]) -> Result<String, askama::Error> {
    let data = rating_data(
        &run.name,
        networks,
        Over::Numbers,
        Size::Preview,
        View::Fixed,
    );
    let heading = heading(run.title.as_deref(), &run.name);
    preview(heading, &line(run, networks), data.as_ref())
}

/// The run's title; its name, which is ASCII, if the font lacks a letter of the title.
fn heading<'a>(title: Option<&'a str>, name: &'a RunName) -> &'a str {
    let title = title.filter(|title| title.chars().all(has_glyph));
    title.unwrap_or(name.as_str())
}

/// What stands below the name.
fn line(run: &RunInfo, networks: &[NetworkInfo]) -> String {
    let scale = RatingScale::of(networks);
    let best = networks.iter().find(|info| Some(info.number) == run.best);
    let games = text::counted(run.games, "game");
    match best.and_then(|best| Some((best.number, best.rating?))) {
        Some((number, rating)) => format!(
            "Network #{number}, the best of {games}: {} {}",
            scale.elo(&rating),
            scale.unit()
        ),
        None => format!("{games} played by volunteers' machines"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_the_font_cannot_write_gives_way_to_the_name() {
        let main: RunName = "main".parse().unwrap();
        let written = ["Zürich – Łódź", "Ρόδος & Москва"];
        for title in written {
            assert_eq!(heading(Some(title), &main), title);
        }
        assert_eq!(heading(Some("国際"), &main), "main");
        assert_eq!(heading(None, &main), "main");
    }
}
