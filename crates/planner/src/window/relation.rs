//! Windows in FROM: `TUMBLE(t, DESCRIPTOR(ts), width)`, `HOP(t, DESCRIPTOR(ts), slide, width)`,
//! `SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), gap)`, with `TABLE t` or a subquery for `t`, and with
//! `TABLE(…)` around the whole or not.

use datafusion::common::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    self, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Spanned,
    TableAlias, TableFactor,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Span};

use super::node::{WindowNames, WindowTvf};
use super::{WindowKind, width};
use crate::error::{Fault, FaultKind, Position};
use crate::event_time::{self, EventTime, TimeColumn};

/// The function that the parser makes of `TABLE t` as an argument.
pub const TABLE_ARGUMENT: &str = "__table_arg";

#[derive(Debug)]
pub(super) struct WindowRelations;

impl RelationPlanner for WindowRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        cx: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match window_relation(&relation) {
            None => Ok(RelationPlanning::Original(Box::new(relation))),
            Some(written) => {
                let alias = written.alias.clone();
                let plan = plan(written, cx)?;
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
                    plan, alias,
                ))))
            }
        }
    }
}

/// A window as it stands in FROM.
struct Written {
    kind: WindowKind,
    position: Option<Position>,
    args: Vec<FunctionArg>,
    alias: Option<TableAlias>,
}

fn window_relation(relation: &TableFactor) -> Option<Written> {
    let (name, args, alias) = match relation {
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            ..
        } => (name, args.args.clone(), alias),
        TableFactor::Function {
            name, args, alias, ..
        } => (name, args.clone(), alias),
        TableFactor::TableFunction {
            expr: ast::Expr::Function(function),
            alias,
        } => (&function.name, argument_list(function)?, alias),
        _ => return None,
    };
    let kind = WindowKind::by_name(single(name)?)?;
    Some(Written {
        kind,
        position: start(name.span()),
        args,
        alias: alias.clone(),
    })
}

fn plan(written: Written, cx: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let Written {
        kind,
        position,
        args,
        ..
    } = written;
    let shape = |message: &str| usage(kind, message).at(position);
    let args = positional(kind, args).map_err(|fault| fault.at(position))?;
    let [table, time, widths @ ..] = args.as_slice() else {
        return Err(shape("takes a table, a descriptor and widths").into());
    };
    let by = partition_by(table);
    if !by.is_empty() && kind != WindowKind::Session {
        let fault = shape("takes no PARTITION BY: its windows are the same for all rows");
        return Err(fault.at(by.first().and_then(|e| start(e.span()))).into());
    }
    let input =
        cx.plan(table_factor(table).ok_or_else(|| shape("takes a table as its first argument"))?)?;
    let time =
        descriptor(time).ok_or_else(|| shape("takes DESCRIPTOR(column) as its second argument"))?;

    let (n_widths, takes) = match kind {
        WindowKind::Hop => (2, "takes a table, a descriptor, the slide and the width"),
        WindowKind::Tumble => (1, "takes a table, a descriptor and the width"),
        WindowKind::Session => (1, "takes a table, a descriptor and the gap"),
    };
    if widths.len() != n_widths {
        return Err(shape(takes).into());
    }
    let widths = widths
        .iter()
        .map(|w| cx.sql_to_expr(w.clone(), input.schema()))
        .collect::<Result<Vec<_>>>()?;
    let window = width::window(kind, &widths).map_err(|fault| fault.at(position))?;
    free_names(&input).map_err(|fault| fault.at(position))?;

    let partition = (kind == WindowKind::Session)
        .then(|| partition(&by, &input, cx))
        .transpose()?;
    let column = cx.sql_to_expr(time.clone(), input.schema())?;
    let at = start(time.span());
    let event_time = event_time::of(&input, &event_time::Streams::default());
    check_descriptor(&input, &column, &event_time).map_err(|fault| fault.at(at))?;
    let node = WindowTvf::try_new(
        window,
        WindowNames::TABLE,
        input,
        Some(column),
        event_time.zone,
    )?;
    Ok(node
        .with_descriptor(at)
        .with_partition(partition)
        .into_plan())
}

