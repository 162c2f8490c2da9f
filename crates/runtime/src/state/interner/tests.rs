//! Random keys of every type against a map of arrow's own rows.

use std::collections::HashMap;

use arrow::row::{RowConverter, SortField};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::state::testing::{random_column, types};

/// Bytes that tell keys apart.
fn row_bytes(keys: &[ArrayRef], n_rows: usize) -> Vec<Vec<u8>> {
    if keys.is_empty() {
        return vec![vec![]; n_rows];
    }
    let fields = keys
        .iter()
        .map(|k| SortField::new(k.data_type().clone()))
        .collect();
    let rows = RowConverter::new(fields)
        .unwrap()
        .convert_columns(keys)
        .unwrap();
    rows.iter().map(|r| r.as_ref().to_vec()).collect()
}

struct Oracle {
    slots: HashMap<Vec<u8>, u32>,
}

fn check(seed: u64, types: Vec<DataType>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut interner = KeyInterner::new(types.clone()).unwrap();
    let mut oracle = Oracle {
        slots: HashMap::new(),
    };
    let mut slots = vec![];
    for _ in 0..20 {
        let n_rows = rng.random_range(0..60);
        let keys: Vec<_> = types
            .iter()
            .map(|t| random_column(&mut rng, t, n_rows))
            .collect();
        let mut new = vec![];
        interner
            .intern(&keys, n_rows, &mut slots, &mut new)
            .unwrap();
        let mut expected_new = vec![];
        for (&slot, key) in slots.iter().zip(row_bytes(&keys, n_rows)) {
            let known = oracle.slots.len();
            let expected = *oracle.slots.entry(key).or_insert(slot);
            assert_eq!(slot, expected, "seed {seed}, {types:?}");
            if oracle.slots.len() > known {
                expected_new.push(slot);
            }
        }
        assert_eq!(new, expected_new, "seed {seed}, {types:?}");
        check_keys(seed, &interner, &oracle);
        if rng.random_bool(0.1) {
            interner.clear();
            oracle.slots.clear();
        }
        remove_some(&mut rng, &mut interner, &mut oracle);
    }
}

fn check_keys(seed: u64, interner: &KeyInterner, oracle: &Oracle) {
    assert_eq!(
        interner.len(),
        oracle.slots.len(),
        "seed {seed}: two keys share a slot"
    );
    let slots = interner.taken_slots();
    let columns = interner.key_columns(&slots).unwrap();
    let rows = interner.key_rows(&slots).unwrap();
    let decoded = interner.codec().decode(rows.iter()).unwrap();
    assert_eq!(
        decoded, columns,
        "seed {seed}: key bytes are not those of the key"
    );
    assert!(
        columns
            .iter()
            .zip(interner.codec().types())
            .all(|(c, t)| c.data_type() == t)
    );
    for (key, slot) in row_bytes(&columns, slots.len()).iter().zip(&slots) {
        assert_eq!(oracle.slots.get(key), Some(slot), "seed {seed}");
    }
}

fn remove_some(rng: &mut StdRng, interner: &mut KeyInterner, oracle: &mut Oracle) {
    let gone: Vec<u32> = interner
        .taken_slots()
        .into_iter()
        .filter(|_| rng.random_bool(0.3))
        .collect();
    interner.remove(&gone);
    oracle.slots.retain(|_, slot| !gone.contains(slot));
}

#[test]
fn keys_of_one_column_have_one_slot_each() {
    for (seed, data_type) in (0..).zip(types()) {
        check(seed, vec![data_type]);
    }
}

#[test]
fn keys_of_several_columns_have_one_slot_each() {
    let types = types();
    for seed in 100..160 {
        let mut rng = StdRng::seed_from_u64(seed);
        let n_columns = rng.random_range(0..4);
        check(
            seed,
            (0..n_columns)
                .map(|_| types[rng.random_range(0..types.len())].clone())
                .collect(),
        );
    }
}

#[test]
fn zeros_are_one_key_and_so_are_nans() {
    for data_type in [DataType::Float64, DataType::Float32] {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            0.0,
            -0.0,
            f64::NAN,
            -f64::NAN,
            1.0,
        ]));
        let floats = cast(&floats, &data_type).unwrap();
        for keys in [vec![floats.clone()], vec![floats.clone(), floats.clone()]] {
            let mut interner =
                KeyInterner::new(keys.iter().map(|k| k.data_type().clone())).unwrap();
            let mut slots = vec![];
            interner.intern(&keys, 5, &mut slots, &mut vec![]).unwrap();
            assert_eq!(slots, [0, 0, 1, 1, 2]);
        }
    }
}

#[test]
fn memory_of_removed_keys_is_used_again() {
    let mut interner = KeyInterner::new([DataType::Utf8]).unwrap();
    let (mut slots, mut held) = (vec![], 0);
    for round in 0..40 {
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..1000).map(|i| format!("{round:>50}-{i:>50}")),
        ));
        interner
            .intern(&[keys], 1000, &mut slots, &mut vec![])
            .unwrap();
        interner.remove(&slots);
        held = held.max(interner.memory_bytes());
    }
    assert_eq!(interner.n_slots(), 1000);
    assert!(
        held < 800_000,
        "{held} bytes for at most 1000 keys of 101 bytes"
    );
}
