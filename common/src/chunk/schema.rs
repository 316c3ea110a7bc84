//! Every field of the schema stands in the table of `docs/trust.md`, which says where it is checked.

use std::collections::BTreeSet;
use std::path::Path;

/// A file of the repository.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(path).expect("the repository is whole")
}

/// The messages' fields, as `Message.field`.
fn fields() -> BTreeSet<String> {
    let schema = file("common/proto/chunk.proto");
    let (mut message, mut fields) = (None, BTreeSet::new());
    for line in schema.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["//", ..] | [] => {}
            ["message", name, "{"] => message = Some(*name),
            ["}"] => message = None,
            [.., name, "=", number] => {
                let number = number.trim_end_matches(';');
                if let Some(message) = message {
                    assert!(number.parse::<u32>().is_ok(), "{line}");
                    fields.insert(format!("{message}.{name}"));
                }
            }
            _ => assert!(message.is_none(), "neither a field nor a comment: {line}"),
        }
    }
    fields
}

/// The rows of the table: the fields of each, and where they are checked.
fn rows() -> Vec<(Vec<String>, String)> {
    let page = file("docs/trust.md");
    let (_, table) = page
        .split_once("| field | determined by | checked |")
        .expect("the table");
    let lines = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [named, _, checked] = cells.as_slice() else {
            panic!("three cells: {line}");
        };
        let names = named
            .split(", ")
            .map(|name| name.trim_matches('`').to_owned());
        (names.collect(), (*checked).to_owned())
    };
    lines.map(row).collect()
}

#[test]
fn every_field_of_the_schema_is_in_the_table_of_what_is_checked() {
    let fields = fields();
    assert!(
        fields.contains("Game.chosen") && fields.contains("Header.kind"),
        "{fields:?}"
    );
    let rows = rows();
    let named: Vec<String> = rows.iter().flat_map(|(names, _)| names.clone()).collect();
    let set: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(set, fields);
    assert_eq!(set.len(), named.len(), "a field has one row: {named:?}");
    for (names, checked) in rows {
        let by = ["verification", "audit"]
            .iter()
            .any(|by| checked.starts_with(by));
        assert!(by, "{names:?}: {checked}");
    }
}
