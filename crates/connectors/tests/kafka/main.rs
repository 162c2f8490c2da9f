//! The Kafka connector against a real broker, within the real runtime.

#![allow(clippy::unwrap_used, reason = "a test")]

mod errors;
mod harness;
mod loss;
mod outage;
mod reading;
mod sink;
mod surroundings;
