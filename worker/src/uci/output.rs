//! Lines to the GUI.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;

/// Where lines go; shared by the threads, a line at a time.
#[derive(Clone)]
pub struct Output(Arc<Mutex<dyn Write + Send>>);

impl Output {
    /// Writes to `target`.
    pub fn new(target: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(target)))
    }

    /// Sends a line at once. A GUI that listens no more will close the input, too.
    pub(super) fn line(&self, line: &str) {
        let mut target = self.0.lock();
        let sent = writeln!(target, "{line}").and_then(|()| target.flush());
        if let Err(error) = sent {
            tracing::debug!(%error, "the GUI does not listen");
        }
    }

    /// Tells people something, in one line.
    pub(super) fn say(&self, text: &str) {
        let parts = text.split(['\n', '\r']).map(str::trim);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        self.line(&format!("info string {}", parts.join(" ")));
    }
}
