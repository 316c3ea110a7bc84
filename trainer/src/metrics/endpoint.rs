//! The newest measurements for Prometheus, over HTTP.
//!
//! One question, `GET /metrics`, and one answer: that is little enough to be read and written here
//! without a server's machinery. Everything a caller sends is bounded in size and time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use rookery_common::protocol::runs::MetricPoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::MetricKind;

/// Longest request that is read, in bytes.
const LONGEST: usize = 8 * 1024;
/// How long a caller may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The newest value of each measurement.
#[derive(Debug, Clone, Default)]
pub struct Gauges(Arc<Mutex<BTreeMap<String, f64>>>);

impl Gauges {
    /// Takes a point's values over, each under the name `rookery_trainer_KIND_NAME`.
    pub fn set(&self, kind: MetricKind, point: &MetricPoint) {
        let mut gauges = self.0.lock();
        gauges.insert("rookery_trainer_step".to_owned(), point.step as f64);
        let kind = kind.name();
        for (name, value) in &point.values {
            gauges.insert(format!("rookery_trainer_{kind}_{name}"), *value);
        }
    }

    /// All of them in Prometheus' text format.
    pub fn text(&self) -> String {
        let gauges = self.0.lock();
        let mut text = String::new();
        for (name, value) in gauges.iter() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# TYPE {name} gauge\n{name} {value}");
        }
        text
    }
}

/// A listener that answers until it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// Listens; call it inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// If the address cannot be had.
    pub async fn start(address: SocketAddr, gauges: Gauges) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("RK-0008: cannot listen at {address}"))?;
        Ok(Self {
            address: listener.local_addr()?,
            task: tokio::spawn(answer_all(listener, gauges)),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer_all(listener: TcpListener, gauges: Gauges) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for example: they will be fewer later.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // One caller at a time: there is one Prometheus.
        let answered = tokio::time::timeout(PATIENCE, answer(stream, &gauges)).await;
        if let Ok(Err(error)) = answered {
            tracing::debug!("metrics were not taken: {error}");
        }
    }
}

async fn answer(mut stream: TcpStream, gauges: &Gauges) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", gauges.text())
    } else {
        ("404 Not Found", "there is only GET /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::super::values;
    use super::*;

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_newest_values_are_served_and_nothing_else() {
        let gauges = Gauges::default();
        for step in [1, 2] {
            let values = values([("loss", step as f64 / 4.0)]);
            gauges.set(MetricKind::Train, &MetricPoint { step, values });
        }
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = Endpoint::start(anywhere, gauges).await.unwrap();
        let address = endpoint.address();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(
            answer.contains("\nrookery_trainer_train_loss 0.5\n"),
            "{answer}"
        );
        assert!(answer.contains("\nrookery_trainer_step 2\n"), "{answer}");
        let answer = ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        let taken = Endpoint::start(address, Gauges::default())
            .await
            .unwrap_err();
        assert!(taken.to_string().contains("cannot listen"), "{taken}");
    }
}
