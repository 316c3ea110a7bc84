//! Options that an engine declares.

/// An option, as the engine declares it with `option name … type …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOption {
    /// Its name; case does not matter.
    pub name: String,
    /// What it takes.
    pub kind: OptionKind,
}

/// What an option takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionKind {
    /// `true` or `false`.
    Check,
    /// A whole number within bounds.
    Spin {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// One of these words.
    Combo(Vec<String>),
    /// No value: setting it does something.
    Button,
    /// Any text.
    String,
}

/// The words of a declaration's fields, each keyword with what follows it.
const KEYWORDS: [&str; 6] = ["name", "type", "default", "min", "max", "var"];

impl EngineOption {
    /// Reads what follows the word `option`. Nothing if the declaration makes no sense.
    pub fn parse(declaration: &str) -> Option<Self> {
        let mut fields: Vec<(&str, Vec<&str>)> = Vec::new();
        for word in declaration.split_whitespace() {
            let named = fields.iter().any(|(key, _)| *key == "type");
            // A name may hold a keyword; it ends at `type` only.
            let in_name = fields.last().is_some_and(|(key, _)| *key == "name");
            let opens = KEYWORDS.contains(&word)
                && (fields.is_empty() || named || (in_name && word == "type"));
            match fields.last_mut() {
                _ if opens => fields.push((word, Vec::new())),
                Some((_, value)) => value.push(word),
                None => return None,
            }
        }
        let field = |key: &str| {
            let found = fields.iter().find(|(name, _)| *name == key);
            found.map(|(_, words)| words.join(" "))
        };
        let name = field("name").filter(|name| !name.is_empty())?;
        let kind = match field("type")?.as_str() {
            "check" => OptionKind::Check,
            "spin" => OptionKind::Spin {
                min: field("min")
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(i64::MIN),
                max: field("max")
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(i64::MAX),
            },
            "combo" => OptionKind::Combo(
                fields
                    .iter()
                    .filter(|(key, _)| *key == "var")
                    .map(|(_, words)| words.join(" "))
                    .collect(),
            ),
            "button" => OptionKind::Button,
            "string" => OptionKind::String,
            _ => return None,
        };
        Some(Self { name, kind })
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// What the option takes, in words.
    pub fn check(&self, value: &str) -> Result<(), String> {
        if value.contains(['\n', '\r']) {
            return Err("a value is one line".to_owned());
        }
        match &self.kind {
            OptionKind::Check if value == "true" || value == "false" => Ok(()),
            OptionKind::Check => Err("it is true or false".to_owned()),
            OptionKind::Spin { min, max } => match value.parse::<i64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(()),
                _ => Err(format!("it is a whole number from {min} to {max}")),
            },
            OptionKind::Combo(words) if words.iter().any(|w| w.eq_ignore_ascii_case(value)) => {
                Ok(())
            }
            OptionKind::Combo(words) => Err(format!("it is one of {}", words.join(", "))),
            OptionKind::Button if value.is_empty() => Ok(()),
            OptionKind::Button => Err("it is a button and takes no value".to_owned()),
            OptionKind::String => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_with_names_of_several_words() {
        let parse = |text| EngineOption::parse(text).unwrap();
        let option = parse("name Debug Log File type string default ");
        assert_eq!(option.name, "Debug Log File");
        assert_eq!(option.kind, OptionKind::String);
        let option = parse("name UCI_Elo type spin default 1350 min 1350 max 2850");
        let kind = OptionKind::Spin {
            min: 1350,
            max: 2850,
        };
        assert_eq!(option.kind, kind);
        let option = parse("name Analysis Contempt type combo default Both var Off var Very White");
        assert_eq!(
            option.kind,
            OptionKind::Combo(vec!["Off".to_owned(), "Very White".to_owned()])
        );
        assert_eq!(parse("name min max type check").name, "min max");
    }

    #[test]
    fn nonsense_declares_nothing() {
        for text in [
            "",
            "x",
            "name",
            "name X",
            "name X type",
            "name X type wheel",
            "type spin",
        ] {
            assert_eq!(EngineOption::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn values_are_checked_against_the_declaration() {
        let option = |text| EngineOption::parse(text).unwrap();
        let elo = option("name E type spin default 1 min 1 max 9");
        assert!(elo.check("9").is_ok());
        assert_eq!(
            elo.check("10").unwrap_err(),
            "it is a whole number from 1 to 9"
        );
        assert!(
            option("name C type check default false")
                .check("yes")
                .is_err()
        );
        assert!(option("name C type combo var A var B").check("b").is_ok());
        assert!(option("name C type combo var A var B").check("c").is_err());
        assert!(option("name B type button").check("").is_ok());
        assert!(option("name S type string").check("a\nquit").is_err());
    }
}
