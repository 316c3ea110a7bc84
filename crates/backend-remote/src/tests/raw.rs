//! Clients that send what they like.

use std::io::Write as _;
use std::net::TcpStream;

use rookery_common::ids::ContentHash;

use super::*;
use crate::VERSION;
use crate::frame::{FrameReader, MAX_REPLY};
use crate::message::{DATA_BYTES, Reply, Request};

/// A client that sends what it likes.
pub(super) struct Raw {
    pub(super) stream: TcpStream,
    reader: FrameReader,
}

impl Raw {
    /// Connects and reads the challenge.
    pub(super) fn stranger(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        let reader = FrameReader::new(
            crate::stream::plain(&Arc::new(stream.try_clone().unwrap()), LONG).0,
            LONG,
        );
        let mut raw = Self { stream, reader };
        assert_eq!(raw.next().0, 16);
        raw
    }

    /// Connects and greets.
    pub(super) fn known(server: &Server) -> Self {
        let mut raw = Self::stranger(server);
        let (version, proof) = (VERSION, [0; 32]);
        raw.send(Request::Hello { version, proof });
        assert_eq!(raw.next().0, 17);
        raw
    }

    pub(super) fn send(&mut self, request: Request<'_>) {
        self.write(&request.to_frame());
    }

    /// Writes bytes; the server may have closed the connection already.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next frame that is not about being alive.
    pub(super) fn next(&mut self) -> (u8, Vec<u8>) {
        loop {
            let (kind, payload) = self.reader.next(Some(LONG), MAX_REPLY).unwrap();
            if kind != 24 {
                return (kind, payload.to_vec());
            }
        }
    }

    /// Why the server ends the connection.
    pub(super) fn refusal(&mut self) -> String {
        let (kind, payload) = self.next();
        let Reply::Refused(why) = Reply::read(kind, &payload).unwrap() else {
            panic!("a frame of kind {kind}")
        };
        assert!(
            self.reader.next(Some(LONG), MAX_REPLY).is_err(),
            "it goes on"
        );
        why
    }

    /// Waits until the server has closed the connection, whatever it says before.
    pub(super) fn is_closed(&mut self) {
        while self.reader.next(Some(LONG), MAX_REPLY).is_ok() {}
    }

    pub(super) fn send_file(&mut self, file: &[u8]) {
        for data in file.chunks(DATA_BYTES) {
            self.send(Request::Data(data));
        }
    }

    /// Brings a network there; gives its number.
    pub(super) fn load(&mut self, file: &[u8]) -> u32 {
        let hash = ContentHash::of(file);
        let length = file.len() as u64;
        self.send(Request::Network { hash, length });
        let (mut kind, mut payload) = self.next();
        if kind == 19 {
            self.send_file(file);
            (kind, payload) = self.next();
        }
        match Reply::read(kind, &payload).unwrap() {
            Reply::Ready { network, .. } => network,
            other => panic!("{other:?}"),
        }
    }
}
