//! The pipeline that `make demo` runs, checked against the file that it reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Finished, Place};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn flights() -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("sample/flights.ndjson")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_demo_gives_the_answers_of_its_file() {
    let place = Place::new();
    let output = place
        .command(&["run", "sample/demo.sql"])
        .current_dir(root())
        .output()
        .unwrap();
    let rows = Finished::from(output).succeeded().json();
    let (changes, hours): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.get("op").is_some());

    let mut departures = BTreeMap::new();
    let mut totals = BTreeMap::new();
    for flight in flights() {
        let hour = format!("{}:00:00Z", &flight["ts"].as_str().unwrap()[..13]);
        let n: &mut (u64, u64) = departures
            .entry((flight["origin"].to_string(), hour))
            .or_default();
        n.0 += 1;
        n.1 += u64::from(flight["dep_delay"].is_null());
        let total: &mut (i64, u64) = totals.entry(flight["carrier"].to_string()).or_default();
        total.0 += flight["dep_delay"].as_i64().unwrap_or(0);
        total.1 += 1;
    }

    let printed = hours.iter().map(|row| {
        let hour = row["hour"].as_str().unwrap().to_string();
        let counts = (
            row["departures"].as_u64().unwrap(),
            row["cancelled"].as_u64().unwrap(),
        );
        ((row["origin"].to_string(), hour), counts)
    });
    assert_eq!(
        hours.len(),
        departures.len(),
        "each hour of an airport once"
    );
    assert_eq!(printed.collect::<BTreeMap<_, _>>(), departures);

    // The changes, put together, are the totals; and each starts where the one before it ended.
    let mut answer = BTreeMap::new();
    for change in &changes {
        let carrier = change["after"]["carrier"].to_string();
        let before = answer.insert(carrier, change["after"].clone());
        assert_eq!(before.unwrap_or(Value::Null), change["before"]);
    }
    let answer = answer.into_iter().map(|(carrier, row)| {
        (
            carrier,
            (
                row["total_delay"].as_i64().unwrap(),
                row["flights"].as_u64().unwrap(),
            ),
        )
    });
    assert_eq!(answer.collect::<BTreeMap<_, _>>(), totals);
    assert!(
        changes.len() > 3 * totals.len(),
        "the file takes several epochs"
    );
}
