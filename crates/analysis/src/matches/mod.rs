//! Commands that play games: [`networks`] lets two networks play each other, [`ladder`] any player against others, some of
//! which are [`rated`]; [`play`] is what they have in common.

pub mod ladder;
pub mod networks;
pub mod play;
pub mod rated;
