//! From a declared table to the specification of its source.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use thalweg_dataflow::options::Registry;
use thalweg_dataflow::table::{
    EventTimeSource, ExprRef, MetadataColumn, SourceSpec, WatermarkSpec,
};

use super::row::RowExpressions;
use crate::catalog::{ColumnOrigin, TableDef};
use crate::declare::declared_field;
use crate::error::Fault;
use crate::functions::Functions;
use crate::physical::overflow::checked;

/// The source of a table of which `columns` are read (positions in `def.columns`, in the order of the
/// result). Only fields of the record that these, the event time and the watermark need are decoded.
///
/// Errors: an expression that does not bind, which CREATE TABLE has ruled out.
pub fn source_spec(
    def: &TableDef,
    columns: &[usize],
    registry: &dyn Registry,
) -> Result<SourceSpec, Fault> {
    let row = RowExpressions::new(def);
    let outputs = columns
        .iter()
        .map(|&index| row.column(index))
        .collect::<Result<Vec<_>, _>>()?;
    let event_time = def
        .event_time
        .map(|index| row.event_time(index))
        .transpose()?;
    let watermark = watermark(def, &row)?;

    let mut read: BTreeSet<usize> = BTreeSet::new();
    let expressions = outputs.iter().chain(&event_time).chain(watermark.expr());
    expressions.for_each(|expr| read.extend(row.reads(expr)));
    let record = Record::new(def, &read, registry);
    let physical_expr = |expr: &Expr| record.physical_expr(expr);

    let outputs = outputs
        .iter()
        .map(physical_expr)
        .collect::<Result<Vec<_>, _>>()?;
    let schema = def
        .schema
        .project(columns)
        .expect("positions of this table's columns");
    Ok(SourceSpec {
        table: def.name.clone(),
        connector: def.connector.clone(),
        format: def.format.clone(),
        options: def.options.clone(),
        bounded: def.bounded,
        event_time: match &event_time {
            Some(expr) => EventTimeSource::Expr(physical_expr(expr)?),
            None => EventTimeSource::Connector,
        },
        watermark: match &watermark {
            Watermark::Lag(nanos) => WatermarkSpec::Lag(*nanos),
            Watermark::Expr(expr) => WatermarkSpec::Expr(physical_expr(expr)?),
        },
        columns: outputs,
        declared: def.record_schema(),
        physical: Arc::new(Schema::new(record.physical)),
        metadata: record.metadata,
        idle_timeout: def.idle_timeout,
        // A bounded input is of the past, whatever its times say (semantics 2.4).
        max_event_time_ahead: def.max_event_time_ahead.filter(|_| !def.bounded),
        bad_data: def.bad_data.clone(),
        updating: def.reads_changelog,
        primary_key: key_positions(def, columns),
        schema: Arc::new(schema),
    })
}

/// Where the whole key is among `columns`, its positions there.
fn key_positions(def: &TableDef, columns: &[usize]) -> Vec<usize> {
    let positions = def
        .primary_key
        .iter()
        .map(|key| columns.iter().position(|c| c == key));
    positions.collect::<Option<Vec<_>>>().unwrap_or_default()
}

enum Watermark {
    Lag(i64),
    Expr(Expr),
}

impl Watermark {
    fn expr(&self) -> Option<&Expr> {
        match self {
            Self::Lag(_) => None,
            Self::Expr(expr) => Some(expr),
        }
    }
}

/// The watermark of a table; one that trails the event time by a fixed time needs no expression.
fn watermark(def: &TableDef, row: &RowExpressions<'_>) -> Result<Watermark, Fault> {
    let Some(expr) = &def.watermark else {
        let WatermarkSpec::Lag(nanos) = WatermarkSpec::DEFAULT else {
            unreachable!("the default is a lag")
        };
        return Ok(Watermark::Lag(nanos));
    };
    let (written, inlined) = row.watermark(expr)?;
    let event_time = def.event_time.map(|index| def.columns[index].field.name());
    Ok(match lag(&written, event_time) {
        Some(nanos) => Watermark::Lag(nanos),
        None => Watermark::Expr(inlined),
    })
}

/// Nanoseconds by which `ts` or `ts - INTERVAL '…'` trails the event time `ts`.
fn lag(expr: &Expr, event_time: Option<&String>) -> Option<i64> {
    let is_time = |e: &Expr| matches!(e, Expr::Column(column) if Some(&column.name) == event_time);
    match expr {
        time if is_time(time) => Some(0),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Minus,
            right,
        }) if is_time(left) => match right.as_ref() {
            Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _)
                if interval.months == 0 =>
            {
                i64::from(interval.days)
                    .checked_mul(86_400_000_000_000)?
                    .checked_add(interval.nanoseconds)
            }
            _ => None,
        },
        _ => None,
    }
}

/// What a reader yields of each record.
struct Record {
    physical: Vec<Field>,
    metadata: Vec<MetadataColumn>,
    schema: DFSchema,
}

impl Record {
    /// Of the columns at `read`.
    fn new(def: &TableDef, read: &BTreeSet<usize>, registry: &dyn Registry) -> Self {
        let (mut physical, mut metadata) = (Vec::new(), Vec::new());
        let known = registry
            .connector(&def.connector)
            .map_or(&[][..], |c| c.metadata);
        for column in read.iter().map(|&index| &def.columns[index]) {
            match &column.origin {
                // The record of a deletion may have no value but the key's.
                ColumnOrigin::Physical if def.reads_changelog => {
                    physical.push(column.field.clone().with_nullable(true));
                }
                ColumnOrigin::Physical => physical.push(column.field.clone()),
                ColumnOrigin::Metadata(key) => {
                    let own = known
                        .iter()
                        .find(|(name, ..)| name == key)
                        .map(|(_, sql_type, _)| declared_field(sql_type));
                    let own = own.unwrap_or_else(|| column.field.clone());
                    metadata.push(MetadataColumn {
                        key: key.clone(),
                        field: own.with_name(column.field.name()),
                    });
                }
                ColumnOrigin::Generated(_) => {}
            }
        }
        let fields = physical
            .iter()
            .cloned()
            .chain(metadata.iter().map(|m| m.field.clone()));
        let schema = RowExpressions::record_schema(&Schema::new(fields.collect::<Vec<_>>()));
        Self {
            physical,
            metadata,
            schema,
        }
    }

    fn physical_expr(&self, expr: &Expr) -> Result<ExprRef, Fault> {
        Functions::get()
            .state()
            .create_physical_expr(expr.clone(), &self.schema)
            .and_then(checked)
            .map_err(Fault::from_datafusion)
    }
}
