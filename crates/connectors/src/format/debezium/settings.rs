//! What a table's options say of how values are spelled.

use thalweg_dataflow::options::{OptionDecl, OptionKind, Options};

use super::super::json::epoch_unit;
use super::super::value::binary;
use super::super::value::timestamp::EpochUnit;

pub const BINARY: OptionDecl = OptionDecl::optional(
    "debezium.binary",
    OptionKind::Choice(&["base64", "base64-url-safe", "hex"]),
    Some("base64"),
    "For reading: how BYTEA is spelled, as Debezium's `binary.handling.mode` says.",
);

pub const UNAVAILABLE_VALUE: OptionDecl = OptionDecl::optional(
    "debezium.unavailable_value",
    OptionKind::Text,
    Some("__debezium_unavailable_value"),
    "For reading: what stands for a value that has not changed and is not in the record, as Debezium's \
     `unavailable.value.placeholder` says. The column keeps the value it has.",
);

/// How base64 and hexadecimal text stands for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryText {
    Base64,
    UrlSafe,
    Hex,
}

/// What text in the place of a decimal is, where no schema says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalText {
    /// Found out from the text, which must leave no doubt.
    Unknown,
    Number,
    /// Base64 of the unscaled value.
    Bytes,
}

/// The options of one table.
#[derive(Debug)]
pub struct Settings {
    /// What numbers in the place of timestamps count, where no schema says so.
    pub epoch: EpochUnit,
    pub decimals: DecimalText,
    pub binary: BinaryText,
    pub unavailable: Unavailable,
}

/// The spellings of a value that is not there, by what the column holds.
#[derive(Debug)]
pub struct Unavailable {
    pub text: Vec<u8>,
    /// As base64 of the same text: in the place of bytes and of decimals as bytes.
    pub base64: Vec<u8>,
    pub hex: Vec<u8>,
    /// As a list of the text's bytes, in the place of a list of numbers: `[95,95,100`.
    pub list: Vec<u8>,
}

impl Settings {
    pub fn new(options: &Options) -> Self {
        Self {
            epoch: epoch_unit(options),
            decimals: match options.text("json.decimal_encoding") {
                Some("string") => DecimalText::Number,
                Some("bytes") => DecimalText::Bytes,
                _ => DecimalText::Unknown,
            },
            binary: match options.text(BINARY.name) {
                Some("hex") => BinaryText::Hex,
                Some("base64-url-safe") => BinaryText::UrlSafe,
                _ => BinaryText::Base64,
            },
            unavailable: Unavailable::new(
                options
                    .text(UNAVAILABLE_VALUE.name)
                    .or(UNAVAILABLE_VALUE.default)
                    .unwrap_or_default(),
            ),
        }
    }
}

impl Unavailable {
    fn new(text: &str) -> Self {
        let mut base64 = Vec::new();
        binary::encode_into(text.as_bytes(), &mut base64);
        let hex = text.bytes().flat_map(|b| format!("{b:02x}").into_bytes());
        let list: Vec<String> = text.bytes().map(|b| b.to_string()).collect();
        Self {
            text: text.as_bytes().to_vec(),
            base64,
            hex: hex.collect(),
            list: format!("[{}]", list.join(",")).into_bytes(),
        }
    }
}
