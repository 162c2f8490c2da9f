//! The hash of a key: which virtual partition it belongs to, and where it stands in a hash table.
//!
//! It is computed from column values, the same for equal keys on every machine and in every version
//! that reads the same state: `docs/state-format.md` describes it, and changing it means a new format
//! version. Exchanges and keyed state both use it, which is why they agree on who owns a key.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::fixed::{FixedType, WordType, with_word_type};
use super::keys::{KeyCodec, KeyError};

/// Keys are spread over this many virtual partitions, the unit in which state moves.
pub const N_VNODES: usize = 256;

const SEED: u64 = 0x243f_6a88_85a3_08d3;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const NULL: u64 = 0xa409_3822_299f_31d0;

/// The product of two numbers as 128 bits, folded into 64.
#[inline(always)]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a single value of at most 64 bits, as [`hash_columns`] gives it for one column.
#[inline(always)]
pub(crate) fn hash_word(word: u64) -> u64 {
    mix(SEED ^ word, MULTIPLIER)
}

/// The hash of a single value of up to 128 bits, as [`hash_columns`] gives it for one column.
#[inline(always)]
pub(crate) fn hash_wide_word(word: u128) -> u64 {
    mix(
        mix(SEED ^ (word >> 64) as u64, MULTIPLIER) ^ word as u64,
        MULTIPLIER,
    )
}

/// The hash of some bytes (after wyhash, whose construction this follows).
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut hash = SEED ^ n as u64;
    let (a, b) = match n {
        0 => (0, 0),
        1..=3 => (
            u64::from(bytes[0]) << 8 | u64::from(bytes[n / 2]),
            u64::from(bytes[n - 1]),
        ),
        4..=7 => (half(0).into(), half(n - 4).into()),
        8..=16 => (word(0), word(n - 8)),
        _ => {
            let mut at = 0;
            while n - at > 16 {
                hash = mix(word(at) ^ hash, word(at + 8) ^ MULTIPLIER);
                at += 16;
            }
            (word(n - 16), word(n - 8))
        }
    };
    mix(mix(a ^ hash, b ^ MULTIPLIER) ^ NULL, MULTIPLIER)
}

/// A hash for each row of some key columns. Null is a value like any other.
///
/// Errors: a column type that cannot be part of a key.
pub fn hash_columns(columns: &[ArrayRef], n_rows: usize) -> Result<Vec<u64>, KeyError> {
    let mut hashes = vec![SEED; n_rows];
    for column in columns {
        add_column(&mut hashes, column)?;
    }
    Ok(hashes)
}

/// The virtual partition of each row's key. A key without columns is in partition 0.
///
/// Errors: a column type that cannot be part of a key.
pub fn vnodes(columns: &[ArrayRef], n_rows: usize) -> Result<Vec<u8>, KeyError> {
    if columns.is_empty() {
        return Ok(vec![0; n_rows]);
    }
    Ok(hash_columns(columns, n_rows)?
        .into_iter()
        .map(vnode_of)
        .collect())
}

/// Bits that hash tables look at last: a subtask holds only some vnodes, and its tables should not
/// suffer from that.
fn vnode_of(hash: u64) -> u8 {
    (hash >> 40) as u8
}

