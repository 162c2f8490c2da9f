//! Binding: a statement's AST and the catalog become a DataFusion `LogicalPlan` and a sink.
//!
//! The parser's AST stops here. A bound plan comes straight from `SqlToRel`: nothing has been
//! analysed, rewritten or optimised, and its scans are of [`StreamTable`].

mod assign;
mod ast;
mod blame;
mod check;
mod context;
mod convert;
mod fixture;
mod limit;
mod places;
mod plan;
mod presentable;
mod query;
mod row;
mod source;
mod stream_table;
mod view;

pub use assign::{Assignment, written_fields};
pub use ast::with_distinct_names;
pub use context::Scope;
pub use convert::is_assignable;
pub use fixture::Fixtures;
pub use limit::{RowLimit, without_limit};
pub use places::Places;
pub use plan::{Bound, bind_query, bind_view, parameter_types, result_schema, scans};
pub use presentable::presentable;
pub use query::{BoundQuery, BoundSink, SinkTarget};
pub use row::{check_row_expressions, position_of};
pub use source::source_spec;
pub use stream_table::{RelationKind, StreamTable};
