//! Waiting within synchronous code that may run inside a Tokio runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Calls `blocking`, which waits for another thread. Inside a multi-threaded runtime its other tasks go on meanwhile.
pub fn wait<T>(blocking: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(blocking)
        }
        _ => blocking(),
    }
}
