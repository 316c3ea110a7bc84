//! The coordinator as a whole: its versions, who may register, how the operator presents it.

use axum::extract::State;
use rookery_common::protocol::server::ServerInfo;
use rookery_common::protocol::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(info))
}

/// The coordinator's version, who may register, title, contact and links.
#[utoipa::path(get, path = "/server", tag = "server", responses(
    (status = 200, description = "The coordinator", body = ServerInfo),
))]
async fn info(State(app): State<App>) -> axum::Json<ServerInfo> {
    let presentation = app.presentation.clone();
    axum::Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL_VERSION,
        oldest_protocol: OLDEST_PROTOCOL_VERSION,
        registration: app.registration,
        title: presentation.title,
        contact: presentation.contact,
        links: presentation.links,
    })
}
