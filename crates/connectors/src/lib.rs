//! Connectors: the systems that a dataflow reads from and writes to, and the formats they carry.
//!
//! Implements the runtime's [`thalweg_runtime::connector`] contract. Knows no SQL.

pub mod blackhole;
mod blocking;
pub mod discover;
pub mod docs;
pub mod file;
pub mod format;
pub mod impulse;
pub mod kafka;
pub mod registry;
pub mod stdout;
#[cfg(test)]
mod testing;

pub use registry::{Connector, Connectors};
