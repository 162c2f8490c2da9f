//! From a physical plan to running tasks: operators, exchange, watermarks, barriers, keyed state,
//! and the contract that sources and sinks fulfil.
//!
//! The runtime knows no connector by name, and no operator reads the clock.

pub mod aggregate;
mod chain;
pub mod clock;
pub mod connector;
pub mod error;
mod exchange;
pub mod job;
pub mod metrics;
pub mod operator;
mod operators;
pub mod pairing;
mod reject;
pub mod state;

pub use error::RuntimeError;
