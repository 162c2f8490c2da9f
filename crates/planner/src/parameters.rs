//! Parameters of prepared statements: which types they have, and their values in their place.
//!
//! Values become literals of the parsed statement, before it is bound; text is never put together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast::{
    self, Array, ArrayElemTypeDef, CastKind, Expr, Ident, LimitClause, Query, SelectItem, SetExpr,
    UnaryOperator, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::bind::{Scope, parameter_types, written_fields};
use crate::catalog::{Catalog, Relation};
use crate::error::{Fault, FaultKind};
use crate::parse::parse_type;
use crate::parse::statement::{Insert, SessionStatement, Statement};
use crate::types::field_of;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// With its SQL type, where that is known.
    Null(Option<String>),
    Bool(bool),
    /// Digits, with a sign where below zero.
    Integer(String),
    Text(String),
    Bytes(Vec<u8>),
    /// Of elements of an SQL type.
    Array {
        elements: Vec<Literal>,
        element_type: String,
    },
    /// The text of a value of an SQL type.
    Typed {
        text: String,
        sql_type: String,
    },
}

/// More than the protocol can say.
const MAX_PARAMETERS: usize = 65_535;

/// How many parameters the statement has: the greatest number among them.
///
/// Errors: one that is no number from 1.
pub fn count(statement: &Statement) -> Result<usize, Fault> {
    let mut found = Found::default();
    if let Some(query) = query_of(statement) {
        let _ = query.visit(&mut found);
    }
    match found.fault {
        Some(fault) => Err(fault),
        None => Ok(found.greatest),
    }
}

/// The type of each parameter, as far as the statement around it tells.
pub fn types(statement: &Statement, catalog: &Catalog) -> Vec<Option<DataType>> {
    let Some(query) = query_of(statement) else {
        return Vec::new();
    };
    let mut found = Found::default();
    let _ = query.visit(&mut found);
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        let counts = limit
            .iter()
            .chain(offset.iter().map(|offset| &offset.value));
        for number in counts.filter_map(number) {
            found.types.insert(number, DataType::Int64);
        }
    }
    if let Some(insert) = insert_of(statement) {
        found.types.extend(inserted(insert, catalog));
    }
    let scope = Scope {
        catalog,
        broken: &Default::default(),
        fixtures: None,
    };
    // A query that does not bind with its parameters open tells less, and its fault later.
    for (number, data_type) in parameter_types(query, &scope).unwrap_or_default() {
        found.types.entry(number).or_insert(data_type);
    }
    (1..=found.greatest)
        .map(|number| found.types.get(&number).cloned())
        .collect()
}

/// Puts values in the place of parameters: the first for `$1`. There are enough of them.
pub fn substitute(statement: &mut Statement, values: &[Literal]) -> Result<(), Fault> {
    let Some(query) = query_of_mut(statement) else {
        return Ok(());
    };
    name_columns(query);
    let mut substitution = Substitution {
        values,
        fault: None,
    };
    let _ = query.visit(&mut substitution);
    substitution.fault.map_or(Ok(()), Err)
}

/// Gives the columns of a result that have parameters and no name the text of their expression: literals of
/// the same value would make them look alike.
fn name_columns(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let mut names = BTreeSet::new();
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        let mut found = Found::default();
        let _ = Visit::visit(&*expr, &mut found);
        if found.greatest == 0 {
            continue;
        }
        let text = expr.to_string();
        let numbered = (2..).map(|n| format!("{text} {n}"));
        let mut candidates = std::iter::once(text.clone()).chain(numbered);
        let name = candidates
            .find(|name| names.insert(name.clone()))
            .expect("there are fewer columns than numbers");
        *item = SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Ident::with_quote('"', name),
        };
    }
}

fn query_of(statement: &Statement) -> Option<&Query> {
    match statement {
        Statement::Query { query, .. } => Some(query),
        Statement::Insert(insert) => Some(&insert.query),
        Statement::CreateTable(create) => create.query.as_deref(),
        Statement::Explain(inner) => query_of(inner),
        Statement::Session(session) => match session {
            SessionStatement::Declare { query, .. } => query_of(query),
            SessionStatement::Copy(copy) => query_of(&copy.query),
            SessionStatement::CreateJob { insert, .. } => query_of(insert),
            _ => None,
        },
        _ => None,
    }
}

fn query_of_mut(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Query { query, .. } => Some(query),
        Statement::Insert(insert) => Some(&mut insert.query),
        Statement::CreateTable(create) => create.query.as_deref_mut(),
        Statement::Explain(inner) => query_of_mut(inner),
        Statement::Session(session) => match session {
            SessionStatement::Declare { query, .. } => query_of_mut(query),
            SessionStatement::Copy(copy) => query_of_mut(&mut copy.query),
            SessionStatement::CreateJob { insert, .. } => query_of_mut(insert),
            _ => None,
        },
        _ => None,
    }
}

fn insert_of(statement: &Statement) -> Option<&Insert> {
    match statement {
        Statement::Insert(insert) => Some(insert),
        Statement::Explain(inner) => insert_of(inner),
        Statement::Session(SessionStatement::CreateJob { insert, .. }) => insert_of(insert),
        _ => None,
    }
}

