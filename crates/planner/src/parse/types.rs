//! Column types: sqlparser's, and `STRUCT<…>`, `STRUCT(…)`, `ARRAY<…>` around them.

use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType, StructBracketKind, StructField};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Result, StatementParser};

impl StatementParser<'_> {
    pub(super) fn parse_type(&mut self) -> Result<DataType> {
        let mut data_type = if self.at_words(&["struct"]) {
            self.parse_struct()?
        } else if self.at_words(&["array"]) && self.parser.peek_nth_token_ref(1).token == Token::Lt
        {
            self.parse_angle_array()?
        } else {
            return self.upstream(|p| p.parse_data_type());
        };
        while self.take(&Token::LBracket) {
            self.expect(&Token::RBracket)?;
            data_type = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(data_type), None));
        }
        Ok(data_type)
    }

    fn parse_angle_array(&mut self) -> Result<DataType> {
        self.expect_words(&["array"])?;
        self.expect(&Token::Lt)?;
        let element = self.parse_type()?;
        self.expect_closing_angle()?;
        Ok(DataType::Array(ArrayElemTypeDef::AngleBracket(Box::new(
            element,
        ))))
    }

    fn parse_struct(&mut self) -> Result<DataType> {
        self.expect_words(&["struct"])?;
        let angles = self.take(&Token::Lt);
        if !angles {
            self.expect(&Token::LParen)?;
        }
        let mut fields = vec![self.parse_struct_field()?];
        while self.take(&Token::Comma) {
            fields.push(self.parse_struct_field()?);
        }
        if angles {
            self.expect_closing_angle()?;
            Ok(DataType::Struct(fields, StructBracketKind::AngleBrackets))
        } else {
            self.expect(&Token::RParen)?;
            Ok(DataType::Struct(fields, StructBracketKind::Parentheses))
        }
    }

    fn parse_struct_field(&mut self) -> Result<StructField> {
        let name = self.upstream(|p| p.parse_identifier())?;
        self.take(&Token::Colon);
        Ok(StructField {
            field_name: Some(name),
            field_type: self.parse_type()?,
            options: None,
        })
    }

    /// `>`, or the first half of a `>>` that closes two types.
    fn expect_closing_angle(&mut self) -> Result<()> {
        if self.parser.peek_token_ref().token == Token::ShiftRight {
            self.split_shift_right();
        }
        self.expect(&Token::Gt)
    }

    fn split_shift_right(&mut self) {
        let mut rest = Vec::new();
        loop {
            let token = self.parser.next_token();
            match token.token {
                Token::EOF => break,
                Token::ShiftRight if rest.is_empty() => {
                    rest.extend([
                        TokenWithSpan::new(Token::Gt, token.span),
                        TokenWithSpan::new(Token::Gt, token.span),
                    ]);
                }
                _ => rest.push(token),
            }
        }
        self.restart(rest);
    }
}
