//! JSON text of values.

use super::super::cells::{CellValues, Cells, Spelling, Token};
use super::check_record;
use super::cursor::find_special;

/// Appends the value in a row.
pub fn write_value(cells: &Cells, row: usize, spelling: &Spelling, out: &mut Vec<u8>) {
    if cells.is_null(row) {
        return out.extend_from_slice(b"null");
    }
    match cells.values.token(row, spelling) {
        Token::Bare => cells.values.write_scalar(row, spelling, out),
        Token::Text => {
            out.push(b'"');
            cells.values.write_scalar(row, spelling, out);
            out.push(b'"');
        }
        Token::Other => write_other(&cells.values, row, spelling, out),
    }
}

fn write_other(values: &CellValues, row: usize, spelling: &Spelling, out: &mut Vec<u8>) {
    match values {
        CellValues::Text(v) => write_string(v.value(row).as_bytes(), out),
        CellValues::Json(v) if spelling.json_as_text => write_string(v.value(row).as_bytes(), out),
        CellValues::Json(v) => write_json(v.value(row).as_bytes(), out),
        CellValues::List { offsets, items } => {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            write_sequence(b'[', b']', range, out, |i, out| {
                write_value(items, i, spelling, out)
            });
        }
        CellValues::Struct(fields) => {
            write_sequence(b'{', b'}', 0..fields.len(), out, |i, out| {
                let (name, cells) = &fields[i];
                write_string(name.as_bytes(), out);
                out.push(b':');
                write_value(cells, row, spelling, out);
            });
        }
        CellValues::Map {
            offsets,
            keys,
            values,
        } => {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            write_sequence(b'{', b'}', range, out, |i, out| {
                write_string(keys.value(i).as_bytes(), out);
                out.push(b':');
                write_value(values, i, spelling, out);
            });
        }
        CellValues::Union { array, children } => {
            let id = array.type_id(row);
            let child = children.iter().find(|(child, _)| *child == id);
            let (_, cells) = child.expect("a union's type ids are among its children's");
            write_value(cells, array.value_offset(row), spelling, out);
        }
        _ => unreachable!("scalars are written elsewhere"),
    }
}

fn write_sequence(
    open: u8,
    close: u8,
    range: std::ops::Range<usize>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(usize, &mut Vec<u8>),
) {
    out.push(open);
    for i in range.clone() {
        if i > range.start {
            out.push(b',');
        }
        write(i, out);
    }
    out.push(close);
}

/// Appends text in quotes, with escapes where JSON needs them (RFC 8259, section 7).
#[inline]
pub fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut start = 0;
    loop {
        let end = find_special(text, start);
        out.extend_from_slice(&text[start..end]);
        let Some(byte) = text.get(end) else { break };
        write_escape(*byte, out);
        start = end + 1;
    }
    out.push(b'"');
}

#[cold]
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        8 => b'b',
        12 => b'f',
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends JSON text as it is, on one line. Text of a JSON column that is no JSON, which a cast may have
/// made, becomes a string: a reader of the output must not stumble over it.
fn write_json(text: &[u8], out: &mut Vec<u8>) {
    if check_record(text).is_err() {
        return write_string(text, out);
    }
    // Valid JSON has line ends only between tokens, where a space means the same.
    out.extend(
        text.iter()
            .map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_only_where_they_must_be() {
        for text in [
            "",
            "plain",
            "a\"b\\c/d",
            "line\nend\r\t\u{8}\u{c}\u{1}",
            "größe 😀 \u{7f}",
        ] {
            let mut out = Vec::new();
            write_string(text.as_bytes(), &mut out);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
        let mut out = Vec::new();
        write_string("a/\u{1}ü\n".as_bytes(), &mut out);
        assert_eq!(out, "\"a/\\u0001ü\\n\"".as_bytes());
    }

    #[test]
    fn json_stays_json_on_one_line() {
        for (text, expected) in [
            ("{\"a\": [1,  2.50]}", "{\"a\": [1,  2.50]}"),
            ("{\n\"a\":1\n}", "{ \"a\":1 }"),
            ("oops", "\"oops\""),
            ("", "\"\""),
            ("1 2", "\"1 2\""),
        ] {
            let mut out = Vec::new();
            write_json(text.as_bytes(), &mut out);
            assert_eq!(out, expected.as_bytes(), "{text}");
        }
    }
}
