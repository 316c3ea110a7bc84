//! Tests that hold `docs/parameters.md` to the code: names, defaults and ranges.

use serde_json::{Value, json};

use super::{
    AdjudicationParams, Cosine, EngineParams, ForcedPlayouts, GumbelParams, KldStop, Noise,
    ResignParams, RootSearch, RunParams, SourceWeights, TableParams,
};
use crate::rating::GateRule;

const PAGE: &str = include_str!("../../../docs/parameters.md");

/// A row of a table, as it counts for one section.
struct Row {
    /// The parameter's dotted path.
    path: String,
    default: &'static str,
    range: &'static str,
}

/// What a row says of the numbers that a parameter may have.
struct Range {
    low: f64,
    high: f64,
    /// Whether every number of the range is allowed, whatever the other parameters are.
    whole: bool,
}

fn rows() -> Vec<Row> {
    let (mut rows, mut sections) = (Vec::new(), Vec::new());
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            sections = quoted(heading).collect();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[_, name, default, range, ..] = cells.as_slice() else {
            continue;
        };
        for section in &sections {
            rows.extend(quoted(name).map(|name| Row {
                path: match section.strip_prefix('[').and_then(|s| s.strip_suffix(']')) {
                    Some(section) => format!("{section}.{name}"),
                    None => name.to_owned(),
                },
                default,
                range,
            }));
        }
    }
    rows
}

/// What stands in backquotes.
fn quoted(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split('`').skip(1).step_by(2)
}

impl Row {
    /// `LOW to HIGH`, and perhaps more words.
    fn range(&self) -> Option<Range> {
        let (low, rest) = self.range.split_once(" to ")?;
        let of_number = |c: char| c.is_ascii_digit() || ",.-".contains(c);
        let end = rest.find(|c| !of_number(c)).unwrap_or(rest.len());
        let number = |text: &str| text.replace(',', "").parse::<f64>().unwrap();
        Some(Range {
            low: number(low),
            high: number(&rest[..end]),
            whole: end == rest.len(),
        })
    }

    fn pointer(&self) -> String {
        format!("/{}", self.path.replace('.', "/"))
    }

    /// The first of the examples in which the parameter is given.
    fn example(&self) -> Value {
        let given = |params: &Value| {
            params
                .pointer(&self.pointer())
                .is_some_and(|v| !v.is_null())
        };
        examples().into_iter().find(given).expect(&self.path)
    }

    /// The run of the example with this value in it, if it may be.
    fn with(&self, value: f64) -> Result<(), String> {
        let mut params = self.example();
        let place = params.pointer_mut(&self.pointer()).unwrap();
        *place = if place.is_u64() && value >= 0.0 {
            json!(value as u64)
        } else {
            json!(value)
        };
        let params: RunParams = serde_json::from_value(params).map_err(|_| self.path.clone())?;
        params.check().map_err(|error| error.path)
    }

    /// How far outside a range a number is for the test.
    fn beyond(&self, end: f64) -> f64 {
        if self.example().pointer(&self.pointer()).unwrap().is_u64() {
            1.0
        } else {
            (end.abs() * 0.01).max(0.001)
        }
    }
}

/// The defaults; then what is off, with its own defaults; then what excludes some of that.
fn examples() -> [Value; 3] {
    let mut given = RunParams {
        rollback: Some(0.99),
        ..RunParams::default()
    };
    given.selfplay.resign = Some(ResignParams::default());
    for (adjudication, tables) in [
        (&mut given.selfplay.adjudication, &mut given.selfplay.tables),
        (&mut given.matches.adjudication, &mut given.matches.tables),
    ] {
        *adjudication = Some(AdjudicationParams::default());
        *tables = Some(TableParams::default());
    }
    for search in [
        &mut given.selfplay.search,
        &mut given.puzzle.search,
        &mut given.matches.search,
    ] {
        search.root = RootSearch::Gumbel(GumbelParams::default());
        search.noise = Some(Noise::default());
        search.forced_playouts = Some(ForcedPlayouts::default());
        search.kld_stop = Some(KldStop::default());
    }
    given.training.sources = Some(SourceWeights {
        selfplay: 1.0,
        puzzles: 1.0,
    });
    given.training.window.slope = Some(0.4);
    given.training.learning_rate.cosine = Some(Cosine {
        steps: 100,
        floor: 0.1,
    });
    let mut other = given.clone();
    for adjudication in [
        &mut other.selfplay.adjudication,
        &mut other.matches.adjudication,
    ] {
        adjudication.as_mut().unwrap().engine = Some(EngineParams::default());
    }
    other.gate = GateRule::Fixed {
        games: 400,
        threshold: 0.55,
    };
    [RunParams::default(), given, other].map(|params| {
        assert_eq!(params.check(), Ok(()));
        serde_json::to_value(params).unwrap()
    })
}

/// The paths of all values that are no tables.
fn leaves(path: &str, value: &Value) -> Vec<String> {
    let Value::Object(table) = value else {
        return vec![path.to_owned()];
    };
    let inner = table.iter().flat_map(|(name, value)| {
        let dot = if path.is_empty() { "" } else { "." };
        leaves(&format!("{path}{dot}{name}"), value)
    });
    inner.collect()
}

/// Whether both are the same, numbers as far as 32 bits tell them apart.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a as f32 == b as f32,
        _ => a == b,
    }
}

#[test]
fn the_page_names_every_parameter_and_no_other() {
    let rows = rows();
    for example in examples() {
        for path in leaves("", &example) {
            assert!(rows.iter().any(|row| row.path == path), "{path} is missing");
        }
    }
    for row in rows {
        let known = examples()
            .iter()
            .any(|e| e.pointer(&row.pointer()).is_some());
        assert!(known, "there is no {}", row.path);
    }
}

#[test]
fn the_pages_defaults_are_the_codes() {
    for row in rows() {
        let pointer = row.pointer();
        let examples = examples();
        let found = examples.iter().find_map(|params| params.pointer(&pointer));
        match row.default {
            "off" => assert_eq!(found, Some(&Value::Null), "{}", row.path),
            "required" => {
                let mut without = row.example();
                let (table, name) = pointer.rsplit_once('/').unwrap();
                let table = without.pointer_mut(table).unwrap();
                table.as_object_mut().unwrap().remove(name);
                let read = serde_json::from_value::<RunParams>(without);
                assert!(read.is_err(), "{}", row.path);
            }
            default => {
                let default = quoted(default).next().expect(&row.path);
                let default: Value = serde_json::from_str(default).expect(&row.path);
                assert!(same(found.unwrap(), &default), "{}: {found:?}", row.path);
            }
        }
    }
}

#[test]
fn the_pages_ranges_are_the_codes() {
    let mut checked = 0;
    for row in rows() {
        let Some(range) = row.range() else { continue };
        for end in [range.low, range.high] {
            let outside = if end == range.low {
                end - row.beyond(end)
            } else {
                end + row.beyond(end)
            };
            let refused = row.with(outside);
            assert_eq!(refused, Err(row.path.clone()), "{outside}");
            if range.whole {
                assert_eq!(row.with(end), Ok(()), "{} at {end}", row.path);
            }
        }
        checked += 1;
    }
    assert!(checked > 60, "{checked} ranges were understood");
}
