//! SQL text and a catalog become a plan, or an error with a position.
//!
//! Pure: no I/O, no clock, no connector code. Called by the server's session.

pub mod bind;
pub mod catalog;
pub mod changelog;
mod datafusion_error;
pub mod error;
pub mod event_time;
pub mod functions;
pub mod optimize;
pub mod physical;
pub mod rewrite;
pub mod script;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod window;

pub use error::{Fault, FaultKind, Position};
pub use script::{Job, Outcome, Planner, Script, ScriptOptions};
