//! What the ledger can be asked, room by room.

mod accounts;
mod games;
mod runs;
mod trust;

pub use accounts::Accounts;
pub use games::Games;
pub use runs::Runs;
pub use trust::Trust;
