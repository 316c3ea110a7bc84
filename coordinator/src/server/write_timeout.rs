//! A connection whose client must take what is sent to it.
//!
//! A client that takes a few bytes now and then would hold its place, and what it asked for, for as
//! long as it likes. What waits to be taken counts, and not how long a connection lasts: events that
//! are taken as they happen go on for days.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Least that a client takes in the time that it has, in bytes, unless it takes all there is.
const LEAST: usize = 16 << 10;

/// A stream that breaks when its other side takes too little for too long.
pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    window: Duration,
    /// Runs while something waits that the other side has not taken.
    behind: Option<Pin<Box<Sleep>>>,
    /// What the other side has taken since then.
    taken: usize,
}

impl<S> WriteTimeoutStream<S> {
    /// The other side has this time to take [`LEAST`], again and again.
    pub(super) fn new(stream: S, window: Duration) -> Self {
        Self {
            stream,
            window,
            behind: None,
            taken: 0,
        }
    }

    /// The result of writing this number of bytes, unless the other side is too slow.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        offered: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.taken += bytes;
                if bytes == offered || self.taken >= LEAST {
                    self.behind = None;
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                if self.behind.is_none() {
                    self.taken = 0;
                }
                let window = self.window;
                let behind = self.behind.get_or_insert_with(|| Box::pin(sleep(window)));
                ready!(behind.as_mut().poll(context));
                let slow = "the client takes too little of what is sent to it";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, slow)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, bytes.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = parts.iter().map(|part| part.len()).sum();
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, offered, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const WINDOW: Duration = Duration::from_millis(200);
    /// What lies between both sides at most.
    const BETWEEN: usize = 1000;

    fn ends() -> (WriteTimeoutStream<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(BETWEEN);
        (WriteTimeoutStream::new(ours, WINDOW), theirs)
    }

    #[tokio::test]
    async fn who_takes_a_little_now_and_then_is_not_waited_for() {
        for little in [0, 100] {
            let (mut ours, mut theirs) = ends();
            let sending = async { ours.write_all(&[0; 4 * LEAST]).await.unwrap_err() };
            let taking = async {
                let mut taken = vec![0; little];
                loop {
                    theirs.read_exact(&mut taken).await.unwrap();
                    sleep(WINDOW / 10).await;
                }
            };
            let slow = tokio::select! {
                slow = sending => slow,
                () = taking => unreachable!("it has no end"),
            };
            assert_eq!(slow.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test]
    async fn who_has_taken_all_or_enough_has_its_time_again() {
        // What the other side takes before its time is over, and how much is offered then.
        for (takes, offered) in [(BETWEEN, BETWEEN), (LEAST, 10 * BETWEEN)] {
            let (mut ours, mut theirs) = ends();
            let bytes = vec![0; offered];
            assert!(poll!(pin!(ours.write(&bytes[..BETWEEN]))).is_ready());
            assert!(poll!(pin!(ours.write(&bytes))).is_pending(), "it is full");
            for _ in 0..takes.div_ceil(BETWEEN) {
                theirs.read_exact(&mut [0; BETWEEN]).await.unwrap();
                assert!(poll!(pin!(ours.write(&bytes))).is_ready());
            }
            sleep(2 * WINDOW).await;
            assert!(poll!(pin!(ours.write(&bytes))).is_pending());
        }
    }
}
