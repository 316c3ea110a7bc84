//! Options as UCI knows them: kinds, declarations, and setting from text.

use std::ops::RangeInclusive;

/// How UCI writes a text without letters.
const EMPTY: &str = "<empty>";

/// One option: its name, and where its value is.
pub(super) struct UciOption<'a>(pub(super) &'static str, pub(super) Kind<'a>);

/// What values an option takes.
pub(super) enum Kind<'a> {
    /// Yes or no.
    Check(&'a mut bool),
    /// A whole number.
    Spin(&'a mut u32, RangeInclusive<u32>),
    /// A number; UCI has no such kind, so it is declared as a string (as Lc0 does).
    Real(&'a mut f32, RangeInclusive<f32>),
    /// A text.
    Text(&'a mut String),
    /// One of a few words.
    Combo(&'a mut String, &'static [&'static str]),
    /// Something to do; counts how often.
    Button(&'a mut u32),
}

/// Why an option was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// There is no option of this name.
    #[error("there is no option {0:?}")]
    Unknown(String),
    /// The value is not allowed.
    #[error("{value:?} is no value for {name}: write {allowed}")]
    Value {
        /// The option.
        name: &'static str,
        /// The value as given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// Not enough memory.
    #[error("there is no memory for a Hash of {wanted} MiB; it stays {kept}")]
    Memory {
        /// What was asked for, in MiB.
        wanted: u32,
        /// What there is, in MiB.
        kept: u32,
    },
}

impl UciOption<'_> {
    /// The line that tells a GUI of the option.
    pub(super) fn declaration(&self) -> String {
        let what = match &self.1 {
            Kind::Check(value) => format!("check default {value}"),
            Kind::Spin(value, range) => {
                format!(
                    "spin default {value} min {} max {}",
                    range.start(),
                    range.end()
                )
            }
            Kind::Real(value, _) => format!("string default {value}"),
            Kind::Text(value) if value.is_empty() => format!("string default {EMPTY}"),
            Kind::Text(value) => format!("string default {value}"),
            Kind::Combo(value, words) => {
                format!("combo default {value} var {}", words.join(" var "))
            }
            Kind::Button(_) => "button".to_owned(),
        };
        format!("option name {} type {what}", self.0)
    }

    /// Takes a value.
    pub(super) fn set(self, text: &str) -> Result<(), SetError> {
        let allowed = self.allowed();
        let taken = match self.1 {
            Kind::Check(value) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "on" => put(value, Some(true)),
                "false" | "0" | "off" => put(value, Some(false)),
                _ => false,
            },
            Kind::Spin(value, range) => put(value, text.parse().ok().filter(|n| range.contains(n))),
            Kind::Real(value, range) => {
                let number = text.replace(',', ".").parse().ok();
                put(value, number.filter(|n| range.contains(n)))
            }
            Kind::Text(value) if text == EMPTY => put(value, Some(String::new())),
            Kind::Text(value) => put(value, Some(text.to_owned())),
            Kind::Combo(value, words) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(text));
                put(value, word.map(|word| (*word).to_owned()))
            }
            Kind::Button(count) => {
                *count = count.wrapping_add(1);
                true
            }
        };
        if taken {
            return Ok(());
        }
        Err(SetError::Value {
            name: self.0,
            value: text.chars().take(80).collect(),
            allowed,
        })
    }

    fn allowed(&self) -> String {
        match &self.1 {
            Kind::Check(_) => "true or false".to_owned(),
            Kind::Spin(_, range) => format!("{} to {}", range.start(), range.end()),
            Kind::Real(_, range) => format!("{} to {}", range.start(), range.end()),
            Kind::Combo(_, words) => words.join(", "),
            Kind::Text(_) | Kind::Button(_) => "anything".to_owned(),
        }
    }
}

/// Sets a value if there is a new one, and says whether.
fn put<T>(value: &mut T, new: Option<T>) -> bool {
    let taken = new.is_some();
    if let Some(new) = new {
        *value = new;
    }
    taken
}
