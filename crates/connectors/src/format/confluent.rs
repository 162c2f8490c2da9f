//! The wire format of Confluent's serializers: a byte 0, the id of the schema in the registry (4 bytes,
//! big-endian), then the record. With Protobuf, the path to the message within its schema stands between.

use super::fault::Fault;

const MAGIC: u8 = 0;
pub const HEADER_BYTES: usize = 5;

/// What stands before the record in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    #[default]
    None,
    Confluent,
}

impl Header {
    pub fn of(is_confluent: bool) -> Self {
        if is_confluent {
            Self::Confluent
        } else {
            Self::None
        }
    }

    /// Where the record begins in a message. Errors: it has no such header.
    pub fn skip(self, message: &[u8]) -> Result<usize, Box<Fault>> {
        match self {
            Self::None => Ok(0),
            Self::Confluent => schema_id(message).map(|_| HEADER_BYTES),
        }
    }
}

/// The id of the schema with which a message was written.
pub fn schema_id(message: &[u8]) -> Result<u32, Box<Fault>> {
    match message {
        [MAGIC, a, b, c, d, ..] => Ok(u32::from_be_bytes([*a, *b, *c, *d])),
        [MAGIC, ..] | [] => Err(Fault::malformed(format!(
            "a message of {} bytes is too short for a schema id",
            message.len()
        ))),
        [other, ..] => Err(Fault::malformed(format!(
            "the message begins with the byte {other}, not with 0 and a schema id: it was not written with a \
             schema registry"
        ))),
    }
}

/// What precedes a record that is written with the schema `id`.
pub fn header(id: u32) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = id.to_be_bytes();
    [MAGIC, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_there_and_back() {
        assert_eq!(header(0x0102_0304), [0, 1, 2, 3, 4]);
        assert_eq!(schema_id(&[0, 1, 2, 3, 4, 9]).unwrap(), 0x0102_0304);
        assert_eq!(Header::Confluent.skip(&header(7)).unwrap(), 5);
        assert_eq!(Header::None.skip(b"").unwrap(), 0);
    }

    #[test]
    fn messages_without_a_header_are_named() {
        let message = |bytes: &[u8]| schema_id(bytes).unwrap_err().message();
        assert_eq!(
            message(b""),
            "a message of 0 bytes is too short for a schema id"
        );
        assert_eq!(
            message(&[0, 0, 0]),
            "a message of 3 bytes is too short for a schema id"
        );
        assert!(message(b"{}").starts_with("the message begins with the byte 123, not with 0"));
    }
}