fn add_column(hashes: &mut [u64], column: &ArrayRef) -> Result<(), KeyError> {
    let nulls = column.logical_nulls();
    let nulls = nulls.as_ref();
    macro_rules! words {
        ($t:ty) => {{
            let values = column.as_primitive::<$t>().values();
            let word = |row: usize| <$t>::to_word(<$t>::canonical(values[row]));
            if size_of::<<$t as arrow::array::ArrowPrimitiveType>::Native>() <= 8 {
                add(hashes, nulls, |h, row| {
                    mix(h ^ word(row) as u64, MULTIPLIER)
                });
            } else {
                add(hashes, nulls, |h, row| {
                    mix(
                        mix(h ^ (word(row) >> 64) as u64, MULTIPLIER) ^ word(row) as u64,
                        MULTIPLIER,
                    )
                });
            }
        }};
    }
    macro_rules! bytes {
        ($column:expr) => {{
            let column = $column;
            add(hashes, nulls, |h, row| {
                let value: &[u8] = column.value(row).as_ref();
                mix(h ^ hash_bytes(value), MULTIPLIER)
            });
        }};
    }
    with_word_type!(column.data_type() => words!(),
        DataType::Utf8 => bytes!(column.as_string::<i32>()),
        DataType::LargeUtf8 => bytes!(column.as_string::<i64>()),
        DataType::Utf8View => bytes!(column.as_string_view()),
        DataType::Binary => bytes!(column.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(column.as_binary::<i64>()),
        DataType::BinaryView => bytes!(column.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(column.as_fixed_size_binary()),
        DataType::Boolean => {
            let values = column.as_boolean().values();
            add(hashes, nulls, |h, row| mix(h ^ u64::from(values.value(row)), MULTIPLIER));
        },
        DataType::Dictionary(_, value) => add_column(hashes, &cast(column, value)?)?,
        other => {
            // Nested and rare types: the hash of their key bytes.
            let codec = KeyCodec::new([other.clone()])?;
            let rows = codec.encode(std::slice::from_ref(column), column.len())?;
            add(hashes, nulls, |h, row| mix(h ^ hash_bytes(rows.row(row)), MULTIPLIER));
        },
    );
    Ok(())
}

#[inline(always)]
fn add(hashes: &mut [u64], nulls: Option<&NullBuffer>, next: impl Fn(u64, usize) -> u64) {
    match nulls.filter(|n| n.null_count() > 0) {
        None => hashes
            .iter_mut()
            .enumerate()
            .for_each(|(row, h)| *h = next(*h, row)),
        Some(nulls) => hashes.iter_mut().enumerate().for_each(|(row, h)| {
            *h = if nulls.is_valid(row) {
                next(*h, row)
            } else {
                mix(*h ^ NULL, NULL)
            };
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::*;
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    /// Stored state depends on these values: a change of any of them is a change of the format.
    #[test]
    fn hashes_are_what_they_always_were() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(-1), Some(42), None]));
        let text: ArrayRef = Arc::new(StringArray::from(vec![
            Some(""),
            Some("abc"),
            Some("München"),
            Some("a longer key than sixteen bytes"),
        ]));
        let wide: ArrayRef = Arc::new(Decimal128Array::from(vec![
            Some(1),
            Some(-1),
            None,
            Some(i128::MAX),
        ]));
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(2)]),
        ]));
        let all = [ints.clone(), text.clone(), wide.clone(), list.clone()];
        let found: Vec<_> = [vec![ints], vec![text], vec![wide], vec![list], all.to_vec()]
            .iter()
            .map(|columns| {
                (
                    vnodes(columns, 4).unwrap(),
                    hash_columns(columns, 4).unwrap()[2],
                )
            })
            .collect();
        expect_test::expect![[r#"
            [
                (
                    [
                        192,
                        180,
                        54,
                        196,
                    ],
                    10492320649234301248,
                ),
                (
                    [
                        190,
                        226,
                        203,
                        240,
                    ],
                    7137303059464790326,
                ),
                (
                    [
                        52,
                        132,
                        196,
                        59,
                    ],
                    7726141117746349465,
                ),
                (
                    [
                        107,
                        196,
                        164,
                        31,
                    ],
                    1126362626596821626,
                ),
                (
                    [
                        155,
                        187,
                        230,
                        235,
                    ],
                    6111075106825612425,
                ),
            ]
        "#]]
        .assert_debug_eq(&found);
    }

    #[test]
    fn equal_keys_hash_alike_whatever_array_holds_them() {
        let plain: ArrayRef = Arc::new(StringArray::from(vec!["x", "yy", "x"]));
        let sliced = StringArray::from(vec!["?", "x", "yy", "x"]).slice(1, 3);
        let view: ArrayRef = Arc::new(StringViewArray::from(vec!["x", "yy", "x"]));
        let dictionary: DictionaryArray<Int32Type> = vec!["x", "yy", "x"].into_iter().collect();
        let expected = hash_columns(&[plain], 3).unwrap();
        assert_eq!(hash_columns(&[Arc::new(sliced)], 3).unwrap(), expected);
        assert_eq!(hash_columns(&[view], 3).unwrap(), expected);
        assert_eq!(hash_columns(&[Arc::new(dictionary)], 3).unwrap(), expected);
        assert_eq!(expected[0], expected[2]);
    }

    #[test]
    fn zeros_and_nans_hash_alike_but_null_is_another_key() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(0.0),
            Some(-0.0),
            Some(f64::NAN),
            Some(-f64::NAN),
            None,
        ]));
        let h = hash_columns(&[floats], 5).unwrap();
        assert_eq!((h[0], h[2]), (h[1], h[3]));
        assert_ne!(h[4], h[0]);
    }

    #[test]
    fn small_keys_spread_evenly_over_the_vnodes() {
        let ints: ArrayRef = Arc::new(Int64Array::from_iter_values(0..25_600));
        let text: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..25_600).map(|i| format!("key-{i}")),
        ));
        for column in [ints, text] {
            let mut counts = [0; N_VNODES];
            vnodes(&[column], 25_600)
                .unwrap()
                .iter()
                .for_each(|&v| counts[v as usize] += 1);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(
                *least > 50 && *most < 160,
                "between {least} and {most} of 100 expected"
            );
        }
    }
}
