//! The commands of the manual's first page, run as a reader would, give what the page shows.

use std::process::Command;

use crate::harness::Place;

const PAGE: &str = include_str!("../../../../docs/getting-started.md");

/// A fenced block: its language, its text, and the paragraph above it.
struct Block<'a> {
    language: &'a str,
    text: String,
    above: String,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut above, mut lines) = (Vec::new(), String::new(), page.lines());
    while let Some(line) = lines.next() {
        match line.strip_prefix("```") {
            Some(language) => {
                let text: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
                blocks.push(Block {
                    language,
                    text: text.join("\n") + "\n",
                    above: std::mem::take(&mut above),
                });
            }
            None => above = format!("{above}{line}\n"),
        }
    }
    blocks
}

/// The last `name.sql` that a paragraph names.
fn script_name(above: &str) -> Option<&str> {
    let quoted = above.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.ends_with(".sql")).last()
}

fn shell(place: &Place, command: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_thalweg"));
    let dirs = [
        binary.parent().unwrap().display().to_string(),
        std::env::var("PATH").unwrap(),
    ];
    let output = Command::new("sh")
        .args(["-ec", command])
        .current_dir(place.path(""))
        .env("PATH", dirs.join(":"))
        .env_remove("THALWEG_LOG")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// `$ command` and the lines that it prints, one pair a command.
fn sessions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("$ ")
        .skip(1)
        .map(|s| s.split_once('\n').unwrap())
}

#[test]
fn getting_started_shows_what_its_commands_print() {
    let place = Place::with_orders();
    let (mut script, mut table, mut prefix, mut checked) = (String::new(), String::new(), None, 0);
    for block in blocks(PAGE) {
        match (block.language, script_name(&block.above)) {
            ("json", _) => assert_eq!(block.text, place.read("orders.ndjson")),
            ("sql", Some(name)) => {
                script = block
                    .text
                    .replace("CREATE TABLE orders (…);   -- as above\n", &table);
                let end = script.find(");\n").map_or(0, |at| at + 3);
                table = script[..end].to_string();
                place.write(name, &script);
            }
            ("sql", None) => prefix = Some(block.text),
            ("", _) if block.text.starts_with("$ ") => {
                for (command, shown) in sessions(&block.text) {
                    assert_eq!(shell(&place, command), shown, "{command}");
                    checked += 1;
                }
            }
            _ => {
                let set = prefix.take().expect("output of something");
                place.write("set.sql", set + &script);
                assert_eq!(shell(&place, "thalweg run set.sql"), block.text);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 6, "a block of the page was not understood");
}
