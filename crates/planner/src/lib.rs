//! SQL text and a catalog become a plan, or an error with a position.
//!
//! Pure: no I/O, no clock, no connector code. Called by the server's session.

pub mod bind;
pub mod catalog;
pub mod changelog;
mod constants;
mod datafusion_error;
mod declare;
pub mod describe;
pub mod error;
pub mod event_time;
pub mod explain;
pub mod functions;
mod lower;
pub mod optimize;
pub mod options;
pub mod parameters;
pub mod parse;
pub mod physical;
mod refuse;
pub mod rewrite;
pub mod script;
pub mod settings;
mod shape;
mod statements;
#[cfg(test)]
mod test_registry;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod types;
pub mod window;

pub use declare::FoundColumns;
pub use error::{Fault, FaultKind, Position};
pub use parse::Parsed;
pub use script::{Job, Outcome, Planner, Script, ScriptOptions};
