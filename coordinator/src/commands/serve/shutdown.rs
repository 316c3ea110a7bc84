//! Serving until a signal, and the way out: a notice, then the requests that are being served, then the ledger.

use std::time::Duration;

use rookery_common::signals::{StopSignal, StopSignals};
use rookery_tls::ServerCertificate;
use tokio::net::TcpListener;

use crate::api;
use crate::app::App;
use crate::server::Server;

/// How long requests that are being served may take when the coordinator stops.
const DRAIN: Duration = Duration::from_secs(30);

/// Serves, and when told to stop, finishes what is being served.
pub(super) async fn serve(
    app: App,
    listener: TcpListener,
    tls: Option<ServerCertificate>,
    signals: StopSignals,
    notice: Duration,
) {
    let signals = tokio::spawn(stop_when_told(app.clone(), signals, notice));
    let server = Server {
        router: api::router(app.clone()),
        limits: app.limits.clone(),
        tls,
        stopping: app.stopping.clone(),
    };
    let overdue = async {
        app.stopping.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        () = server.run(listener) => {}
        () = overdue => tracing::warn!("Some requests were not finished in time."),
    }
    signals.abort();
    app.db.close().await;
    tracing::info!("The coordinator has stopped.");
}

/// On a signal, says for a while that no more should come, then stops; on a second one, at once.
async fn stop_when_told(app: App, mut signals: StopSignals, notice: Duration) {
    interrupt(&mut signals).await;
    app.leaving.cancel();
    if !notice.is_zero() {
        tracing::info!(
            seconds = notice.as_secs(),
            "The coordinator is about to stop."
        );
        tokio::select! {
            () = tokio::time::sleep(notice) => {}
            () = interrupt(&mut signals) => {}
        }
    }
    tracing::info!("The coordinator stops: it finishes the requests that are being served.");
    app.stopping.cancel();
}

/// Waits for SIGTERM or Ctrl-C. SIGHUP does not end a server: it reads certificates again (`server::sighup`).
async fn interrupt(signals: &mut StopSignals) {
    while signals.next().await == StopSignal::Hangup {}
}
