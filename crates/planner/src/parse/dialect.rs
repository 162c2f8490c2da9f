//! PostgreSQL's lexical and expression syntax, and `TABLE t PARTITION BY k` as a function's argument.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, ObjectNamePart,
};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The function that stands for `TABLE t` among the arguments of a table-valued window function; the columns of its
/// PARTITION BY follow the table.
pub const TABLE_ARGUMENT: &str = "__table_arg";

#[derive(Debug, Default)]
pub struct StreamDialect(PostgreSqlDialect);

/// Overrides of `PostgreSqlDialect` that take no argument.
macro_rules! as_in_postgresql {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool { self.0.$method() })*
    };
}

impl Dialect for StreamDialect {
    /// Keeps every `dialect_of!(self is PostgreSqlDialect)` of the parser true.
    fn dialect(&self) -> TypeId {
        self.0.dialect()
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let is_table =
            matches!(&parser.peek_token_ref().token, Token::Word(w) if w.keyword == Keyword::TABLE);
        if !is_table {
            return None;
        }
        match parser.peek_nth_token(1).token {
            Token::Word(_) => {
                parser.next_token();
                Some(parse_table_argument(parser, |p| p.parse_object_name(false)))
            }
            Token::LParen if matches!(parser.peek_nth_token(2).token, Token::Word(_)) => {
                parser.next_token();
                Some(parse_table_argument(parser, parse_parenthesized_name))
            }
            _ => None,
        }
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.0.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.0.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.0.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.0.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        self.0.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        self.0.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        self.0.get_next_precedence(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        self.0.prec_value(prec)
    }

    as_in_postgresql!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_expr_name,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
    );
}

fn parse_parenthesized_name(parser: &mut Parser) -> Result<ObjectName, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let name = parser.parse_object_name(false)?;
    parser.expect_token(&Token::RParen)?;
    Ok(name)
}

fn parse_table_argument(
    parser: &mut Parser,
    parse_name: impl FnOnce(&mut Parser) -> Result<ObjectName, ParserError>,
) -> Result<Expr, ParserError> {
    let name = parse_name(parser)?;
    let partition = parse_partition(parser)?;
    Ok(table_argument(name, partition))
}

/// `PARTITION BY a` or `PARTITION BY (a, b)`: without parentheses it is one column, for a comma begins the next argument.
fn parse_partition(parser: &mut Parser) -> Result<Vec<Expr>, ParserError> {
    if !parser.parse_keywords(&[Keyword::PARTITION, Keyword::BY]) {
        return Ok(Vec::new());
    }
    if !parser.consume_token(&Token::LParen) {
        return Ok(vec![parser.parse_expr()?]);
    }
    let exprs = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(exprs)
}

fn table_argument(name: ObjectName, partition: Vec<Expr>) -> Expr {
    let parts = name
        .0
        .into_iter()
        .filter_map(|part| part.as_ident().cloned());
    let argument = Expr::CompoundIdentifier(parts.collect());
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(TABLE_ARGUMENT))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: std::iter::once(argument)
                .chain(partition)
                .map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)))
                .collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
