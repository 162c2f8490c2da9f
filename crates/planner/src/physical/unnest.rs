//! UNNEST of lists and structs.

use std::collections::HashMap;

use datafusion::common::NullHandling;
use datafusion::logical_expr::Unnest as LogicalUnnest;
use thalweg_dataflow::plan::{Input, NodeId, Op, Unnest, UnnestColumn};

use super::builder::Builder;
use super::relation::arrow_schema;
use crate::changelog;
use crate::error::{Fault, FaultKind};

impl Builder {
    pub fn unnest(&mut self, unnest: &LogicalUnnest) -> Result<NodeId, Fault> {
        let input = self.relation(&unnest.input)?;
        let op = Unnest {
            columns: columns(unnest),
            keep_empty: keeps_empty(unnest)?,
        };
        let properties = changelog::unnest(self.properties(input), &op);
        let schema = arrow_schema(&unnest.schema);
        Ok(self.add(
            Op::Unnest(op),
            vec![Input::forward(input)],
            schema,
            properties,
        ))
    }
}

fn keeps_empty(unnest: &LogicalUnnest) -> Result<bool, Fault> {
    match unnest.options.null_handling {
        NullHandling::Drop => Ok(false),
        NullHandling::PreserveAndExpandEmpty => Ok(true),
        // SQL has no spelling that keeps null lists and drops empty ones.
        NullHandling::Preserve => Err(Fault::new(
            FaultKind::Internal,
            "unnest that tells null lists from empty ones",
        )),
    }
}

/// Per output column where it comes from. An input column gives several in a row where it is a struct or is
/// expanded to several depths.
fn columns(unnest: &LogicalUnnest) -> Vec<(usize, UnnestColumn)> {
    let mut given: HashMap<usize, usize> = HashMap::new();
    let column = |&input: &usize| {
        let nth = given.entry(input).or_default();
        let how = if unnest.struct_type_columns.contains(&input) {
            UnnestColumn::Field(*nth)
        } else {
            let mut lists = unnest
                .list_type_columns
                .iter()
                .filter(|(column, _)| *column == input);
            lists
                .nth(*nth)
                .map_or(UnnestColumn::Repeat, |(_, list)| UnnestColumn::List {
                    depth: list.depth,
                })
        };
        *nth += 1;
        (input, how)
    };
    unnest.dependency_indices.iter().map(column).collect()
}
