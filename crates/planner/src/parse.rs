//! SQL text to statements: PostgreSQL's syntax with the clauses that streams need.
//!
//! A text is split at its top-level semicolons first, so that a statement that does not parse hides
//! no fault of those after it.

mod ddl;
mod dialect;
mod nesting;
mod options;
mod query;
mod session;
mod settings;
pub mod statement;
mod types;

use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::error::{Fault, FaultKind, Position, lower_first};
use dialect::StreamDialect;
pub use dialect::TABLE_ARGUMENT;
use statement::Statement;

/// One statement of a script, or why it is none.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// Of its first token.
    pub position: Position,
    pub result: Result<Statement, ParseFault>,
}

/// A statement that could not be parsed.
#[derive(Debug, Clone)]
pub struct ParseFault {
    pub fault: Fault,
    /// The relation that the statement would have created, so that its users are not faulted too.
    pub creates: Option<String>,
}

/// All statements of `sql`, in order. Empty statements are left out.
pub fn parse(sql: &str) -> Vec<Parsed> {
    let dialect = StreamDialect::default();
    let mut tokens = Vec::new();
    let broken = Tokenizer::new(&dialect, sql)
        .tokenize_with_location_into_buf(&mut tokens)
        .err();
    let mut statements: Vec<Parsed> = tokens
        .split(|t| t.token == Token::SemiColon)
        .filter_map(|tokens| parse_one(&dialect, tokens))
        .collect();
    if let Some(error) = broken {
        replace_broken(&mut statements, &tokens, error);
    }
    statements
}

/// The statement in which the tokenizer gave up says why, in place of what its beginning parsed to.
fn replace_broken(statements: &mut Vec<Parsed>, tokens: &[TokenWithSpan], error: TokenizerError) {
    let place = Position::from(error.location);
    let message = match error.message.as_str() {
        text if text.contains("close delimiter") => "unterminated quoted identifier".to_string(),
        text if text.contains("multi-line comment") => "unterminated comment".to_string(),
        text => lower_first(text.trim_end_matches('.')),
    };
    let fault = Fault::new(FaultKind::Syntax, message).at(Some(place));
    let last = tokens
        .rsplit(|t| t.token == Token::SemiColon)
        .next()
        .unwrap_or_default();
    let position = match first_token(last) {
        Some(first) => {
            statements.pop();
            first.span.start.into()
        }
        None => place,
    };
    statements.push(Parsed {
        position,
        result: Err(ParseFault {
            fault,
            creates: created_name(last),
        }),
    });
}

fn parse_one(dialect: &StreamDialect, tokens: &[TokenWithSpan]) -> Option<Parsed> {
    let position = first_token(tokens)?.span.start.into();
    let mut parser = StatementParser::new(dialect, tokens);
    let result = if tokens.len() > nesting::MAX_TOKENS {
        parser.too_long()
    } else {
        parser.parse()
    };
    let result = result.map_err(|fault| ParseFault {
        fault: fault.at(Some(position)),
        creates: created_name(tokens),
    });
    Some(Parsed { position, result })
}

fn first_token(tokens: &[TokenWithSpan]) -> Option<&TokenWithSpan> {
    tokens
        .iter()
        .find(|t| !matches!(t.token, Token::Whitespace(_)))
}

/// The name after `CREATE … TABLE` and the like, found without parsing.
fn created_name(tokens: &[TokenWithSpan]) -> Option<String> {
    let mut words = tokens
        .iter()
        .filter(|t| !matches!(t.token, Token::Whitespace(_)))
        .map(|t| &t.token);
    let is = |token: &Token, word: &str| matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    if !is(words.next()?, "create") {
        return None;
    }
    words.find(|t| ["table", "view", "source", "sink"].iter().any(|w| is(t, w)))?;
    let name = words.find(|t| !["if", "not", "exists"].iter().any(|w| is(t, w)))?;
    match name {
        Token::Word(w) if w.quote_style.is_some() => Some(w.value.clone()),
        Token::Word(w) => Some(w.value.to_lowercase()),
        _ => None,
    }
}

/// Parses one statement from its tokens.
struct StatementParser<'a> {
    dialect: &'a StreamDialect,
    parser: Parser<'a>,
    /// Just after the last token.
    end: Position,
}

type Result<T, E = Fault> = std::result::Result<T, E>;

impl<'a> StatementParser<'a> {
    fn new(dialect: &'a StreamDialect, tokens: &[TokenWithSpan]) -> Self {
        let last = tokens
            .iter()
            .rfind(|t| !matches!(t.token, Token::Whitespace(_)));
        let end = last.map_or(Position { line: 1, column: 1 }, |t| t.span.end.into());
        let parser = Parser::new(dialect).with_tokens_with_locations(tokens.to_vec());
        Self {
            dialect,
            parser,
            end,
        }
    }

    /// Goes on with other tokens in place of those not yet consumed.
    fn restart(&mut self, rest: Vec<TokenWithSpan>) {
        self.parser = Parser::new(self.dialect).with_tokens_with_locations(rest);
    }

    fn parse(&mut self) -> Result<Statement> {
        let statement = self.parse_statement()?;
        match self.parser.peek_token_ref().token {
            Token::EOF => Ok(statement),
            _ => self.expected("the end of the statement"),
        }
    }

    fn too_long(&self) -> Result<Statement> {
        let message = format!("the statement has more than {} words", nesting::MAX_TOKENS);
        Err(Fault::new(FaultKind::Unsupported, message).at(Some(self.position())))
    }

