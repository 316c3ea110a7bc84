//! Commands that play games: [`networks`] lets two networks play each other, [`ladder`] any player against others, with
//! [`rated`] ones among them; [`play`] is what they have in common.

pub mod ladder;
pub mod networks;
pub mod play;
pub mod rated;
