//! What a client says: messages of the frontend, decoded with every length checked.
//!
//! The formats are those of the PostgreSQL manual, "Message Formats". The decoder of the `pgwire` crate
//! panics on a body that is shorter than it claims, which nothing a client sends may bring about.

use super::error::Failure;

/// Packets before the start-up is complete, and their limit in PostgreSQL.
pub const MAX_STARTUP_BYTES: usize = 10_000;

/// A message after start-up.
#[derive(Debug, PartialEq)]
pub enum Frontend {
    Query(String),
    Parse(Parse),
    Bind(Bind),
    Describe(Target),
    Execute {
        portal: String,
        max_rows: i32,
    },
    Close(Target),
    Flush,
    Sync,
    Terminate,
    /// Of a COPY FROM STDIN, which there is none of: ignored, as PostgreSQL does after a failed one.
    Copy,
}

#[derive(Debug, PartialEq)]
pub struct Parse {
    pub name: String,
    pub query: String,
    /// 0: the server is to find out.
    pub parameter_types: Vec<u32>,
}

#[derive(Debug, PartialEq)]
pub struct Bind {
    pub portal: String,
    pub statement: String,
    pub parameter_formats: Formats,
    /// `None`: NULL.
    pub parameters: Vec<Option<Vec<u8>>>,
    pub result_formats: Formats,
}

/// Format codes as the protocol abbreviates them: none is all text, one holds for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Formats(pub Vec<i16>);

impl Formats {
    /// Errors: a number of codes that is not none, one or `n_columns`; a code that is none.
    pub fn check(&self, n_columns: usize) -> Result<(), Failure> {
        let n = self.0.len();
        if n > 1 && n != n_columns {
            return Err(Failure::protocol(format!(
                "bind message has {n} format codes for {n_columns} columns"
            )));
        }
        match self.0.iter().find(|code| !(0..=1).contains(*code)) {
            Some(code) => Err(Failure::protocol(format!("unknown format code {code}"))),
            None => Ok(()),
        }
    }

    pub fn is_binary(&self, column: usize) -> bool {
        let code = match self.0.as_slice() {
            [] => None,
            [all] => Some(all),
            each => each.get(column),
        };
        code == Some(&1)
    }
}

/// What Describe and Close are about.
#[derive(Debug, PartialEq)]
pub enum Target {
    Statement(String),
    Portal(String),
}

impl Frontend {
    /// Whether a byte begins a message that this server knows.
    pub fn is_known(tag: u8) -> bool {
        b"QPBDECHSXdcfpF".contains(&tag)
    }

    /// Decodes the body of a message. Errors: one that ends too early, or goes on too long; text that is
    /// not UTF-8.
    pub fn decode(tag: u8, body: &[u8]) -> Result<Self, Failure> {
        let mut rest = Body(body);
        let message = match tag {
            b'Q' => Self::Query(rest.text()?),
            b'P' => Self::Parse(Parse {
                name: rest.text()?,
                query: rest.text()?,
                parameter_types: rest.list(|b| Ok(b.i32()? as u32))?,
            }),
            b'B' => Self::Bind(Bind {
                portal: rest.text()?,
                statement: rest.text()?,
                parameter_formats: Formats(rest.list(Body::i16)?),
                parameters: rest.list(Body::value)?,
                result_formats: Formats(rest.list(Body::i16)?),
            }),
            b'D' => Self::Describe(rest.target()?),
            b'E' => Self::Execute {
                portal: rest.text()?,
                max_rows: rest.i32()?,
            },
            b'C' => Self::Close(rest.target()?),
            b'H' => Self::Flush,
            b'S' => Self::Sync,
            b'X' => return Ok(Self::Terminate),
            b'd' | b'c' | b'f' => return Ok(Self::Copy),
            b'p' => return Err(Failure::protocol("no password was asked for").fatal()),
            b'F' => {
                let failure = Failure::unsupported("function calls by message are not supported");
                return Err(failure.hint("write SELECT f(…)"));
            }
            other => return Err(unknown(other)),
        };
        match rest.0 {
            [] => Ok(message),
            _ => Err(Failure::protocol(
                "invalid message format: bytes are left over",
            )),
        }
    }
}

pub fn unknown(tag: u8) -> Failure {
    Failure::protocol(format!("invalid frontend message type {tag}")).fatal()
}

/// What is left of a body.
pub struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Failure> {
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn i16(&mut self) -> Result<i16, Failure> {
        let bytes = self.bytes(2)?;
        Ok(i16::from_be_bytes(bytes.try_into().expect("two bytes")))
    }

    pub fn i32(&mut self) -> Result<i32, Failure> {
        let bytes = self.bytes(4)?;
        Ok(i32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Text that a zero byte ends.
    pub fn text(&mut self) -> Result<String, Failure> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let bytes = self.bytes(end.ok_or_else(too_short)?)?;
        self.bytes(1)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(Failure::new(
                "22021",
                "invalid byte sequence for encoding \"UTF8\"",
            )),
        }
    }

    /// Counted by 16 bits without a sign.
    fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let n = self.i16()? as u16;
        (0..n).map(|_| item(self)).collect()
    }

    fn value(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self.i32()? {
            -1 => Ok(None),
            n => {
                let n = usize::try_from(n).map_err(|_| too_short())?;
                Ok(Some(self.bytes(n)?.to_vec()))
            }
        }
    }

    fn target(&mut self) -> Result<Target, Failure> {
        match self.bytes(1)? {
            b"S" => Ok(Target::Statement(self.text()?)),
            b"P" => Ok(Target::Portal(self.text()?)),
            _ => Err(Failure::protocol("neither a statement nor a portal")),
        }
    }
}

