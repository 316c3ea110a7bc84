//! Chance where nothing has to be repeatable: jitter and names.

use std::time::Duration;

use rookery_client::retry::chance;

/// Six random hexadecimal digits, to tell names apart.
pub fn suffix() -> String {
    format!("{:06x}", getrandom::u32().unwrap_or_default() & 0x00ff_ffff)
}

/// `duration` lengthened or shortened by up to a tenth, so that many workers do not call at once.
pub fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.9 + 0.2 * chance())
}
