//! The `thalweg` binary: a command line over sessions.
//!
//! A [`session::Session`] plans and runs the statements of a script; the command line and the
//! sqllogictest driver are doors to the same session. What a query's result is printed on or
//! collected in is decided here, through [`results::ResultTarget`]; the runtime sees ordinary sinks.

pub mod cli;
pub mod engine;
pub mod error;
pub mod http;
pub mod job;
pub mod jobs;
pub mod pgwire;
pub mod results;
pub mod session;
pub mod text;
