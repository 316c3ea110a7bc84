//! What goes into operations of the database and comes out, where the API's types do not serve.

mod accounts;
mod games;
mod jobs;
mod ledger;
mod runs;
mod trust;

pub use accounts::*;
pub use games::*;
pub use jobs::*;
pub use ledger::*;
pub use runs::*;
pub use trust::*;
