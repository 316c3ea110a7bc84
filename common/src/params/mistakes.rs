//! What a person meant who wrote a parameter that cannot be: the nearest name, the range of a number.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::range::ParamsError;

/// How alike two names must be, 0 to 1, for one to be suggested in place of the other.
const ALIKE: f64 = 0.6;

/// The parameter whose dotted path is most like `name`, if one is alike: its last part counts most.
pub(super) fn nearest_name(name: &str, understood: &Value) -> Option<String> {
    let mut paths = Vec::new();
    each_leaf(
        understood,
        "",
        &mut |path, _| paths.push(path.to_owned()),
        true,
    );
    let likeness = |path: &str| {
        let ((folder, last), (other, name)) = (split(path), split(name));
        let alike = strsim::normalized_damerau_levenshtein;
        0.75 * alike(last, name) + 0.25 * alike(folder, other)
    };
    let scored = paths.into_iter().map(|path| (likeness(&path), path));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(score, _)| *score > ALIKE)
        .map(|(_, path)| path)
}

/// The section of a dotted path, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// What the ranges say of a whole number that is too small or large for its parameter's type: the type
/// itself would only say that it has 32 bits. It is found by trying the type's least and largest number.
pub(super) fn outside_type<T: DeserializeOwned + Serialize + Default>(
    given: &Value,
    check: impl Fn(&T) -> Result<(), ParamsError>,
) -> Option<ParamsError> {
    let defaults = serde_json::to_value(T::default()).ok()?;
    let mut numbers = Vec::new();
    let whole = |number: &Value| {
        number
            .as_i64()
            .map(i128::from)
            .or(number.as_u64().map(Into::into))
    };
    each_leaf(
        given,
        "",
        &mut |path, value| {
            let default = defaults.pointer(&pointer(path));
            if let Some(number) = whole(value)
                && !(0..=u32::MAX.into()).contains(&number)
                && default.is_none_or(Value::is_u64)
            {
                numbers.push((path.to_owned(), number));
            }
        },
        false,
    );
    [0, u32::MAX].into_iter().find_map(|instead| {
        let mut tried = given.clone();
        for (path, _) in &numbers {
            *tried.pointer_mut(&pointer(path))? = instead.into();
        }
        let error = check(&serde_json::from_value(tried.clone()).ok()?).err()?;
        let (path, number) = numbers.iter().find(|(path, _)| *path == error.path)?;
        let (_, allowed) = error.problem.split_once(", ")?;
        // Some parameters have 64 bits: theirs was not the number at fault.
        *tried.pointer_mut(&pointer(path))? = given.pointer(&pointer(path))?.clone();
        serde_json::from_value::<T>(tried).err()?;
        Some(ParamsError {
            problem: format!("is {number}, {allowed}"),
            ..error
        })
    })
}

/// A dotted path as a JSON pointer.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

/// Calls `visit` with every parameter of a tree and its dotted path, and with every section if they count.
fn each_leaf(tree: &Value, path: &str, visit: &mut impl FnMut(&str, &Value), sections: bool) {
    let Some(inner) = tree.as_object() else {
        return visit(path, tree);
    };
    if sections && !path.is_empty() {
        visit(path, tree);
    }
    for (name, value) in inner {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        each_leaf(value, &path, visit, sections);
    }
}
