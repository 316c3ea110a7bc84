//! What changed between two states of a run: the operator log keeps that, and not both states whole.

use std::collections::BTreeMap;

use rookery_common::protocol::people::Change;
use serde_json::Value;

/// The entries that differ, by their keys: `a.b` is entry `b` of object `a`. Lists are compared whole.
pub fn between(before: &Value, after: &Value) -> Vec<Change> {
    let (before, mut after) = (flat(before), flat(after));
    let mut changes: Vec<Change> = before
        .into_iter()
        .filter_map(|(key, from)| {
            let (from, to) = (Some(from), after.remove(&key));
            (from != to).then_some(Change { key, from, to })
        })
        .collect();
    let added = |(key, to)| Change {
        key,
        from: None,
        to: Some(to),
    };
    changes.extend(after.into_iter().map(added));
    changes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    changes
}

/// The entries of a value, each as text. What is null is not there.
fn flat(value: &Value) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    let mut open = vec![(String::new(), value)];
    while let Some((key, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Object(fields) => open.extend(fields.iter().map(|(name, value)| {
                let dot = if key.is_empty() { "" } else { "." };
                (format!("{key}{dot}{name}"), value)
            })),
            Value::String(text) => drop(entries.insert(key, text.clone())),
            other => drop(entries.insert(key, other.to_string())),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fields_that_differ_are_listed() {
        let before =
            json!({"status": "open", "params": {"a": {"visits": 100, "c": 1.5}, "list": [1]}});
        let after = json!({"status": "open", "params": {"a": {"visits": 200, "c": 1.5}, "list": [1, 2]},
            "title": "Club"});
        let told: Vec<String> = between(&before, &after)
            .iter()
            .map(Change::to_string)
            .collect();
        let expected = [
            "params.a.visits: 100 → 200",
            "params.list: [1] → [1,2]",
            "title: none → Club",
        ];
        assert_eq!(told, expected);
        assert!(between(&after, &after).is_empty());
        assert_eq!(between(&after, &before)[2].to, None);
    }
}
