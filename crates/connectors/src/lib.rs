//! Connectors: the systems that a dataflow reads from and writes to, and the formats they carry.
//!
//! Implements the runtime's [`thalweg_runtime::connector`] contract. Knows no SQL.

pub mod format;
