//! CREATE and DROP.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::statement::{
    ColumnClause, CreateTable, CreateView, Drop, DropKind, Name, OriginClause, PrimaryKey, Role,
    Statement, WatermarkClause,
};
use super::{Result, StatementParser};
use crate::error::{Fault, FaultKind, Position};

impl StatementParser<'_> {
    pub(super) fn parse_create(&mut self) -> Result<Statement> {
        self.expect_words(&["create"])?;
        let or_replace = self.take_words(&["or", "replace"]);
        if self.at_words(&["temp"]) || self.at_words(&["temporary"]) {
            return self.unsupported("temporary tables and views are");
        }
        if self.at_words(&["materialized"]) {
            return self.unsupported_yet("materialized views are");
        }
        if self.take_words(&["view"]) {
            return self.parse_create_view(or_replace);
        }
        let role = if self.take_words(&["table"]) {
            None
        } else if self.take_words(&["source"]) {
            // `CREATE SOURCE TABLE t` is what some of the neighbours write.
            self.take_words(&["table"]);
            Some(Role::Source)
        } else if self.take_words(&["sink"]) {
            self.take_words(&["table"]);
            Some(Role::Sink)
        } else {
            return self.expected("TABLE, SOURCE, SINK or VIEW");
        };
        self.parse_create_table(role, or_replace)
    }

    fn parse_create_view(&mut self, or_replace: bool) -> Result<Statement> {
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = self.parse_relation_name()?;
        let has_columns = self.parser.peek_token_ref().token == Token::LParen;
        let columns = if has_columns {
            self.parse_names()?
        } else {
            Vec::new()
        };
        self.expect_words(&["as"])?;
        let query = self.parse_query()?;
        Ok(Statement::CreateView(CreateView {
            name,
            columns,
            or_replace,
            if_not_exists,
            query,
        }))
    }

    fn parse_create_table(&mut self, role: Option<Role>, or_replace: bool) -> Result<Statement> {
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = self.parse_relation_name()?;
        let mut table = CreateTable {
            name,
            or_replace,
            if_not_exists,
            role,
            columns: Vec::new(),
            primary_key: None,
            watermark: None,
            options: Vec::new(),
            query: None,
        };
        if self.take(&Token::LParen) {
            self.parse_table_elements(&mut table)?;
        }
        table.options = self.parse_options()?;
        if self.take_words(&["as"]) {
            table.query = Some(self.parse_query()?);
            if table.options.is_empty() {
                table.options = self.parse_options()?;
            }
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// The list in parentheses, from after its opening one.
    fn parse_table_elements(&mut self, table: &mut CreateTable) -> Result<()> {
        if self.take(&Token::RParen) {
            return Ok(());
        }
        loop {
            self.parse_table_element(table)?;
            if !self.take(&Token::Comma) {
                break;
            }
        }
        if self.take(&Token::RParen) {
            Ok(())
        } else {
            self.expected("\",\" or \")\"")
        }
    }

    fn parse_table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        let position = self.position();
        if self.take_words(&["watermark", "for"]) {
            let clause = self.parse_watermark(position)?;
            if table.watermark.replace(clause).is_some() {
                return Err(
                    Fault::new(FaultKind::DuplicateObject, "a table has one WATERMARK")
                        .at(Some(position)),
                );
            }
            return Ok(());
        }
        if self.take_words(&["constraint"]) {
            self.parse_name()?;
        }
        if self.take_words(&["primary", "key"]) {
            let columns = self.parse_names()?;
            self.take_words(&["not", "enforced"]);
            return set_primary_key(table, PrimaryKey { columns, position });
        }
        for (constraint, next) in [
            ("foreign", "key"),
            ("unique", "("),
            ("check", "("),
            ("like", ""),
        ] {
            let follows = next.is_empty()
                || self
                    .parser
                    .peek_nth_token_ref(1)
                    .token
                    .to_string()
                    .eq_ignore_ascii_case(next);
            if self.at_words(&[constraint]) && follows {
                return self.unsupported(&format!("{} in a table is", constraint.to_uppercase()));
            }
        }
        let column = self.parse_column(table)?;
        table.columns.push(column);
        Ok(())
    }

    fn parse_watermark(&mut self, position: Position) -> Result<WatermarkClause> {
        let column = self.parse_name()?;
        let expr = if self.take_words(&["as"]) {
            Some(self.parse_expr()?)
        } else {
            None
        };
        Ok(WatermarkClause {
            column,
            expr,
            position,
        })
    }

    fn parse_column(&mut self, table: &mut CreateTable) -> Result<ColumnClause> {
        let name = self.parse_name()?;
        let type_position = self.position();
        if matches!(
            self.parser.peek_token_ref().token,
            Token::Comma | Token::RParen
        ) || self.at_words(&["generated"])
            || self.at_words(&["metadata"])
        {
            return self.expected(&format!("the type of column \"{}\"", name.text));
        }
        let data_type = self.parse_type()?;
        let mut column = ColumnClause {
            name,
            data_type,
            type_position,
            not_null: false,
            origin: OriginClause::Physical,
        };
        while self.parse_column_option(&mut column, table)? {}
        Ok(column)
    }

    /// One option of a column; false when there is none.
    fn parse_column_option(
        &mut self,
        column: &mut ColumnClause,
        table: &mut CreateTable,
    ) -> Result<bool> {
        let position = self.position();
        if self.take_words(&["not", "null"]) {
            column.not_null = true;
        } else if self.take_words(&["null"]) {
            column.not_null = false;
        } else if self.take_words(&["primary", "key"]) {
            self.take_words(&["not", "enforced"]);
            let columns = vec![Name {
                text: column.name.text.clone(),
                position: column.name.position,
            }];
            set_primary_key(table, PrimaryKey { columns, position })?;
        } else if self.take_words(&["generated", "always", "as"]) {
            column.origin = self.parse_generated()?;
        } else if self.take_words(&["metadata", "from"]) {
            let position = self.position();
            let (key, _) = self.parse_literal("the key of the metadata in quotes")?;
            column.origin = OriginClause::Metadata { key, position };
        } else {
            for word in [
                "default",
                "unique",
                "check",
                "references",
                "collate",
                "generated",
                "constraint",
            ] {
                if self.at_words(&[word]) {
                    return self.unsupported(&format!("{} of a column is", word.to_uppercase()));
                }
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn parse_generated(&mut self) -> Result<OriginClause> {
        if self.at_words(&["identity"]) {
            return self.unsupported("IDENTITY of a column is");
        }
        self.expect(&Token::LParen)?;
        let expr = self.parse_expr()?;
        self.expect(&Token::RParen)?;
        // Both spellings mean the same: it is computed on reading and never written.
        let _ = self.take_words(&["stored"]) || self.take_words(&["virtual"]);
        Ok(OriginClause::Generated(Box::new(expr)))
    }

    pub(super) fn parse_drop(&mut self) -> Result<Statement> {
        self.expect_words(&["drop"])?;
        if self.at_words(&["materialized"]) {
            return self.unsupported_yet("materialized views are");
        }
        let kind = if self.take_words(&["view"]) {
            DropKind::View
        } else if self.take_words(&["table"])
            || self.take_words(&["source"])
            || self.take_words(&["sink"])
        {
            DropKind::Table
        } else {
            return self.expected("TABLE, SOURCE, SINK or VIEW");
        };
        let if_exists = self.take_words(&["if", "exists"]);
        let mut names = vec![self.parse_relation_name()?];
        while self.take(&Token::Comma) {
            names.push(self.parse_relation_name()?);
        }
        if self.at_words(&["cascade"]) {
            return self.unsupported("DROP … CASCADE is");
        }
        self.take_words(&["restrict"]);
        Ok(Statement::Drop(Drop {
            kind,
            if_exists,
            names,
        }))
    }
}

fn set_primary_key(table: &mut CreateTable, key: PrimaryKey) -> Result<()> {
    let position = key.position;
    match table.primary_key.replace(key) {
        None => Ok(()),
        Some(_) => Err(
            Fault::new(FaultKind::DuplicateObject, "a table has one PRIMARY KEY")
                .at(Some(position))
                .hint("a key of several columns is written PRIMARY KEY (a, b) after the columns"),
        ),
    }
}
