//! How far the download of a network is, for people who wait for it.

use std::fmt;
use std::time::Instant;

use parking_lot::Mutex;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::NetworkRef;

/// Downloads with at least this number of bytes to come are logged.
const LARGE: u64 = 4_000_000;

/// A download that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download {
    /// The network's number in its run.
    pub number: NetworkNumber,
    /// Bytes that are here.
    pub have: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
}

impl fmt::Display for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            have,
            bytes,
        } = *self;
        let digits = usize::from(bytes < 10_000_000);
        let (have, bytes) = (have as f64 / 1e6, bytes as f64 / 1e6);
        write!(
            f,
            "fetching network #{number}: {have:.digits$} of {bytes:.digits$} MB"
        )
    }
}

/// The download that is under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Option<Download>>);

impl Progress {
    /// Where the download is now.
    pub(super) fn get(&self) -> Option<Download> {
        *self.0.lock()
    }

    /// A download begins, or goes on where `have` bytes are here already.
    pub(super) fn begin(&self, network: &NetworkRef, have: u64) -> Running<'_> {
        let download = Download {
            number: network.number,
            have,
            bytes: network.bytes,
        };
        let is_large = download.bytes.saturating_sub(have) >= LARGE;
        if is_large {
            tracing::info!("{download}");
        }
        self.set(Some(download));
        Running {
            progress: self,
            began: Instant::now(),
            missing: network.bytes.saturating_sub(have),
            is_large,
        }
    }

    fn set(&self, download: Option<Download>) {
        *self.0.lock() = download;
    }
}

/// A download that is shown as long as this lives.
#[must_use]
pub(super) struct Running<'a> {
    progress: &'a Progress,
    began: Instant,
    missing: u64,
    is_large: bool,
}

impl Running<'_> {
    /// The number of bytes of the file that have arrived.
    pub(super) fn have(&self, have: u64) {
        let download = self.progress.get();
        self.progress
            .set(download.map(|download| Download { have, ..download }));
    }

    /// The whole file is here.
    pub(super) fn complete(self) {
        if let Some(Download { number, .. }) = self.progress.get().filter(|_| self.is_large) {
            let (megabytes, seconds) = (
                self.missing as f64 / 1e6,
                self.began.elapsed().as_secs_f64(),
            );
            tracing::info!("network #{number} is here: {megabytes:.1} MB in {seconds:.0} s");
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.progress.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_shown_from_its_beginning_to_its_end() {
        let progress = Progress::default();
        assert_eq!(progress.get(), None);
        let mut network = crate::spool::testing::job(1).networks[0].clone();
        (network.number, network.bytes) = (NetworkNumber(12), 93_400_000);
        let running = progress.begin(&network, 1_000_000);
        let said = |progress: &Progress| progress.get().map(|download| download.to_string());
        assert_eq!(
            said(&progress).as_deref(),
            Some("fetching network #12: 1 of 93 MB")
        );
        running.have(34_000_000);
        assert_eq!(
            said(&progress).as_deref(),
            Some("fetching network #12: 34 of 93 MB")
        );
        running.complete();
        assert_eq!(progress.get(), None);
        network.bytes = 1_730_000;
        let running = progress.begin(&network, 0);
        assert_eq!(
            said(&progress).as_deref(),
            Some("fetching network #12: 0.0 of 1.7 MB")
        );
        // A download that breaks off is not shown any longer.
        drop(running);
        assert_eq!(progress.get(), None);
    }
}
