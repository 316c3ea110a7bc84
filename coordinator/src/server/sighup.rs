//! SIGHUP, by which operators ask for certificates to be read again.

/// The SIGHUPs that the process gets, where there is such a signal. Once they are listened for, they
/// do not end the process any more.
pub struct Sighup {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl Sighup {
    /// Begins to listen. It must be called in a runtime.
    pub fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals {
            signals.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Says of each that there is nothing to read again.
    pub async fn ignore_all(mut self) {
        loop {
            self.next().await;
            tracing::info!("SIGHUP has no effect: there is no TLS certificate to read again.");
        }
    }
}
