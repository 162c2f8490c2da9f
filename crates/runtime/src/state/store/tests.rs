use super::*;

fn open(dir: &tempfile::TempDir) -> StateStore {
    StateStore::open(dir.path()).unwrap()
}

fn record(epoch: u64) -> CommitRecord {
    let split = SplitPosition {
        source: 0,
        split: "a.ndjson".into(),
        offset: vec![0, 255],
        watermark: Some(-7),
    };
    CommitRecord {
        epoch,
        splits: vec![split],
    }
}

fn keys(scan: &mut Scan) -> Vec<(u8, Vec<u8>, Vec<u8>)> {
    let mut out = vec![];
    while let Some(e) = scan.advance().unwrap() {
        out.push((e.vnode, e.key.to_vec(), e.value.to_vec()));
    }
    out
}

#[test]
fn a_commit_survives_and_carries_its_record() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    assert_eq!(store.last_commit("d").unwrap(), None);
    let mut writes = StateWrites::default();
    writes.put(TableId(1), 3, b"k", b"v");
    store.commit("d", writes, &record(5)).unwrap();
    drop(store);

    let store = open(&dir);
    assert_eq!(store.last_commit("d").unwrap(), Some(record(5)));
    assert_eq!(store.last_commit("other").unwrap(), None);
    assert_eq!(
        store.get(TableId(1), 3, b"k").unwrap().as_deref(),
        Some(&b"v"[..])
    );
    assert_eq!(store.get(TableId(1), 4, b"k").unwrap(), None);
}

#[test]
fn many_keys_are_found_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let mut writes = StateWrites::default();
    for i in (0..5000u32).step_by(2) {
        writes.put(
            TableId(9),
            (i % 7) as u8,
            &i.to_le_bytes(),
            &i.to_be_bytes(),
        );
    }
    store.commit("d", writes, &record(1)).unwrap();

    let wanted: Vec<(u8, [u8; 4])> = (0..5000u32)
        .rev()
        .map(|i| ((i % 7) as u8, i.to_le_bytes()))
        .collect();
    let mut found = vec![None; wanted.len()];
    let keys = wanted.iter().map(|(v, k)| (*v, &k[..]));
    store
        .multi_get(TableId(9), keys, |i, v| {
            found[i] = v.map(<[u8]>::to_vec);
            Ok(())
        })
        .unwrap();
    for (i, value) in (0..5000u32).rev().zip(found) {
        assert_eq!(value, (i % 2 == 0).then(|| i.to_be_bytes().to_vec()), "{i}");
    }
}

#[test]
fn a_scan_keeps_to_its_prefix_and_goes_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let mut writes = StateWrites::default();
    for (table, vnode, key) in [
        (1, 255, "b"),
        (2, 0, "a"),
        (2, 7, "a\0x"),
        (2, 7, "a\0y"),
        (2, 7, "b"),
        (2, 8, "a"),
        (3, 0, "a"),
    ] {
        writes.put(TableId(table), vnode, key.as_bytes(), b"");
    }
    store.commit("d", writes, &record(1)).unwrap();

    let found = keys(&mut store.scan(TableId(2), 7, b"a\0"));
    assert_eq!(
        found,
        [(7, b"a\0x".to_vec(), vec![]), (7, b"a\0y".to_vec(), vec![])]
    );
    let vnodes: Vec<u8> = keys(&mut store.scan_table(TableId(2)))
        .into_iter()
        .map(|k| k.0)
        .collect();
    assert_eq!(vnodes, [0, 7, 7, 7, 8]);

    let mut scan = store.scan(TableId(2), 7, b"a\0");
    assert_eq!(scan.last().unwrap().unwrap().key, b"a\0y");
    assert_eq!(scan.previous().unwrap().unwrap().key, b"a\0x");
    assert!(scan.previous().unwrap().is_none());
    assert!(scan.previous().unwrap().is_none());
    assert!(store.scan(TableId(2), 9, b"").advance().unwrap().is_none());
}

#[test]
fn deleting_a_prefix_deletes_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let mut writes = StateWrites::default();
    for key in [&[1, 255][..], &[1, 255, 0], &[1, 255, 255], &[1, 254], &[2]] {
        writes.put(TableId(1), 255, key, b"");
    }
    writes.put(TableId(1), 254, &[1, 255], b"");
    store.commit("d", writes, &record(1)).unwrap();
    let mut writes = StateWrites::default();
    writes.delete_prefix(TableId(1), 255, &[1, 255]);
    store.commit("d", writes, &record(2)).unwrap();

    let left: Vec<_> = keys(&mut store.scan_table(TableId(1)))
        .into_iter()
        .map(|k| (k.0, k.1))
        .collect();
    assert_eq!(
        left,
        [(254, vec![1, 255]), (255, vec![1, 254]), (255, vec![2])]
    );
}

#[test]
fn a_second_opener_is_told_why_it_may_not() {
    let dir = tempfile::tempdir().unwrap();
    let _store = open(&dir);
    let error = StateStore::open(dir.path()).err().expect("locked");
    assert!(matches!(error, RuntimeError::StateLocked { .. }), "{error}");
}

#[test]
fn state_of_another_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    store
        .inner
        .db
        .put(
            store_key(META, 0, FORMAT_KEY),
            br#"{"layout":9,"keys":1,"values":1,"hash":1}"#,
        )
        .unwrap();
    drop(store);
    let error = StateStore::open(dir.path()).err().expect("another version");
    assert!(
        matches!(&error, RuntimeError::StateVersion { found, .. } if found.contains("9")),
        "{error}"
    );
}

#[test]
fn a_rocksdb_of_someone_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    DB::open(&options(), dir.path())
        .unwrap()
        .put(b"theirs", b"")
        .unwrap();
    assert!(matches!(
        StateStore::open(dir.path()),
        Err(RuntimeError::StateVersion { .. })
    ));
}

#[test]
fn sizes_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let before = store.stats();
    let mut writes = StateWrites::default();
    writes.put(TableId(1), 0, b"k", &[7; 100_000]);
    store.commit("d", writes, &record(1)).unwrap();
    let after = store.stats();
    assert!(
        after.committed_bytes >= before.committed_bytes + 100_000,
        "{after:?}"
    );
    assert!(
        after.disk_written_bytes >= 100_000 && after.live_bytes >= 100_000,
        "{after:?}"
    );
}
