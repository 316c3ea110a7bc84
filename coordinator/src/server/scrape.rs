//! The listener of its own for metrics: what they tell (quarantines, failures, how many workers there are) is
//! for the operator.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::api::health;
use crate::config::MetricsAddress;
use crate::limits::Limits;

/// Default address of metrics: reachable from this machine only.
const LISTEN: &str = "127.0.0.1:9464";
/// Written in place of an address: metrics are served beside the API.
const WITH_API: &str = "api";

/// Where this text says that metrics are served.
pub fn address(given: Option<&str>) -> MetricsAddress {
    match given {
        Some(WITH_API) => MetricsAddress::WithApi,
        _ => MetricsAddress::Own,
    }
}

/// Serves metrics until told to stop, if they have a listener of their own. Several coordinators of one machine
/// want the usual one: all but the first go without.
pub async fn serve(
    given: Option<&str>,
    stopping: CancellationToken,
) -> anyhow::Result<Option<JoinHandle<()>>> {
    if address(given) == MetricsAddress::WithApi {
        return Ok(None);
    }
    let listener = match (TcpListener::bind(given.unwrap_or(LISTEN)).await, given) {
        (Ok(listener), _) => listener,
        (Err(error), Some(given)) => {
            return Err(error)
                .with_context(|| format!("RK-0008: cannot listen at {given} for metrics"));
        }
        (Err(error), None) => {
            tracing::warn!(
                %error,
                "RK-0215: Metrics are not served: cannot listen at {LISTEN}. Give another address with --metrics-listen."
            );
            return Ok(None);
        }
    };
    let address = listener.local_addr()?;
    tracing::info!(%address, "Metrics are served at http://{address}/metrics");
    let server = Server {
        router: health::metrics(),
        limits: Arc::new(Limits::default()),
        tls: None,
        stopping,
    };
    Ok(Some(tokio::spawn(server.run(listener))))
}
