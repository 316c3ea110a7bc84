//! A way between two programs that a test can cut.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Whether the way is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Bytes pass.
    Open,
    /// Connections break, and new ones end at once.
    Cut,
}

/// A listener that passes connections on to another address, or to others in turn.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    way: watch::Sender<Way>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// An open way to `to`.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn start(to: SocketAddr) -> anyhow::Result<Self> {
        Self::balance(vec![to]).await
    }

    /// An open way to each of `to` in turn; those that take no connection are passed over.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn balance(to: Vec<SocketAddr>) -> anyhow::Result<Self> {
        Self::listen(Ipv4Addr::LOCALHOST, to).await
    }

    /// An open way to `to`, from this address of the machine.
    ///
    /// # Errors
    ///
    /// If the machine has no such address, or there is no free port.
    pub async fn start_at(at: Ipv4Addr, to: SocketAddr) -> anyhow::Result<Self> {
        Self::listen(at, vec![to]).await
    }

    async fn listen(at: Ipv4Addr, to: Vec<SocketAddr>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((at, 0)).await?;
        let address = listener.local_addr()?;
        let way = watch::Sender::new(Way::Open);
        let task = tokio::spawn(accept(listener, to, way.clone()));
        Ok(Self { address, way, task })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens or cuts the way.
    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, mut to: Vec<SocketAddr>, way: watch::Sender<Way>) {
    while let Ok((stream, _)) = listener.accept().await {
        if *way.borrow() == Way::Open {
            tokio::spawn(pass(stream, to.clone(), way.subscribe()));
        }
        to.rotate_left(1);
    }
}

async fn pass(mut stream: TcpStream, to: Vec<SocketAddr>, mut way: watch::Receiver<Way>) {
    // The first that takes the connection.
    let Ok(mut upstream) = TcpStream::connect(&to[..]).await else {
        return;
    };
    tokio::select! {
        // However the connection ends, both ends see it.
        _ = copy_bidirectional(&mut stream, &mut upstream) => {}
        _ = way.wait_for(|way| *way == Way::Cut) => {}
    }
}
