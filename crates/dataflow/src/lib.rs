//! The vocabulary that every other crate speaks: change batches, event time, epochs, option
//! declarations and the physical plan.
//!
//! Used by all crates; depends on none of them. No I/O, no async, no clock and no parser types
//! live here.

pub mod change;
pub mod marks;
pub mod options;
pub mod plan;
pub mod table;
pub mod time;

pub use change::ChangeBatch;
pub use time::Watermark;
