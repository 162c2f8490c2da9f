//! SQL text and a catalog become a plan, or an error with a position.
//!
//! Pure: no I/O, no clock, no connector code. Called by the server's session.

pub mod bind;
pub mod catalog;
pub mod error;
pub mod functions;
pub mod script;
pub mod settings;

pub use error::{Fault, FaultKind, Position};
pub use script::{Job, Outcome, Planner, Script, ScriptOptions};
