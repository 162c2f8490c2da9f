//! Why a record is rejected, and where in it.

use arrow::datatypes::DataType;
use thalweg_runtime::connector::BadReason;

use super::value::{ValueFault, excerpt};

/// The fault of one record. Always boxed: the path that has none should not carry its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub reason: BadReason,
    message: String,
    /// The column, with the way into it: `order.items[2].price`. Empty: the record as a whole.
    path: String,
}

impl Fault {
    #[cold]
    pub fn new(reason: BadReason, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            reason,
            message: message.into(),
            path: String::new(),
        })
    }

    #[cold]
    pub fn malformed(message: impl Into<String>) -> Box<Self> {
        Self::new(BadReason::Malformed, message)
    }

    /// `text` is the value as it came.
    #[cold]
    pub fn value(fault: ValueFault, text: &[u8], data_type: &DataType) -> Box<Self> {
        let (reason, message) = fault.describe(&excerpt(text), data_type);
        Self::new(reason, message)
    }

    #[cold]
    pub fn missing(is_null: bool) -> Box<Self> {
        let what = if is_null { "null" } else { "missing" };
        Self::new(
            BadReason::Missing,
            format!("is {what}, but declared NOT NULL"),
        )
    }

    /// The same fault, seen from the object around it.
    #[cold]
    pub fn in_field(mut self: Box<Self>, name: &str) -> Box<Self> {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{name}{separator}{}", self.path);
        self
    }

    /// The same fault, seen from the array around it.
    #[cold]
    pub fn in_item(mut self: Box<Self>, index: usize) -> Box<Self> {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("[{index}]{separator}{}", self.path);
        self
    }

    /// For a person: `column "amount": "12,5" is not a number`.
    pub fn message(&self) -> String {
        match self.reason {
            _ if self.path.is_empty() => self.message.clone(),
            BadReason::Missing => format!("column \"{}\" {}", self.path, self.message),
            _ => format!("column \"{}\": {}", self.path, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_column_and_the_way_into_it() {
        let fault = Fault::value(ValueFault::Type, b"\"12,5\"", &DataType::Float64);
        assert_eq!(fault.message(), "\"12,5\" is not a number");
        let fault = fault
            .in_field("price")
            .in_item(2)
            .in_item(0)
            .in_field("items")
            .in_field("order");
        assert_eq!(
            fault.message(),
            "column \"order.items[0][2].price\": \"12,5\" is not a number"
        );
        assert_eq!(
            Fault::missing(false).in_field("id").message(),
            "column \"id\" is missing, but declared NOT NULL"
        );
    }
}
