use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Fields, Int16Type};
use arrow::row::{RowConverter, SortField};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::state::testing::{random_column, resliced, types};

/// Stored state depends on these bytes: a change is a change of the format.
#[test]
fn bytes_are_what_they_always_were() {
    let golden: Vec<(ArrayRef, Vec<Vec<u8>>)> = vec![
        (
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            vec![vec![1, 1], vec![0]],
        ),
        (
            Arc::new(Int32Array::from(vec![1, -1])),
            vec![vec![1, 0x80, 0, 0, 1], vec![1, 0x7f, 0xff, 0xff, 0xff]],
        ),
        (Arc::new(UInt16Array::from(vec![258])), vec![vec![1, 1, 2]]),
        (
            Arc::new(Float64Array::from(vec![-0.0, -2.0, f64::NAN])),
            vec![
                vec![1, 0x80, 0, 0, 0, 0, 0, 0, 0],
                vec![1, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                vec![1, 0xff, 0xf8, 0, 0, 0, 0, 0, 0],
            ],
        ),
        (
            Arc::new(Decimal128Array::from(vec![-1])),
            vec![[&[1, 0x7f][..], &[0xff; 15]].concat()],
        ),
        (
            Arc::new(StringArray::from(vec!["", "a\0b"])),
            vec![vec![1, 0, 1], vec![1, b'a', 0, 0xff, b'b', 0, 1]],
        ),
        (
            Arc::new(ListArray::from_iter_primitive::<Int16Type, _, _>([
                Some(vec![Some(3), None]),
                Some(vec![]),
                None,
            ])),
            vec![vec![1, 1, 1, 0x80, 3, 1, 0, 0], vec![1, 0], vec![0]],
        ),
        (
            Arc::new(StructArray::from(vec![(
                Arc::new(Field::new("a", DataType::Int8, true)),
                Arc::new(Int8Array::from(vec![Some(1), None])) as ArrayRef,
            )])),
            vec![vec![1, 1, 0x81], vec![1, 0]],
        ),
    ];
    for (column, expected) in golden {
        let codec = KeyCodec::new([column.data_type().clone()]).unwrap();
        let rows = codec
            .encode(std::slice::from_ref(&column), column.len())
            .unwrap();
        assert_eq!(
            rows.iter().collect::<Vec<_>>(),
            expected,
            "{}",
            column.data_type()
        );
    }
}

#[test]
fn keys_of_every_type_sort_as_their_columns_and_read_back() {
    let types = types();
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let n_rows = rng.random_range(0..40);
        let n_columns = rng.random_range(1..4);
        let columns: Vec<_> = (0..n_columns)
            .map(|_| rng.random_range(0..types.len()))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|t| random_column(&mut rng, &types[t], n_rows))
            .map(|c| if seed % 2 == 0 { c } else { resliced(&c) })
            .collect();
        let types: Vec<_> = columns.iter().map(|c| c.data_type().clone()).collect();
        let codec = KeyCodec::new(types.clone()).unwrap();
        let rows = codec.encode(&columns, n_rows).unwrap();
        assert_eq!(codec.decode(rows.iter()).unwrap(), columns, "seed {seed}");

        let fields = types.iter().map(|t| SortField::new(t.clone())).collect();
        let expected = RowConverter::new(fields)
            .unwrap()
            .convert_columns(&columns)
            .unwrap();
        for a in 0..n_rows {
            for b in 0..n_rows {
                let found = rows.row(a).cmp(rows.row(b));
                let expected = expected.row(a).cmp(&expected.row(b));
                assert_eq!(found, expected, "seed {seed}, {types:?}, rows {a} and {b}");
                let prefix = rows.row(b).starts_with(rows.row(a));
                assert!(
                    !prefix || found.is_eq(),
                    "seed {seed}: one key is a prefix of another"
                );
            }
        }
    }
}

#[test]
fn what_follows_a_key_is_left_alone() {
    let codec = KeyCodec::new([DataType::Utf8, DataType::Int8]).unwrap();
    let columns: [ArrayRef; 2] = [
        Arc::new(StringArray::from(vec!["x"])),
        Arc::new(Int8Array::from(vec![5])),
    ];
    let rows = codec.encode(&columns, 1).unwrap();
    let longer = [rows.row(0), b"rest"].concat();
    let mut fronts = [&longer[..]];
    assert_eq!(codec.decode_prefix(&mut fronts).unwrap(), columns);
    assert_eq!(fronts, [b"rest"]);
}

#[test]
fn broken_bytes_are_an_error() {
    let inner = Fields::from(vec![Field::new("a", DataType::Utf8, true)]);
    let list = DataType::new_list(DataType::Struct(inner), true);
    let codec = KeyCodec::new([list.clone(), DataType::Int64]).unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    let columns = [
        random_column(&mut rng, &list, 50),
        random_column(&mut rng, &DataType::Int64, 50),
    ];
    let rows = codec.encode(&columns, 50).unwrap();
    for row in rows.iter() {
        for len in 0..row.len() {
            assert!(codec.decode([&row[..len]]).is_err(), "{row:?} cut to {len}");
        }
    }
    assert!(codec.decode([&[7][..]]).is_err());
    assert!(
        KeyCodec::new([DataType::Utf8])
            .unwrap()
            .decode([&[1, 0, 2][..]])
            .is_err()
    );
    assert!(
        KeyCodec::new([DataType::Utf8])
            .unwrap()
            .decode([&[1, 0xff, 0, 1][..]])
            .is_err()
    );
}