/// The types of parameters that stand by themselves among the VALUES or in the SELECT list of an INSERT:
/// those of the columns that they fill.
fn inserted(insert: &Insert, catalog: &Catalog) -> BTreeMap<usize, DataType> {
    let Some(Relation::Table(table) | Relation::Stream(table)) =
        catalog.relations.get(&insert.table.text)
    else {
        return BTreeMap::new();
    };
    let fields: Vec<_> = written_fields(table).collect();
    let column = |index: usize| match insert.columns.as_slice() {
        [] => fields.get(index).map(|field| field.data_type().clone()),
        names => {
            let name = names.get(index)?;
            let field = fields.iter().find(|field| *field.name() == name.text)?;
            Some(field.data_type().clone())
        }
    };
    let mut types = BTreeMap::new();
    let mut row = |exprs: &mut dyn Iterator<Item = &Expr>| {
        for (index, expr) in exprs.enumerate() {
            if let (Some(number), Some(data_type)) = (number(expr), column(index)) {
                types.insert(number, data_type);
            }
        }
    };
    match insert.query.body.as_ref() {
        SetExpr::Values(values) => values.rows.iter().for_each(|exprs| row(&mut exprs.iter())),
        SetExpr::Select(select) => {
            row(&mut select.projection.iter().filter_map(|item| match item {
                SelectItem::UnnamedExpr(expr) => Some(expr),
                SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                _ => None,
            }))
        }
        _ => {}
    }
    types
}

/// The number of a parameter that stands by itself.
fn number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(text) => position(text),
            _ => None,
        },
        Expr::Nested(inner) => number(inner),
        _ => None,
    }
}

fn position(placeholder: &str) -> Option<usize> {
    let number = placeholder.strip_prefix('$')?.parse().ok()?;
    (1..=MAX_PARAMETERS).contains(&number).then_some(number)
}

#[derive(Default)]
struct Found {
    greatest: usize,
    /// Of parameters under a cast.
    types: BTreeMap<usize, DataType>,
    fault: Option<Fault>,
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cast {
            expr: inner,
            data_type,
            ..
        } = expr
            && let (Some(number), Some(data_type)) = (number(inner), type_of(data_type))
        {
            self.types.insert(number, data_type);
        }
        if let Expr::Value(value) = expr
            && let Value::Placeholder(text) = &value.value
        {
            match position(text) {
                Some(number) => self.greatest = self.greatest.max(number),
                None => {
                    let message = format!("\"{text}\" is no parameter: they are $1, $2, …");
                    let fault = Fault::new(FaultKind::Syntax, message);
                    self.fault = Some(fault.at(place(value.span)));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The name of the element of an array of object ids, which no table can have: drivers ask the catalog for
/// several at a time.
pub const OIDS: &str = "oids";

fn type_of(data_type: &ast::DataType) -> Option<DataType> {
    if let ast::DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = data_type
        && element.to_string().eq_ignore_ascii_case("oid")
    {
        let element = Field::new(OIDS, DataType::UInt32, true);
        return Some(DataType::List(Arc::new(element)));
    }
    Some(field_of(data_type).ok()?.data_type().clone())
}

fn place(span: Span) -> Option<crate::error::Position> {
    (span.start.line > 0).then(|| span.start.into())
}

struct Substitution<'a> {
    values: &'a [Literal],
    fault: Option<Fault>,
}

impl VisitorMut for Substitution<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Value(value) = expr else {
            return ControlFlow::Continue(());
        };
        let Value::Placeholder(text) = &value.value else {
            return ControlFlow::Continue(());
        };
        let text = text.clone();
        let span = value.span;
        let found = position(&text).and_then(|number| self.values.get(number - 1));
        match found.map(|literal| literal.at(span)) {
            Some(Ok(literal)) => {
                *expr = literal;
                ControlFlow::Continue(())
            }
            Some(Err(fault)) => {
                self.fault = Some(fault.at(place(span)));
                ControlFlow::Break(())
            }
            None => {
                let message = format!("there is no parameter {text}");
                let fault = Fault::new(FaultKind::UndefinedParameter, message);
                self.fault = Some(fault.at(place(span)));
                ControlFlow::Break(())
            }
        }
    }
}

impl Literal {
    /// The literal as an expression that stands at `span`.
    fn at(&self, span: Span) -> Result<Expr, Fault> {
        let value = |value: Value| Expr::Value(value.with_span(span));
        Ok(match self {
            Self::Null(None) => value(Value::Null),
            Self::Null(Some(sql_type)) => cast(value(Value::Null), sql_type)?,
            Self::Bool(truth) => value(Value::Boolean(*truth)),
            Self::Integer(digits) => match digits.strip_prefix('-') {
                Some(digits) => Expr::Nested(Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr: Box::new(value(Value::Number(digits.to_string(), false))),
                })),
                None => value(Value::Number(digits.clone(), false)),
            },
            Self::Text(text) => value(Value::SingleQuotedString(text.clone())),
            Self::Bytes(bytes) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                value(Value::HexStringLiteral(hex))
            }
            Self::Array {
                elements,
                element_type,
            } => {
                let elem = elements.iter().map(|element| element.at(span));
                let array = Expr::Array(Array {
                    elem: elem.collect::<Result<_, _>>()?,
                    named: true,
                });
                cast(array, &format!("{element_type}[]"))?
            }
            Self::Typed { text, sql_type } => {
                cast(value(Value::SingleQuotedString(text.clone())), sql_type)?
            }
        })
    }
}

fn cast(expr: Expr, sql_type: &str) -> Result<Expr, Fault> {
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: parse_type(sql_type)?,
        array: false,
        format: None,
    })
}
