//! Statements that contain a query, and EXPLAIN.

use datafusion::sql::sqlparser::ast::{self, Expr, Query, TableObject};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::statement::{Insert, Name, Statement};
use super::{Result, StatementParser};
use crate::error::{Fault, FaultKind};

impl StatementParser<'_> {
    pub(super) fn parse_query(&mut self) -> Result<Box<Query>> {
        let query = self.upstream(|p| p.parse_query())?;
        self.shallow(query)
    }

    pub(super) fn parse_expr(&mut self) -> Result<Expr> {
        let expr = self.upstream(|p| p.parse_expr())?;
        self.shallow(expr)
    }

    pub(super) fn parse_select(&mut self) -> Result<Statement> {
        Ok(Statement::Query {
            query: self.parse_query()?,
            subscribe: false,
        })
    }

    /// `SUBSCRIBE (query)`, `SUBSCRIBE query`.
    pub(super) fn parse_subscribe(&mut self) -> Result<Statement> {
        self.expect_words(&["subscribe"])?;
        self.take_words(&["to"]);
        Ok(Statement::Query {
            query: self.parse_query()?,
            subscribe: true,
        })
    }

    pub(super) fn parse_explain(&mut self) -> Result<Statement> {
        self.expect_words(&["explain"])?;
        if self.at_words(&["analyze"]) {
            return self.unsupported("EXPLAIN ANALYZE is");
        }
        self.take_words(&["verbose"]);
        if self.parser.peek_token_ref().token == Token::LParen && self.explain_options_follow() {
            return self.unsupported("options of EXPLAIN are");
        }
        let position = self.position();
        let inner = self.parse_statement()?;
        match inner {
            Statement::Query { .. } | Statement::Insert(_) => {
                Ok(Statement::Explain(Box::new(inner)))
            }
            Statement::CreateTable(ref create) if create.query.is_some() => {
                Ok(Statement::Explain(Box::new(inner)))
            }
            _ => Err(
                Fault::new(FaultKind::Syntax, "EXPLAIN takes a query or an INSERT")
                    .at(Some(position)),
            ),
        }
    }

    /// `(VERBOSE, …)` rather than a query in parentheses.
    fn explain_options_follow(&self) -> bool {
        match &self.parser.peek_nth_token_ref(1).token {
            Token::Word(w) => !["select", "with", "values", "from"]
                .iter()
                .any(|q| w.value.eq_ignore_ascii_case(q)),
            _ => false,
        }
    }

    pub(super) fn parse_insert(&mut self) -> Result<Statement> {
        let start = self.position();
        let unsupported = |what: &str| {
            Fault::new(FaultKind::Unsupported, format!("{what} not supported")).at(Some(start))
        };
        let insert = self.parser.next_token();
        let insert = match self.upstream(|p| p.parse_insert(insert))? {
            ast::Statement::Insert(insert) => insert,
            _ => return Err(unsupported("this form of INSERT is")),
        };
        let plain = insert.or.is_none()
            && !insert.overwrite
            && !insert.replace_into
            && insert.assignments.is_empty()
            && insert.partitioned.is_none()
            && insert.after_columns.is_empty()
            && insert.settings.is_none()
            && insert.format_clause.is_none()
            && insert.multi_table_insert_type.is_none();
        if insert.on.is_some() {
            return Err(unsupported("ON CONFLICT is")
                .hint("a sink with a PRIMARY KEY takes updates by that key"));
        }
        if insert.returning.is_some() {
            return Err(unsupported("RETURNING is"));
        }
        if !plain || insert.table_alias.is_some() {
            return Err(unsupported("this form of INSERT is"));
        }
        let TableObject::TableName(table) = &insert.table else {
            return Err(unsupported("INSERT into anything but a table is"));
        };
        let table = relation_name(table)?;
        let columns = insert
            .columns
            .iter()
            .map(relation_name)
            .collect::<Result<_>>()?;
        match insert.source {
            Some(query) => Ok(Statement::Insert(Insert {
                table,
                columns,
                query,
            })),
            None => Err(unsupported("INSERT without a query or VALUES is")),
        }
    }

    /// A table's or view's name.
    pub(super) fn parse_relation_name(&mut self) -> Result<Name> {
        let name = self.upstream(|p| p.parse_object_name(false))?;
        relation_name(&name)
    }

    pub(super) fn parse_name(&mut self) -> Result<Name> {
        Ok(Name::of(&self.upstream(|p| p.parse_identifier())?))
    }

    /// `(a, b, …)`.
    pub(super) fn parse_names(&mut self) -> Result<Vec<Name>> {
        self.expect(&Token::LParen)?;
        let mut names = vec![self.parse_name()?];
        while self.take(&Token::Comma) {
            names.push(self.parse_name()?);
        }
        self.expect(&Token::RParen)?;
        Ok(names)
    }
}

/// The one part of an object's name.
pub fn relation_name(name: &ast::ObjectName) -> Result<Name> {
    let mut parts = name.0.iter().filter_map(|part| part.as_ident());
    match (parts.next(), parts.next()) {
        (Some(ident), None) => Ok(Name::of(ident)),
        (Some(first), Some(_)) => Err(Fault::new(
            FaultKind::Unsupported,
            format!("\"{name}\" is qualified, and there are no schemas"),
        )
        .at(Some(first.span.start.into()))),
        _ => Err(Fault::new(
            FaultKind::Syntax,
            format!("expected a name, found \"{name}\""),
        )),
    }
}
