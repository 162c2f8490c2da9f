//! The only reader of the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since the UTC epoch.
#[expect(clippy::disallowed_methods, reason = "everything else asks here")]
pub fn now_nanos() -> i64 {
    // A clock before 1970 or after 2262 reads as the nearest instant that can be expressed.
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(_) => 0,
    }
}
