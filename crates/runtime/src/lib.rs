//! From a physical plan to running tasks: operators, exchange, watermarks, barriers, keyed state,
//! and the contract that sources and sinks fulfil.
//!
//! The runtime knows no connector by name, and no operator reads the clock.

pub mod aggregate;
pub mod clock;
pub mod connector;
pub mod error;
pub mod operator;
pub mod pairing;
pub mod state;

pub use error::RuntimeError;
