//! Spellings of PostgreSQL's catalog queries that the batch engine does not know.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Join, JoinOperator,
    ObjectName, ObjectNamePart, Query, SetExpr, TableAlias, TableFactor, Value, VisitMut,
    VisitorMut,
};

use super::functions::{FORMAT_TYPE, REGCLASS_NAME};
use super::relations::Relations;
use super::tables::is_always_empty;
use crate::pgwire::error::Failure;

/// The last part of a name, as it is compared.
pub fn last(name: &ObjectName) -> String {
    name.0.last().map_or_else(String::new, part)
}

pub fn first(name: &ObjectName) -> String {
    name.0.first().map_or_else(String::new, part)
}

fn part(part: &ObjectNamePart) -> String {
    match part.as_ident() {
        Some(ident) if ident.quote_style.is_some() => ident.value.clone(),
        Some(ident) => ident.value.to_lowercase(),
        None => String::new(),
    }
}

/// Whether rows without a partner are dropped.
pub fn is_inner(join: &Join) -> bool {
    matches!(
        join.join_operator,
        JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
    )
}

/// Errors: a relation named by a `regclass` that does not exist.
pub fn rewrite(query: &mut Query, relations: &Relations) -> Result<(), Failure> {
    let mut rewriting = Rewriting {
        relations,
        failure: None,
    };
    let _ = query.visit(&mut rewriting);
    rewriting.failure.map_or(Ok(()), Err)
}

struct Rewriting<'a> {
    relations: &'a Relations,
    failure: Option<Failure>,
}

impl VisitorMut for Rewriting<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // Before what is within is looked at, which may be beyond the engine.
        match expr {
            Expr::Subquery(query) if is_empty(query) => *expr = value(Value::Null),
            Expr::Exists { subquery, negated } if is_empty(subquery) => {
                *expr = value(Value::Boolean(*negated));
            }
            Expr::Case { .. } => without_other_kinds(expr),
            // Lists of rights, and of names that are to be shown with commas between them.
            Expr::Function(function) if matches!(function.args, FunctionArguments::Subquery(_)) => {
                *expr = value(Value::Null);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                function.name = ObjectName(function.name.0.split_off(function.name.0.len() - 1));
                user_function(function);
            }
            Expr::Collate { expr: inner, .. } => *expr = inner.as_ref().clone(),
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op
                    && let Some(plain) = parts.last().and_then(|symbol| operator(symbol))
                {
                    *op = plain;
                }
            }
            Expr::AnyOp {
                left,
                compare_op: BinaryOperator::Eq,
                right,
                ..
            } => {
                let left = match right.as_ref() {
                    // Lists in our tables are of text.
                    Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                        cast(left.as_ref().clone(), DataType::Text)
                    }
                    _ => left.as_ref().clone(),
                };
                *expr = call("array_has", vec![right.as_ref().clone(), left]);
            }
            Expr::Cast {
                expr: inner,
                data_type,
                kind: CastKind::DoubleColon | CastKind::Cast,
                ..
            } => match self.cast(inner, data_type) {
                Ok(Some(cast)) => *expr = cast,
                Ok(None) => {}
                Err(failure) => {
                    self.failure = Some(failure);
                    return ControlFlow::Break(());
                }
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = factor
            && name.0.len() > 1
        {
            let plain = last(name);
            let registered = match first(name).as_str() {
                "information_schema" => format!("information_schema_{plain}"),
                _ => plain.clone(),
            };
            if registered != plain && alias.is_none() {
                *alias = Some(TableAlias {
                    explicit: true,
                    name: Ident::new(plain),
                    columns: Vec::new(),
                    at: None,
                });
            }
            *name = ObjectName::from(vec![Ident::new(registered)]);
        }
        ControlFlow::Continue(())
    }
}

impl Rewriting<'_> {
    /// A cast to a type of the catalog's own, in terms that the engine has.
    fn cast(&self, inner: &Expr, data_type: &mut DataType) -> Result<Option<Expr>, Failure> {
        let name = match data_type {
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, _))
                if element.to_string().eq_ignore_ascii_case("oid") =>
            {
                **element = DataType::BigInt(None);
                return Ok(None);
            }
            DataType::Custom(name, _) => last(name),
            DataType::Regclass => "regclass".to_string(),
            _ => return Ok(None),
        };
        Ok(match name.as_str() {
            "regclass" => Some(match text_of(inner) {
                Some(text) => self.oid(text)?,
                None => call(REGCLASS_NAME, vec![inner.clone()]),
            }),
            "regtype" => Some(match text_of(inner) {
                Some(_) => inner.clone(),
                None => call(FORMAT_TYPE, vec![inner.clone(), value(Value::Null)]),
            }),
            "regnamespace" => Some(value(Value::SingleQuotedString("public".into()))),
            "oid" | "xid" | "int8" => {
                *data_type = DataType::BigInt(None);
                None
            }
            "int2" | "int4" => {
                *data_type = DataType::Int(None);
                None
            }
            "bool" => {
                *data_type = DataType::Boolean;
                None
            }
            // text, name, "char", regproc and what else is shown.
            _ => {
                *data_type = DataType::Text;
                None
            }
        })
    }

    fn oid(&self, text: &str) -> Result<Expr, Failure> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(value(Value::Number(text.to_string(), false)));
        }
        let name = text.rsplit('.').next().unwrap_or(text).trim_matches('"');
        match self.relations.by_name(name) {
            Some(relation) => Ok(value(Value::Number(relation.oid.to_string(), false))),
            None => Err(Failure::new(
                "42P01",
                format!("relation \"{text}\" does not exist"),
            )),
        }
    }
}

/// Leaves out the branches of a CASE about types that are no base types: there are none. They go down
/// recursive and correlated ways.
fn without_other_kinds(expr: &mut Expr) {
    let Expr::Case {
        operand: None,
        conditions,
        else_result,
        ..
    } = expr
    else {
        return;
    };
    let is_other_kind = |condition: &Expr| match condition {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let kind = matches!(left.as_ref(), Expr::CompoundIdentifier(parts)
                if parts.last().is_some_and(|part| part.value == "typtype"));
            kind && text_of(right).is_some_and(|text| text != "b")
        }
        _ => false,
    };
    let is_list = conditions
        .iter()
        .any(|when| when.result.to_string().contains("array_agg"));
    conditions.retain(|when| !is_other_kind(&when.condition));
    if conditions.is_empty() {
        let data_type = if is_list {
            let element = Box::new(DataType::Text);
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, None))
        } else {
            DataType::BigInt(None)
        };
        *expr = match else_result.take() {
            Some(result) if *result != value(Value::Null) => *result,
            _ => cast(value(Value::Null), data_type),
        };
    }
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// Whether a subquery reads a table that is always empty, alone or joined with others.
fn is_empty(query: &Query) -> bool {
    match query.body.as_ref() {
        SetExpr::Select(select) => select.from.iter().any(|from| {
            matches!(&from.relation, TableFactor::Table { name, .. } if is_always_empty(name))
        }),
        _ => false,
    }
}

fn operator(symbol: &str) -> Option<BinaryOperator> {
    Some(match symbol {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        _ => return None,
    })
}

/// `current_user` and its like come without parentheses.
fn user_function(function: &mut Function) {
    if matches!(function.args, FunctionArguments::None) {
        function.args = FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        });
    }
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn value(value: Value) -> Expr {
    Expr::Value(value.into())
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args
        .into_iter()
        .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
