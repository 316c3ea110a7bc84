//! Chance where nothing has to be repeatable: jitter and names.

use std::time::Duration;

/// A random number from 0 to 1. Where the system has none to give, one half.
pub fn unit() -> f64 {
    getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX))
}

/// Six random hexadecimal digits, to tell names apart.
pub fn suffix() -> String {
    format!("{:06x}", getrandom::u32().unwrap_or_default() & 0x00ff_ffff)
}

/// `duration` lengthened or shortened by up to a tenth, so that many workers do not call at once.
pub fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.9 + 0.2 * unit())
}
