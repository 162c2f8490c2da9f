//! Several records in one message, a line each.

use thalweg_dataflow::options::{OptionDecl, OptionFault, OptionKind, Options};
use thalweg_runtime::connector::{BadReason, ConnectorError};

use super::column::text;
use super::decode::{BadSpan, Consumed, Decoded, Framing, RecordDecoder};
use super::lines::line_end;

pub const METHOD: OptionDecl = OptionDecl::optional(
    "framing.method",
    OptionKind::Choice(&["newline"]),
    None,
    "Whether a message holds several records: 'newline', one a line. Without it a message is one record. In files \
     records are lines in any case.",
);

pub const ALIAS: OptionDecl = OptionDecl::optional(
    "framing",
    OptionKind::Choice(&["newline"]),
    None,
    "Another name of `framing.method`.",
);

pub const MAX_LENGTH: OptionDecl = OptionDecl::optional(
    "framing.newline.max_length",
    OptionKind::Bytes,
    None,
    "The longest line, without its line end; a longer one is a bad record.",
);

/// Bytes of the longest line, where the options say.
pub fn max_length(options: &Options) -> Option<u64> {
    options.bytes(MAX_LENGTH.name)
}

/// Checks what the options cannot say one by one.
pub fn check(options: &Options) -> Result<(), OptionFault> {
    let fault = |message: &str| OptionFault {
        option: Some(MAX_LENGTH.name.to_string()),
        message: message.to_string(),
        hint: None,
    };
    match max_length(options) {
        Some(0) => Err(fault("'framing.newline.max_length' is 0")),
        Some(_) if !is_framed(options) => Err(fault(
            "'framing.newline.max_length' needs framing.method = 'newline'",
        )),
        _ => Ok(()),
    }
}

fn is_framed(options: &Options) -> bool {
    options
        .text(METHOD.name)
        .or(options.text(ALIAS.name))
        .is_some()
}

/// The decoder of messages, where the options say that they hold several records; `records` itself where not.
pub fn framed(records: Box<dyn RecordDecoder>, options: &Options) -> Box<dyn RecordDecoder> {
    if !is_framed(options) {
        return records;
    }
    let max_length = max_length(options).and_then(|n| usize::try_from(n).ok());
    Box::new(LineFraming {
        records,
        max_length: max_length.unwrap_or(usize::MAX),
        n_bytes: 0,
        too_long: Vec::new(),
    })
}

/// Cuts messages into lines; blank ones are no records. All have the message's origin.
struct LineFraming {
    records: Box<dyn RecordDecoder>,
    max_length: usize,
    /// Of the messages since the last flush: what the columns of `records` hold at most.
    n_bytes: usize,
    too_long: Vec<BadSpan>,
}

impl LineFraming {
    fn line(&mut self, line: &[u8], at: u64) {
        if line.len() <= self.max_length {
            let fits = self.records.decode_one(line, at);
            debug_assert!(fits, "the whole message fits");
            return;
        }
        let message = format!(
            "a line of {} bytes is longer than framing.newline.max_length",
            line.len()
        );
        self.too_long.push(BadSpan {
            origin: at,
            raw: line.to_vec(),
            reason: BadReason::TooLarge,
            message,
        });
    }
}

impl RecordDecoder for LineFraming {
    fn framing(&self) -> Framing {
        self.records.framing()
    }

    fn needs_head(&self) -> bool {
        self.records.needs_head()
    }

    fn head(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, ConnectorError> {
        self.records.head(bytes, last)
    }

    fn decode(&mut self, bytes: &[u8], at: u64, max_records: usize, last: bool) -> Consumed {
        self.records.decode(bytes, at, max_records, last)
    }

    fn decode_one(&mut self, message: &[u8], at: u64) -> bool {
        if self.n_bytes > 0 && self.n_bytes + message.len() > text::MAX_BYTES {
            return false;
        }
        self.n_bytes += message.len();
        let mut start = 0;
        while start < message.len() {
            let (end, next) = line_end(message, start, message.len());
            let line = &message[start..end];
            if !line.trim_ascii().is_empty() {
                self.line(line, at);
            }
            start = next;
        }
        true
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        let mut decoded = self.records.flush()?;
        self.n_bytes = 0;
        if !self.too_long.is_empty() {
            decoded.bad.append(&mut self.too_long);
            decoded.bad.sort_by_key(|bad| bad.origin);
        }
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::decoder;
    use crate::testing::{options, schema};
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Int64Type};

    fn decode(given: &[(&str, &str)], messages: &[&[u8]]) -> Decoded {
        let schema = schema(&[("id", DataType::Int64)]);
        let mut decoder = decoder("json", &options(given), &schema, schema.clone()).unwrap();
        for (at, message) in messages.iter().enumerate() {
            assert!(decoder.decode_one(message, at as u64));
        }
        decoder.flush().unwrap()
    }

    fn ids(decoded: &Decoded) -> Vec<i64> {
        decoded
            .rows
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    }

    #[test]
    fn a_message_holds_a_record_a_line() {
        let messages: [&[u8]; 4] = [
            b"{\"id\":1}\n{\"id\":2}\r\n\n{\"id\":3}",
            b"",
            b"{\"id\":4}\n{\"id\":oops}\n{\"id\":5}\n",
            b"{\"id\":6}",
        ];
        for name in ["framing.method", "framing"] {
            let decoded = decode(&[(name, "newline")], &messages);
            assert_eq!(ids(&decoded), [1, 2, 3, 4, 5, 6]);
            assert_eq!(decoded.origins, [0, 0, 0, 2, 2, 3]);
            assert_eq!(decoded.bad.len(), 1);
            assert_eq!(
                (decoded.bad[0].origin, &decoded.bad[0].raw[..]),
                (2, &b"{\"id\":oops}"[..])
            );
        }
        // Without it, a message is one record.
        let decoded = decode(&[], &messages[..1]);
        assert_eq!((ids(&decoded), decoded.bad.len()), (vec![], 1));
    }

    #[test]
    fn long_lines_are_bad_and_their_neighbours_are_not() {
        let given = [
            ("framing.method", "newline"),
            ("framing.newline.max_length", "8"),
        ];
        let decoded = decode(
            &given,
            &[
                b"{\"id\":1}\n{\"id\":12}\n{\"id\":2}",
                b"{\"id\": x}",
                b"{\"i\":\n{\"id\":3}",
            ],
        );
        assert_eq!(ids(&decoded), [1, 2, 3]);
        let bad: Vec<_> = decoded.bad.iter().map(|b| (b.origin, b.reason)).collect();
        assert_eq!(
            bad,
            [
                (0, BadReason::TooLarge),
                (1, BadReason::TooLarge),
                (2, BadReason::Malformed)
            ]
        );
    }

    #[test]
    fn a_limit_without_lines_is_refused() {
        let limit = ("framing.newline.max_length", "8");
        assert!(check(&options(&[limit])).is_err());
        assert!(check(&options(&[("framing", "newline"), limit])).is_ok());
        assert!(
            check(&options(&[
                ("framing", "newline"),
                ("framing.newline.max_length", "0")
            ]))
            .is_err()
        );
    }
}