/// The columns of `TABLE t PARTITION BY a`, which the parser has put behind the table.
fn partition_by(table: &ast::Expr) -> Vec<ast::Expr> {
    let ast::Expr::Function(function) = table else {
        return Vec::new();
    };
    if single(&function.name) != Some(TABLE_ARGUMENT) {
        return Vec::new();
    }
    let args = argument_list(function).unwrap_or_default();
    let exprs = args.into_iter().skip(1).filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    exprs.collect()
}

fn partition(
    by: &[ast::Expr],
    input: &LogicalPlan,
    cx: &mut dyn RelationPlannerContext,
) -> Result<Vec<Expr>> {
    let column = |expr: &ast::Expr| -> Result<Expr> {
        let at = start(expr.span());
        match cx.sql_to_expr(expr.clone(), input.schema())? {
            column @ Expr::Column(_) => Ok(column),
            other => {
                let message = format!("PARTITION BY {other} must name a column");
                let fault = Fault::new(FaultKind::Unsupported, message)
                    .hint("give the expression a name in a subquery: SESSION(TABLE …) takes a table, a view or a CTE");
                Err(fault.at(at).into())
            }
        }
    };
    by.iter().map(column).collect()
}

/// The descriptor must name the input's event time: rows carry no other time.
pub(crate) fn check_descriptor(
    input: &LogicalPlan,
    column: &Expr,
    event_time: &EventTime,
) -> Result<(), Fault> {
    let fault = |message: String| Fault::new(FaultKind::NotStreamable, message);
    let Expr::Column(named) = column else {
        return Err(fault(format!("DESCRIPTOR({column}) must name a column")));
    };
    let Ok(index) = input.schema().index_of_column(named) else {
        return Ok(());
    };
    match event_time.column {
        TimeColumn::At(_) if event_time.is_at(index) => Ok(()),
        TimeColumn::At(time) => {
            let field = input.schema().field(time).name();
            Err(fault(format!(
                "column \"{}\" is not the event time of its table",
                named.name
            ))
            .hint(format!(
                "its event time is \"{field}\": write DESCRIPTOR({field})"
            )))
        }
        // Known when the statement that fills the stream has been planned.
        TimeColumn::Unknown => Ok(()),
        TimeColumn::Absent => {
            Err(fault(format!("column \"{}\" is not an event time", named.name)).hint(ABSENT))
        }
    }
}

const ABSENT: &str = "the event time is the column of WATERMARK FOR, and that of a window's result its window_time: \
     select it, or group by tumble(width), hop(slide, width) or session(gap), which need no column";

fn free_names(input: &LogicalPlan) -> Result<(), Fault> {
    let WindowNames { start, end, time } = WindowNames::TABLE;
    let taken = |name: &&str| input.schema().fields().iter().any(|f| f.name() == name);
    match [start, end, time].iter().find(|name| taken(name)) {
        None => Ok(()),
        Some(name) => Err(Fault::new(FaultKind::DuplicateObject, format!("the input of the window already has a column \"{name}\""))
            .hint(format!("rename it in a subquery, or group by tumble(width) instead: SELECT {name} AS inner_{name}, …"))),
    }
}

/// The arguments in their order: table, descriptor, then widths, slide first.
fn positional(kind: WindowKind, args: Vec<FunctionArg>) -> Result<Vec<ast::Expr>, Fault> {
    let mut named: Vec<(usize, ast::Expr)> = Vec::new();
    for (i, arg) in args.into_iter().enumerate() {
        let (place, value) = match arg {
            FunctionArg::Unnamed(value) => (i, value),
            FunctionArg::Named { name, arg, .. } => (place(kind, &name)?, arg),
            FunctionArg::ExprNamed {
                name: ast::Expr::Identifier(name),
                arg,
                ..
            } => (place(kind, &name)?, arg),
            FunctionArg::ExprNamed { .. } => return Err(usage(kind, "takes no such argument")),
        };
        let FunctionArgExpr::Expr(value) = value else {
            return Err(usage(kind, "takes no * argument"));
        };
        named.push((place, value));
    }
    named.sort_by_key(|(place, _)| *place);
    if named.iter().enumerate().any(|(i, (place, _))| i != *place) {
        return Err(usage(kind, "has an argument twice or misses one"));
    }
    Ok(named.into_iter().map(|(_, value)| value).collect())
}

