//! Binding: a statement's AST and the catalog become a DataFusion `LogicalPlan` and a sink.
//!
//! The parser's AST stops here. A bound plan comes straight from `SqlToRel`: nothing has been
//! analysed, rewritten or optimised, and its scans are of [`StreamTable`].

mod query;
mod stream_table;

pub use query::{BoundQuery, BoundSink, SinkTarget};
pub use stream_table::{RelationKind, StreamTable};
