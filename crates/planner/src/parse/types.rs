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
        } else if self.at_words(&["map"]) && self.parser.peek_nth_token_ref(1).token == Token::Lt {
            return self.parse_map();
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

    fn parse_map(&mut self) -> Result<DataType> {
        self.expect_words(&["map"])?;
        self.expect(&Token::Lt)?;
        let key = self.parse_type()?;
        self.expect(&Token::Comma)?;
        let value = self.parse_type()?;
        self.expect_closing_angle()?;
        Ok(DataType::Map(Box::new(key), Box::new(value)))
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

    /// `>`, or the first of a `>>` or `>>>` that closes several types.
    fn expect_closing_angle(&mut self) -> Result<()> {
        let text = self.parser.peek_token_ref().token.to_string();
        if text.len() > 1 && text.chars().all(|ch| ch == '>') {
            self.split_angles(text.len());
        }
        self.expect(&Token::Gt)
    }

    fn split_angles(&mut self, n_angles: usize) {
        let angles = self.parser.next_token();
        let mut rest = vec![TokenWithSpan::new(Token::Gt, angles.span); n_angles];
        loop {
            let token = self.parser.next_token();
            if token.token == Token::EOF {
                break;
            }
            rest.push(token);
        }
        self.restart(rest);
    }
}