/// The place of an argument given by name, as in the SQL standard's polymorphic table functions.
fn place(kind: WindowKind, name: &Ident) -> Result<usize, Fault> {
    let order: &[&str] = match kind {
        WindowKind::Hop => &["data", "timecol", "slide", "size"],
        WindowKind::Tumble => &["data", "timecol", "size"],
        WindowKind::Session => &["data", "timecol", "gap"],
    };
    order
        .iter()
        .position(|known| known.eq_ignore_ascii_case(&name.value))
        .ok_or_else(|| {
            usage(kind, &format!("has no argument \"{}\"", name.value)).at(start(name.span))
        })
}

fn usage(kind: WindowKind, message: &str) -> Fault {
    let (name, example) = match kind {
        WindowKind::Hop => (
            "HOP",
            "HOP(t, DESCRIPTOR(ts), INTERVAL '2 seconds', INTERVAL '10 seconds')",
        ),
        WindowKind::Tumble => ("TUMBLE", "TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10 seconds')"),
        WindowKind::Session => (
            "SESSION",
            "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '30 seconds')",
        ),
    };
    Fault::new(FaultKind::Syntax, format!("{name} {message}")).hint(format!("write {example}"))
}

/// `t`, `s.t`, `TABLE t`, `TABLE(t)` or `(SELECT …)` as something to select from.
fn table_factor(expr: &ast::Expr) -> Option<TableFactor> {
    match expr {
        ast::Expr::Identifier(name) => Some(table(ObjectName::from(vec![name.clone()]))),
        ast::Expr::CompoundIdentifier(names) => Some(table(ObjectName::from(names.clone()))),
        ast::Expr::Nested(inner) => table_factor(inner),
        ast::Expr::Subquery(query) => Some(TableFactor::Derived {
            lateral: false,
            subquery: query.clone(),
            alias: None,
            sample: None,
        }),
        ast::Expr::Function(function) => {
            let args = argument_list(function)?;
            if single(&function.name)? == TABLE_ARGUMENT {
                return table_factor(first_expr(&args)?);
            }
            // A window of a window.
            Some(TableFactor::Function {
                lateral: false,
                name: function.name.clone(),
                args,
                with_ordinality: false,
                alias: None,
            })
        }
        _ => None,
    }
}

fn table(name: ObjectName) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}

/// The argument of `DESCRIPTOR(column)`.
fn descriptor(expr: &ast::Expr) -> Option<ast::Expr> {
    let ast::Expr::Function(function) = expr else {
        return None;
    };
    if !single(&function.name)?.eq_ignore_ascii_case("descriptor") {
        return None;
    }
    only_expr(&argument_list(function)?).cloned()
}

fn argument_list(function: &Function) -> Option<Vec<FunctionArg>> {
    match &function.args {
        FunctionArguments::List(list) => Some(list.args.clone()),
        _ => None,
    }
}

fn only_expr(args: &[FunctionArg]) -> Option<&ast::Expr> {
    match args {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr),
        _ => None,
    }
}

fn first_expr(args: &[FunctionArg]) -> Option<&ast::Expr> {
    only_expr(args.get(..1)?)
}

fn single(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(|ident| ident.value.as_str()),
        _ => None,
    }
}

fn start(span: Span) -> Option<Position> {
    let Location { line, column } = span.start;
    (line > 0).then_some(Position { line, column })
}
