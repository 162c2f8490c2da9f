//! The page of the manual about metrics is made from the list of families.

use std::fmt::Write;

use super::families::{FAMILIES, Kind};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring.md");
const BEGIN: &str =
    "<!-- The table is made from crates/server/src/http/families.rs. Do not edit it here. -->\n";

fn table() -> String {
    let mut text = String::from("\n| metric | kind | meaning |\n|---|---|---|\n");
    for family in FAMILIES {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        writeln!(text, "| `{}` | {kind} | {} |", family.name, family.help).unwrap();
    }
    text
}

#[test]
fn the_manual_lists_every_metric() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (above, listed) = page.split_once(BEGIN).expect("the page has its table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(PAGE, format!("{above}{BEGIN}{}", table())).unwrap();
    }
    assert_eq!(listed, table(), "run the tests with UPDATE_DOCS=1");
}
