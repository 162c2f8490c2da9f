//! WITH lists and literal values.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::statement::{Name, OptionClause};
use super::{Result, StatementParser};
use crate::error::Position;

impl StatementParser<'_> {
    /// `WITH (key = value, …)`, or nothing.
    pub(super) fn parse_options(&mut self) -> Result<Vec<OptionClause>> {
        if !self.take_words(&["with"]) {
            return Ok(Vec::new());
        }
        self.expect(&Token::LParen)?;
        let mut options = Vec::new();
        if self.take(&Token::RParen) {
            return Ok(options);
        }
        loop {
            options.push(self.parse_option()?);
            if !self.take(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen)?;
        Ok(options)
    }

    fn parse_option(&mut self) -> Result<OptionClause> {
        let key = self.parse_option_key()?;
        self.expect(&Token::Eq)?;
        let (value, value_position) = self.parse_literal("a value")?;
        Ok(OptionClause {
            key,
            value,
            value_position,
        })
    }

    /// `'quoted'`, `"quoted"`, `word` or `dotted.words`.
    fn parse_option_key(&mut self) -> Result<Name> {
        let position = self.position();
        let mut text = String::new();
        loop {
            match self.parser.peek_token_ref().token.clone() {
                Token::SingleQuotedString(part) => text.push_str(&part),
                Token::Word(word) if word.quote_style.is_some() => text.push_str(&word.value),
                Token::Word(word) => text.push_str(&word.value.to_lowercase()),
                _ => return self.expected("the name of an option"),
            }
            self.parser.advance_token();
            if !self.take(&Token::Period) {
                return Ok(Name { text, position });
            }
            text.push('.');
        }
    }

    /// The text of a string, a number, a word (`true`, `append`) or `INTERVAL '…'`.
    pub(super) fn parse_literal(&mut self, what: &str) -> Result<(String, Position)> {
        let position = self.position();
        let sign = if self.take(&Token::Minus) { "-" } else { "" };
        if sign.is_empty() && self.at_words(&["interval"]) {
            self.parser.advance_token();
        }
        let text = match self.parser.peek_token_ref().token.clone() {
            Token::Number(digits, _) => format!("{sign}{digits}"),
            _ if !sign.is_empty() => return self.expected("a number"),
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text)
            | Token::NationalStringLiteral(text) => text,
            Token::DollarQuotedString(text) => text.value,
            Token::Word(word) if !word.value.eq_ignore_ascii_case("null") => word.value,
            _ => return self.expected(what),
        };
        self.parser.advance_token();
        Ok((self.with_unit(text), position))
    }

    /// `INTERVAL '5' MINUTE` has its unit outside of the string.
    fn with_unit(&mut self, text: String) -> String {
        const UNITS: [&str; 10] = [
            "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week",
            "weeks",
        ];
        match UNITS.iter().find(|unit| self.at_words(&[unit])) {
            Some(unit) => {
                self.parser.advance_token();
                format!("{text} {unit}")
            }
            None => text,
        }
    }
}
