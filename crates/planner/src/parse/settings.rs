//! SET, RESET, SHOW and DESCRIBE.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::statement::{Name, SetValue, Show, Statement};
use super::{Result, StatementParser};

impl StatementParser<'_> {
    /// `SET name = value`, `SET name TO value`; values as strings, numbers, words or `INTERVAL '…'`.
    pub(super) fn parse_set(&mut self) -> Result<Statement> {
        self.expect_words(&["set"])?;
        if self.at_words(&["local"]) {
            return self.unsupported("SET LOCAL is");
        }
        self.take_words(&["session"]);
        if self.at_words(&["time", "zone"]) {
            let setting = Name {
                text: "timezone".into(),
                position: self.position(),
            };
            self.take_words(&["time", "zone"]);
            return Ok(Statement::Set {
                setting,
                value: self.parse_set_value()?,
            });
        }
        let setting = self.parse_setting_name()?;
        if !self.take(&Token::Eq) && !self.take_words(&["to"]) {
            return self.expected("\"=\" or TO");
        }
        Ok(Statement::Set {
            setting,
            value: self.parse_set_value()?,
        })
    }

    fn parse_set_value(&mut self) -> Result<SetValue> {
        if self.take_words(&["default"]) {
            return Ok(SetValue::Default);
        }
        let (mut text, position) = self.parse_literal("a value")?;
        while self.take(&Token::Comma) {
            text.push_str(", ");
            text.push_str(&self.parse_literal("a value")?.0);
        }
        Ok(SetValue::To { text, position })
    }

    pub(super) fn parse_reset(&mut self) -> Result<Statement> {
        self.expect_words(&["reset"])?;
        if self.take_words(&["all"]) {
            return Ok(Statement::Reset(None));
        }
        Ok(Statement::Reset(Some(self.parse_setting_name()?)))
    }

    pub(super) fn parse_show(&mut self) -> Result<Statement> {
        self.expect_words(&["show"])?;
        if self.take_words(&["all"]) {
            return Ok(Statement::Show(Show::All));
        }
        if self.take_words(&["tables"]) {
            return Ok(Statement::Show(Show::Tables));
        }
        if self.take_words(&["columns", "from"]) {
            return Ok(Statement::Describe(self.parse_relation_name()?));
        }
        if self.at_words(&["transaction", "isolation", "level"]) {
            let name = Name {
                text: "transaction_isolation".into(),
                position: self.position(),
            };
            self.take_words(&["transaction", "isolation", "level"]);
            return Ok(Statement::Show(Show::Setting(name)));
        }
        if self.at_words(&["time", "zone"]) {
            let name = Name {
                text: "timezone".into(),
                position: self.position(),
            };
            self.take_words(&["time", "zone"]);
            return Ok(Statement::Show(Show::Setting(name)));
        }
        Ok(Statement::Show(Show::Setting(self.parse_setting_name()?)))
    }

    pub(super) fn parse_describe(&mut self) -> Result<Statement> {
        self.parser.advance_token();
        Ok(Statement::Describe(self.parse_relation_name()?))
    }

    /// A setting's name: quoted as a whole, or words joined by dots and, as some settings have it,
    /// hyphens.
    fn parse_setting_name(&mut self) -> Result<Name> {
        let position = self.position();
        let mut text = match self.parser.peek_token_ref().token.clone() {
            Token::SingleQuotedString(text) => {
                self.parser.advance_token();
                return Ok(Name {
                    text: text.to_lowercase(),
                    position,
                });
            }
            Token::Word(word) => word.value,
            _ => return self.expected("the name of a setting"),
        };
        self.parser.advance_token();
        loop {
            let joint = match self.parser.peek_token_ref().token {
                Token::Period => '.',
                Token::Minus => '-',
                _ => {
                    return Ok(Name {
                        text: text.to_lowercase(),
                        position,
                    });
                }
            };
            self.parser.advance_token();
            let Token::Word(word) = self.parser.peek_token_ref().token.clone() else {
                return self.expected("the name of a setting");
            };
            self.parser.advance_token();
            text.push(joint);
            text.push_str(&word.value);
        }
    }
}