fn too_short() -> Failure {
    Failure::protocol("invalid message format: no bytes are left")
}

/// The packet that opens a connection.
#[derive(Debug, PartialEq)]
pub enum Opening {
    /// SSL or GSSAPI, which both are declined.
    Encryption,
    Cancel {
        pid: i32,
        secret: Vec<u8>,
    },
    Startup(Startup),
}

#[derive(Debug, PartialEq)]
pub struct Startup {
    pub major: u16,
    pub minor: u16,
    pub parameters: Vec<(String, String)>,
}

impl Opening {
    /// Decodes what follows the length. Errors: a packet that is none of these.
    pub fn decode(packet: &[u8]) -> Result<Self, Failure> {
        let mut rest = Body(packet);
        match rest.i32()? {
            // Codes that no version of the protocol can have.
            80_877_103 | 80_877_104 => Ok(Self::Encryption),
            80_877_102 => Ok(Self::Cancel {
                pid: rest.i32()?,
                secret: rest.0.to_vec(),
            }),
            version => {
                let (major, minor) = ((version >> 16) as u16, version as u16);
                if major != 3 {
                    let message = format!("protocol {major}.{minor} is not supported");
                    return Err(Failure::new("0A000", message)
                        .hint("use 3.0 or later")
                        .fatal());
                }
                let mut parameters = Vec::new();
                while !matches!(rest.0, [] | [0]) {
                    parameters.push((rest.text()?, rest.text()?));
                }
                match rest.0 {
                    [0] => Ok(Self::Startup(Startup {
                        major,
                        minor,
                        parameters,
                    })),
                    _ => Err(Failure::protocol("invalid startup packet").fatal()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(tag: u8, body: &[u8]) -> Result<Frontend, String> {
        Frontend::decode(tag, body).map_err(|failure| failure.message)
    }

    #[test]
    fn every_cut_of_a_message_is_an_error_and_not_a_panic() {
        let messages: [(u8, &[u8]); 5] = [
            (b'Q', b"SELECT 1\0"),
            (b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17"),
            (
                b'B',
                b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01",
            ),
            (b'D', b"Sname\0"),
            (b'E', b"\0\0\0\0\x05"),
        ];
        for (tag, body) in messages {
            Frontend::decode(tag, body).unwrap();
            for end in 0..body.len() {
                assert!(Frontend::decode(tag, &body[..end]).is_err(), "{tag} {end}");
            }
            let longer = [body, b"x"].concat();
            assert!(Frontend::decode(tag, &longer).is_err());
        }
    }

    #[test]
    fn lengths_that_lie_are_errors() {
        let lies: [&[u8]; 3] = [
            b"\0\0\0\0\0\x01\x7f\xff\xff\xffx\0\0",
            b"\0\0\0\0\0\x01\x80\0\0\0x\0\0",
            b"\0\0\xff\xff\0\0",
        ];
        for body in lies {
            decoded(b'B', body).unwrap_err();
        }
        assert_eq!(
            decoded(b'Q', b"\xff\0"),
            Err("invalid byte sequence for encoding \"UTF8\"".into())
        );
        decoded(b'p', b"secret\0").unwrap_err();
        decoded(b'!', b"").unwrap_err();
    }

    #[test]
    fn an_opening_is_one_of_four() {
        let startup = b"\0\x03\0\0user\0me\0database\0d\0\0";
        let parameters = [("user", "me"), ("database", "d")];
        let parameters = parameters.map(|(k, v)| (k.to_string(), v.to_string()));
        assert_eq!(
            Opening::decode(startup).unwrap(),
            Opening::Startup(Startup {
                major: 3,
                minor: 0,
                parameters: parameters.to_vec()
            })
        );
        for end in 0..startup.len() {
            assert!(Opening::decode(&startup[..end]).is_err(), "{end}");
        }
        assert_eq!(
            Opening::decode(&80_877_103_i32.to_be_bytes()).unwrap(),
            Opening::Encryption
        );
        assert!(Opening::decode(b"GET / HTTP/1.1\r\n").is_err());
    }

    #[test]
    fn format_codes_are_abbreviated() {
        let (none, one) = (Formats(vec![]), Formats(vec![1]));
        assert!(!none.is_binary(3) && one.is_binary(3));
        let each = Formats(vec![0, 1]);
        assert!(!each.is_binary(0) && each.is_binary(1) && !each.is_binary(2));
        assert!(each.check(2).is_ok() && each.check(3).is_err() && one.check(0).is_ok());
        assert!(Formats(vec![2]).check(1).is_err());
    }
}
