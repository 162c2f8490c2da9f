//! A Kafka broker for tests, and a client that does what tests ask of it.
//!
//! [`Broker::shared`] is one broker for all tests of a process; each test makes topics of its own with
//! [`Broker::topic`]. A test that stops the broker starts its own with [`Broker::start`].

mod broker;
mod client;
mod process;

pub use broker::Broker;
pub use client::{Message, Received};

/// A user that the broker's listener for SASL knows, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
pub const USER: &str = "alice";
pub const PASSWORD: &str = "alice-secret";
