//! Writing files: one that grows in place, or many that appear when they are complete.

mod directory;
mod single;
mod writer;

pub use directory::{FilesystemSink, ROLL_BYTES, ROLL_INTERVAL};
pub use single::SingleFileSink;

#[cfg(test)]
mod round_trip_tests;
