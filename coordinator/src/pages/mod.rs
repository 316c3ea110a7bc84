//! The web pages: what happens in a run, for people.
//!
//! Every page is rendered on the server from the [`Database`](crate::db::Database) and complete
//! without JavaScript; `live.js` renews the parts marked `data-live` when the coordinator tells of
//! something new (all who watch a page share its renewals, [`live`]), `viewer.js` steps through games without asking again, and `trust.js` and `operator-log.js`
//! ask the API with a token for what is not for everyone. [`play`] has an engine of its own, which [`bundle`] embeds. Nothing comes
//! from elsewhere, and the content security policy sees to it.
//!
//! ```text
//! request ─> handler ─> Database, Blobs ─> view (texts and numbers) ─> askama template ─> HTML
//! ```
//!
//! [`layout`] is what pages share, [`rows`] the tables' rows, [`rating_scale`] and [`text`] how ratings and other numbers are written, [`chart`], [`curve`], [`board`] and [`steps`] what is
//! drawn, [`setup`] how games begin, [`digests`] what is told of many games at once ([`featured`], [`instructive`], [`opening_tree`]), [`picture`] what previews of links show, as [`rasterizer`] draws it, [`ladder`] how strong a run is, [`measures`] what the trainer's numbers mean, [`manifests`] what datasets say of themselves, [`feed`] what feed readers get; the other modules are a page each.

mod api;
mod assets;
mod board;
mod bundle;
mod chart;
mod contributor;
mod contributors;
mod curve;
mod dataset;
mod digests;
mod error;
mod featured;
mod feed;
mod game;
mod games;
mod home;
mod included;
mod instructive;
mod join;
mod ladder;
mod layout;
mod live;
mod live_board;
mod manifests;
mod matches;
mod measures;
mod networks;
mod opening_tree;
mod operator_log;
mod picture;
mod play;
mod puzzles;
mod rasterizer;
mod rating_scale;
mod rows;
mod setup;
mod state;
mod steps;
mod story;
mod text;
mod training;
mod trust;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::App;
use error::PageError;
use live::Live;

pub(crate) use state::PagesState;

/// Everything comes from the coordinator itself, and no script or style stands in a page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'";

/// Pages show what is so now.
const CACHE_CONTROL: &str = "no-cache";

/// The routes of all pages and of what they load.
pub fn router(app: App) -> Router {
    let state = PagesState::new(app);
    let live = Live::new(state.clock.clone());
    Router::new()
        .route("/", get(home::index))
        .route("/runs", get(home::list))
        .route("/runs/{run}", get(home::run))
        .route("/runs/{run}/", get(home::without_slash))
        .route("/runs/{run}/join", get(join::how))
        .route("/runs/{run}/story", get(story::told))
        .route("/runs/{run}/networks", get(networks::list))
        .route("/runs/{run}/networks.atom", get(feed::networks))
        .route("/runs/{run}/networks/{number}", get(networks::one))
        .route("/runs/{run}/matches", get(matches::list))
        .route("/runs/{run}/games", get(games::list))
        .route("/runs/{run}/play", get(play::board))
        .route("/runs/{run}/training", get(training::charts))
        .route("/runs/{run}/puzzles", get(puzzles::scores))
        .route("/runs/{run}/dataset", get(dataset::published))
        .route("/runs/{run}/contributors", get(contributors::list))
        .route("/runs/{run}/contributors/{name}", get(contributor::one))
        .route("/api", get(api::calls))
        .route("/trust", get(trust::look))
        .route("/operator-log", get(operator_log::look))
        .route("/matches/{id}", get(matches::one))
        .route("/games/{id}", get(game::viewer))
        .route_layer(from_fn_with_state(live, live::share))
        .layer(from_fn_with_state(state.clone(), error::navigate))
        .layer(fixed(header::CACHE_CONTROL, CACHE_CONTROL))
        .route("/runs/{run}/picture.png", get(picture::of_run))
        .route("/assets/{version}/{name}", get(assets::serve))
        .route("/assets/board/{name}", get(bundle::serve))
        .route("/assets/included/{name}", get(included::serve))
        .route("/favicon.ico", get(assets::icon))
        .route("/robots.txt", get(assets::robots))
        .layer(fixed(
            header::CONTENT_SECURITY_POLICY,
            CONTENT_SECURITY_POLICY,
        ))
        .with_state(state)
}

/// The page for a path at which there is none.
pub async fn no_such_address(app: &App, path: &str) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::CACHE_CONTROL, CACHE_CONTROL),
    ];
    let page = PageError::not_found("There is no page at this address.").into_response();
    (headers, error::present(app, path, page).await).into_response()
}

fn fixed(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}
