//! What is refused in FROM.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Spanned, TableFactor,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::Refusals;
use crate::error::{Fault, FaultKind, Position, closest};

impl Refusals {
    pub(super) fn table_factor(&mut self, factor: &TableFactor) {
        let span = factor.span();
        self.relations.extend(relation_arguments(factor));
        match factor {
            TableFactor::Table {
                name,
                args: Some(_),
                ..
            }
            | TableFactor::Function { name, .. }
                if !is_window(name) =>
            {
                self.faults.push(undefined(name));
            }
            TableFactor::Table {
                version: Some(_), ..
            } => self.refuse("FOR SYSTEM_TIME AS OF is", span),
            TableFactor::Table {
                sample: Some(_), ..
            }
            | TableFactor::Derived {
                sample: Some(_), ..
            } => {
                self.refuse("TABLESAMPLE is", span);
            }
            TableFactor::Table {
                with_ordinality: true,
                ..
            }
            | TableFactor::Function {
                with_ordinality: true,
                ..
            }
            | TableFactor::UNNEST {
                with_ordinality: true,
                ..
            } => self.refuse("WITH ORDINALITY is", span),
            TableFactor::NestedJoin {
                table_with_joins, ..
            } if !table_with_joins.joins.is_empty() => {
                self.refuse("joins are", table_with_joins.joins[0].relation.span());
            }
            TableFactor::Pivot { .. } => self.refuse("PIVOT is", span),
            TableFactor::Unpivot { .. } => self.refuse("UNPIVOT is", span),
            TableFactor::MatchRecognize { .. } => self.refuse("MATCH_RECOGNIZE is", span),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                self.refuse("JSON_TABLE is", span)
            }
            TableFactor::XmlTable { .. } => self.refuse("XMLTABLE is", span),
            _ => {}
        }
    }
}

fn is_window(name: &ObjectName) -> bool {
    ["tumble", "hop", "session"]
        .iter()
        .any(|window| name.to_string().eq_ignore_ascii_case(window))
}

fn undefined(name: &ObjectName) -> Fault {
    let message = format!("table function \"{name}\" does not exist");
    let fault = Fault::new(FaultKind::UndefinedFunction, message)
        .at(Some(Position::from(name.span().start)));
    match closest(&name.to_string(), ["tumble", "hop", "session", "unnest"]) {
        Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
        None => fault.hint("there are TUMBLE, HOP, SESSION and UNNEST"),
    }
}

/// Where the subqueries among the arguments of `TUMBLE((SELECT …), …)` stand.
fn relation_arguments(factor: &TableFactor) -> Vec<Span> {
    let args = match factor {
        TableFactor::Table {
            args: Some(args), ..
        } => &args.args,
        TableFactor::Function { args, .. } => args,
        TableFactor::TableFunction {
            expr: Expr::Function(function),
            ..
        } => match &function.args {
            FunctionArguments::List(list) => &list.args,
            _ => return vec![],
        },
        _ => return vec![],
    };
    let relation = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query)))
        | FunctionArg::Named {
            arg: FunctionArgExpr::Expr(Expr::Subquery(query)),
            ..
        }
        | FunctionArg::ExprNamed {
            arg: FunctionArgExpr::Expr(Expr::Subquery(query)),
            ..
        } => Some(query.span()),
        _ => None,
    };
    args.iter().filter_map(relation).collect()
}