    fn parse_statement(&mut self) -> Result<Statement> {
        let Token::Word(word) = &self.parser.peek_token_ref().token else {
            return self.parse_select();
        };
        let word = word.value.to_ascii_lowercase();
        if let Some(statement) = self.parse_session()? {
            return Ok(statement);
        }
        match word.as_str() {
            "select" | "with" | "values" | "from" => self.parse_select(),
            "create" => self.parse_create(),
            "insert" => self.parse_insert(),
            "subscribe" => self.parse_subscribe(),
            "explain" => self.parse_explain(),
            "describe" | "desc" => self.parse_describe(),
            "drop" => self.parse_drop(),
            "set" => self.parse_set(),
            "reset" => self.parse_reset(),
            "show" => self.parse_show(),
            other => Err(unknown_statement(other).at(Some(self.position()))),
        }
    }

    fn position(&self) -> Position {
        match self.parser.peek_token_ref() {
            TokenWithSpan {
                token: Token::EOF, ..
            } => self.end,
            token => token.span.start.into(),
        }
    }

    /// Whether the next words are these, unquoted.
    fn at_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| {
            matches!(&self.parser.peek_nth_token_ref(n).token,
                Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
        })
    }

    /// Consumes the words if they are next, all of them or none.
    fn take_words(&mut self, words: &[&str]) -> bool {
        let there = self.at_words(words);
        if there {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        there
    }

    fn take(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    fn expect(&mut self, token: &Token) -> Result<()> {
        if self.take(token) {
            Ok(())
        } else {
            self.expected(&format!("\"{token}\""))
        }
    }

    fn expect_words(&mut self, words: &[&str]) -> Result<()> {
        if self.take_words(words) {
            Ok(())
        } else {
            self.expected(&words.join(" ").to_uppercase())
        }
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = match &self.parser.peek_token_ref().token {
            Token::EOF => "the end of the statement".to_string(),
            token => format!("\"{token}\""),
        };
        Err(
            Fault::new(FaultKind::Syntax, format!("expected {what}, found {found}"))
                .at(Some(self.position())),
        )
    }

    /// Runs a part of sqlparser's own parser.
    fn upstream<T>(
        &mut self,
        parse: impl FnOnce(&mut Parser<'a>) -> Result<T, ParserError>,
    ) -> Result<T> {
        parse(&mut self.parser).map_err(|error| syntax_fault(error, self.end))
    }

    fn unsupported_yet<T>(&self, what: &str) -> Result<T> {
        Err(
            Fault::new(FaultKind::Unsupported, format!("{what} not supported yet"))
                .at(Some(self.position())),
        )
    }

    fn unsupported<T>(&self, what: &str) -> Result<T> {
        Err(
            Fault::new(FaultKind::Unsupported, format!("{what} not supported"))
                .at(Some(self.position())),
        )
    }
}

const STATEMENTS: [&str; 14] = [
    "select",
    "with",
    "values",
    "create",
    "insert",
    "subscribe",
    "explain",
    "describe",
    "drop",
    "set",
    "reset",
    "show",
    "table",
    "view",
];

fn unknown_statement(word: &str) -> Fault {
    match word {
        "update" | "delete" | "merge" | "truncate" | "alter" | "grant" | "revoke" | "prepare"
        | "execute" | "savepoint" | "release" | "listen" | "notify" | "lock" | "analyze"
        | "vacuum" | "comment" => Fault::new(
            FaultKind::Unsupported,
            format!("{} is not supported", word.to_uppercase()),
        ),
        _ => {
            let fault = Fault::new(
                FaultKind::Syntax,
                format!("expected a statement, found \"{word}\""),
            );
            match crate::error::closest(word, STATEMENTS) {
                Some(known) => fault.hint(format!("did you mean {}?", known.to_uppercase())),
                None => fault,
            }
        }
    }
}

/// A fault from sqlparser's error, whose place stands at the end of its text.
fn syntax_fault(error: ParserError, end: Position) -> Fault {
    let text = match error {
        ParserError::ParserError(text) => text,
        ParserError::TokenizerError(text) => text,
        ParserError::RecursionLimitExceeded => {
            return Fault::new(FaultKind::Syntax, "the statement is nested too deeply");
        }
    };
    let (text, position) = split_place(&text);
    let (message, at_end) = match text.rsplit_once(", found: ") {
        Some((expected, "EOF")) => (format!("{expected}, found the end of the statement"), true),
        Some((expected, found)) => (format!("{expected}, found \"{found}\""), false),
        None => (text.to_string(), false),
    };
    let message = lower_first(&message.replace("Expected: ", "expected "));
    Fault::new(FaultKind::Syntax, message).at(if at_end { Some(end) } else { position })
}

/// Splits `… at Line: 3, Column: 7` off.
fn split_place(text: &str) -> (&str, Option<Position>) {
    let parsed = text.rsplit_once(" at Line: ").and_then(|(head, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((
            head,
            Position {
                line: line.parse().ok()?,
                column: column.parse().ok()?,
            },
        ))
    });
    match parsed {
        Some((head, position)) => (head, Some(position)),
        None => (text, None),
    }
}

/// A type written as in a column's declaration.
pub fn parse_type(text: &str) -> Result<datafusion::sql::sqlparser::ast::DataType> {
    let dialect = StreamDialect::default();
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| Fault::new(FaultKind::Syntax, lower_first(&error.message)))?;
    StatementParser::new(&dialect, &tokens).parse_type()
}
