//! Real systems for tests: a dev-dependency of other crates, never part of the binary.
//!
//! Everything here panics when the outside world fails, as a test does.
#![allow(
    clippy::unwrap_used,
    reason = "this crate is tests' code: a failure here is the test's failure"
)]

pub mod kafka;
