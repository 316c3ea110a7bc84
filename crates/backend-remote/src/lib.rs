//! A device of another machine: one GPU for the whole house.
//!
//! [`Server`] offers any [`Backend`](rookery_engine::Backend) on a TCP port. [`RemoteBackend`] uses it as one more
//! backend, so that search and programs notice nothing. Plain threads serve both sides.
//!
//! ```text
//! client thread --batch--> RemoteEvaluator --\                          /--> queue of a network --> batcher --> device
//! client thread --batch--> RemoteEvaluator ---> one TCP connection --> reader                        |
//!                                reader <----------------------------- writer <-------- answers ------'
//! ```
//!
//! # Protocol, version 1
//!
//! Numbers are little-endian. A frame is `length: u32`, `kind: u8` and `length - 1` bytes of payload. The length is
//! checked before memory is taken: 256 bytes at most until the client is known, then 2 MiB; 5 MiB from the server.
//! A text is its length as `u16` and UTF-8.
//!
//! | kind | from | payload |
//! |---|---|---|
//! | 16 challenge | server | `magic: [u8; 8]` = `ROOKERYD`, `version: u16`, `token wanted: u8`, `nonce: [u8; 32]` |
//! | 1 hello | client | `magic`, `version`, `proof: [u8; 32]` = HMAC-SHA256(token, `nonce`), zeros without a token |
//! | 17 welcome | server | texts: device, precision, class of the results |
//! | 18 refused | server | text: why; the connection ends |
//! | 2 network | client | `SHA-256: [u8; 32]`, `length: u64` of the network's file |
//! | 19 send | server | nothing: the server does not have the network |
//! | 3 data | client | the next at most 1 MiB of the file |
//! | 20 ready | server | `network: u32`, text: the precision in which it is computed |
//! | 21 failed | server | `passing: u8` (1: later it may work), text: why the network is not served |
//! | 5 release | client | `network: u32` is not used any more |
//! | 4 evaluate | client | `id: u32`, `network: u32`, `positions: u16` of at most 1,024, for each position the count of its moves as `u16`, then all planes as `u64`, all scalars as `f32`, all policy indices as `u16` |
//! | 22 evaluations | server | `id: u32`, `positions: u16`, win, draw and loss of each position as `f32`, one logit for each move as `f32` |
//! | 23 not evaluated | server | `id: u32`, text: why |
//! | 24 alive | server | nothing; every five seconds without another frame |
//!
//! A client may have several batches in flight. Answers come in any order. When too many are in flight the server reads
//! nothing more from this client until some are answered, and TCP holds the client back. Requests for networks count as
//! batches do. A client that does not read a frame within 30 s is disconnected.
//!
//! A client has one request for a network open at a time. A reply that it has not asked for ends the connection.
//!
//! At `remotes://` all of this is inside TLS 1.2 or 1.3, and the client begins with its handshake. A server that speaks
//! TLS sends `refused` in plain to a client that has sent nothing in the time for a greeting. At `remote://` the token
//! never crosses the wire, but everything else does in plain: the connection is for a network that its users trust, or
//! for a tunnel (SSH, WireGuard).
//!
//! Modules in dependency order: `address`, `token`, `error`, `stream`, `frame`, `message`, `positions`; of the server
//! `budget`, `queue`, `networks`, `connection`; of the client `device`, `link`, `backend`, `evaluator`.

mod address;
mod client;
mod error;
mod frame;
mod message;
mod positions;
mod server;
mod stream;
#[cfg(test)]
mod tests;
mod token;

pub use address::{ParseAddressError, RemoteAddress};
pub use client::{PATIENCE, RemoteBackend, RemoteDevice};
pub use positions::frame_bytes;
pub use server::{Limits, Server, ServerError, ServerOptions, Statistics};
pub use token::{DeviceToken, TokenError};

/// The version of the protocol. Both sides must have the same.
const VERSION: u16 = 1;
/// How both sides begin, so that neither takes another service for the other side.
const MAGIC: [u8; 8] = *b"ROOKERYD";
/// Most positions of an `evaluate` frame.
pub const MAX_POSITIONS: usize = 1024;
