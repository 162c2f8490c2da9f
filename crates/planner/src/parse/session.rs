//! Statements about a connection and about the jobs of a server: transactions, cursors, COPY, jobs.
//!
//! The planner only reads them. Whoever serves clients carries them out; in a script they are refused.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::statement::{CopyFormat, CopyOut, FetchCount, Name, SessionStatement, Statement};
use super::{Result, StatementParser};
use crate::error::{Fault, FaultKind};

impl StatementParser<'_> {
    /// A statement of this kind, where the next words begin one.
    pub(super) fn parse_session(&mut self) -> Result<Option<Statement>> {
        let begins = |p: &Self, words: &[&str]| p.at_words(words);
        let statement = if begins(self, &["begin"]) || begins(self, &["start", "transaction"]) {
            self.rest_of_transaction_word(SessionStatement::Begin)
        } else if begins(self, &["commit"]) || begins(self, &["end"]) {
            self.rest_of_transaction_word(SessionStatement::Commit)
        } else if begins(self, &["rollback"]) || begins(self, &["abort"]) {
            if self.at_words(&["rollback", "to"]) {
                return self.unsupported("savepoints are");
            }
            self.rest_of_transaction_word(SessionStatement::Rollback)
        } else if begins(self, &["declare"]) {
            self.parse_declare()?
        } else if begins(self, &["fetch"]) {
            self.parse_fetch()?
        } else if begins(self, &["close"]) {
            self.parser.advance_token();
            SessionStatement::Close(self.parse_name_or_all()?)
        } else if begins(self, &["copy"]) {
            self.parse_copy()?
        } else if begins(self, &["deallocate"]) {
            self.parser.advance_token();
            self.take_words(&["prepare"]);
            SessionStatement::Deallocate(self.parse_name_or_all()?)
        } else if self.take_words(&["discard", "all"]) {
            SessionStatement::Discard
        } else if begins(self, &["unlisten"]) {
            self.rest_of_transaction_word(SessionStatement::Unlisten)
        } else if begins(self, &["set", "transaction"])
            || begins(self, &["set", "session", "characteristics"])
        {
            self.rest_of_transaction_word(SessionStatement::SetTransaction)
        } else if self.take_words(&["show", "jobs"]) {
            SessionStatement::ShowJobs
        } else if self.take_words(&["drop", "job"]) {
            let if_exists = self.take_words(&["if", "exists"]);
            let name = self.parse_name()?;
            SessionStatement::DropJob { name, if_exists }
        } else if self.take_words(&["create", "job"]) {
            self.parse_create_job()?
        } else {
            return Ok(None);
        };
        Ok(Some(Statement::Session(statement)))
    }

    /// What may follow BEGIN and the like (WORK, ISOLATION LEVEL …) changes nothing here.
    fn rest_of_transaction_word(&mut self, statement: SessionStatement) -> SessionStatement {
        while self.parser.peek_token_ref().token != Token::EOF {
            self.parser.advance_token();
        }
        statement
    }

    /// `None`: ALL.
    fn parse_name_or_all(&mut self) -> Result<Option<Name>> {
        if self.take_words(&["all"]) {
            return Ok(None);
        }
        Ok(Some(self.parse_name()?))
    }

    /// `DECLARE c [NO SCROLL] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query`.
    fn parse_declare(&mut self) -> Result<SessionStatement> {
        self.parser.advance_token();
        let name = self.parse_name()?;
        let options = [
            &["binary"][..],
            &["insensitive"],
            &["asensitive"],
            &["no", "scroll"],
        ];
        loop {
            if self.at_words(&["binary"]) {
                return self.unsupported("binary cursors are");
            }
            if self.at_words(&["scroll"]) {
                return self.unsupported("cursors that go backwards are");
            }
            if !options.iter().any(|words| self.take_words(words)) {
                break;
            }
        }
        self.expect_words(&["cursor"])?;
        let hold = self.take_words(&["with", "hold"]);
        if !hold {
            self.take_words(&["without", "hold"]);
        }
        self.expect_words(&["for"])?;
        let query = self.parse_result_query("a cursor")?;
        Ok(SessionStatement::Declare { name, hold, query })
    }

    /// `FETCH [n | ALL | NEXT | FORWARD [n | ALL]] [FROM | IN] c`.
    fn parse_fetch(&mut self) -> Result<SessionStatement> {
        self.parser.advance_token();
        for backwards in ["prior", "first", "last", "absolute", "relative", "backward"] {
            if self.at_words(&[backwards]) {
                return self.unsupported("cursors that go backwards are");
            }
        }
        self.take_words(&["forward"]);
        let count = if self.take_words(&["all"]) {
            FetchCount::All
        } else if self.take_words(&["next"]) {
            FetchCount::Rows(1)
        } else if let Token::Number(digits, _) = &self.parser.peek_token_ref().token {
            let Ok(n) = digits.parse() else {
                return self.expected("a number of rows");
            };
            self.parser.advance_token();
            FetchCount::Rows(n)
        } else if self.parser.peek_token_ref().token == Token::Minus {
            return self.unsupported("cursors that go backwards are");
        } else {
            FetchCount::Rows(1)
        };
        if !self.take_words(&["from"]) {
            self.take_words(&["in"]);
        }
        let cursor = self.parse_name()?;
        Ok(SessionStatement::Fetch { cursor, count })
    }

    /// `COPY (query) TO STDOUT [WITH] [(FORMAT csv, HEADER, DELIMITER ';', NULL '…') | CSV [HEADER]]`.
    fn parse_copy(&mut self) -> Result<SessionStatement> {
        let position = self.position();
        self.parser.advance_token();
        if self.parser.peek_token_ref().token != Token::LParen {
            let fault = Fault::new(FaultKind::Unsupported, "COPY of a table is not supported");
            let fault = fault.at(Some(position));
            return Err(fault.hint("write COPY (SELECT … FROM t) TO STDOUT, or INSERT INTO t"));
        }
        self.expect(&Token::LParen)?;
        let query = self.parse_result_query("COPY")?;
        self.expect(&Token::RParen)?;
        self.expect_words(&["to"])?;
        if !self.take_words(&["stdout"]) {
            let hint = "a sink keeps what a query gives: CREATE TABLE … WITH (…), then INSERT INTO";
            return self
                .expected("STDOUT")
                .map_err(|fault: Fault| fault.hint(hint));
        }
        let mut copy = CopyOut::new(query);
        self.take_words(&["with"]);
        if self.take(&Token::LParen) {
            loop {
                self.parse_copy_option(&mut copy)?;
                if !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        } else {
            while self.parser.peek_token_ref().token != Token::EOF {
                self.parse_old_copy_option(&mut copy)?;
            }
        }
        Ok(SessionStatement::Copy(copy))
    }

    fn parse_copy_option(&mut self, copy: &mut CopyOut) -> Result<()> {
        if self.take_words(&["format"]) {
            let position = self.position();
            let format = self.parse_name()?.text;
            copy.format = match format.as_str() {
                "text" => CopyFormat::Text,
                "csv" => CopyFormat::Csv,
                _ => {
                    let message = format!("COPY format \"{format}\" is not supported");
                    let fault = Fault::new(FaultKind::Unsupported, message).at(Some(position));
                    return Err(fault.hint("text or csv"));
                }
            };
            return Ok(());
        }
        if self.take_words(&["header"]) {
            copy.header = !self.take_words(&["false"]) && !self.take_words(&["off"]);
            let _ = self.take_words(&["true"]) || self.take_words(&["on"]);
            return Ok(());
        }
        self.parse_old_copy_option(copy)
    }

    fn parse_old_copy_option(&mut self, copy: &mut CopyOut) -> Result<()> {
        if self.take_words(&["csv"]) {
            copy.format = CopyFormat::Csv;
        } else if self.take_words(&["header"]) {
            copy.header = true;
        } else if self.take_words(&["delimiter"]) {
            self.take_words(&["as"]);
            copy.delimiter = Some(self.parse_copy_delimiter()?);
        } else if self.take_words(&["null"]) {
            self.take_words(&["as"]);
            copy.null = Some(self.parse_literal("a string")?.0);
        } else {
            return self.expected("FORMAT, HEADER, DELIMITER or NULL");
        }
        Ok(())
    }

    fn parse_copy_delimiter(&mut self) -> Result<u8> {
        let (text, position) = self.parse_literal("a string")?;
        match text.as_bytes() {
            [byte] if !byte.is_ascii_alphanumeric() && !b"\n\r\\.\"".contains(byte) => Ok(*byte),
            _ => {
                let message = format!("\"{text}\" cannot be the delimiter of COPY");
                let fault = Fault::new(FaultKind::InvalidOption, message).at(Some(position));
                Err(fault.hint("one ASCII character that is no letter and no digit"))
            }
        }
    }

    /// `CREATE JOB name AS INSERT …`.
    fn parse_create_job(&mut self) -> Result<SessionStatement> {
        let name = self.parse_name()?;
        self.expect_words(&["as"])?;
        let position = self.position();
        match self.parse_statement()? {
            statement @ Statement::Insert(_) => Ok(SessionStatement::CreateJob {
                name,
                insert: Box::new(statement),
            }),
            Statement::CreateTable(create) if create.query.is_some() => {
                Ok(SessionStatement::CreateJob {
                    name,
                    insert: Box::new(Statement::CreateTable(create)),
                })
            }
            _ => {
                let fault =
                    Fault::new(FaultKind::Syntax, "a job is an INSERT or CREATE TABLE … AS");
                Err(fault.at(Some(position)))
            }
        }
    }

    /// A SELECT or SUBSCRIBE, whose rows somebody takes.
    fn parse_result_query(&mut self, whose: &str) -> Result<Box<Statement>> {
        let position = self.position();
        match self.parse_statement()? {
            statement @ Statement::Query { .. } => Ok(Box::new(statement)),
            _ => {
                let message = format!("{whose} takes a SELECT or a SUBSCRIBE");
                Err(Fault::new(FaultKind::Syntax, message).at(Some(position)))
            }
        }
    }
}
