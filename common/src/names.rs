//! Names of choices: what stands for each variant of an enum in the API, the ledger and specifications.

/// A name that no variant of an enum has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of its names")]
pub struct UnknownName(pub String);

/// An enum whose variants have names: with `ALL`, `name`, `from_name` and `FromStr`. The names are those in the enum's
/// JSON, if it has any.
///
/// ```
/// rookery_common::names! {
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     enum Light { On = "on", Off = "off" }
/// }
///
/// assert_eq!(Light::On.name(), "on");
/// assert_eq!("off".parse(), Ok(Light::Off));
/// assert!("dim".parse::<Light>().is_err());
/// ```
#[macro_export]
macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $name:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        $vis enum $type {
            $($(#[$variant_meta])* $variant),+
        }

        impl $type {
            /// All of them, in the order in which they are declared.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in the API, in the ledger, on command lines and in specifications.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::names::UnknownName;

            fn from_str(name: &str) -> ::std::result::Result<Self, Self::Err> {
                Self::from_name(name).ok_or_else(|| $crate::names::UnknownName(name.to_owned()))
            }
        }
    };
}

pub(crate) use names;

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::str::FromStr;

    use serde::Serialize;

    use super::UnknownName;
    use crate::audit::Finding;
    use crate::chess::{GameResult, Termination};
    use crate::encoding::{InputEncoding, PolicyEncoding};
    use crate::network::AuxiliaryHead;
    use crate::protocol::jobs::{Backend, WorkKind};
    use crate::protocol::matches::{MatchPurpose, MatchStatus};
    use crate::protocol::networks::{ExportFormat, NetworkStatus};
    use crate::protocol::people::{Scope, Span};
    use crate::protocol::runs::RunStatus;

    fn compare<T>(all: &[T], name: fn(T) -> &'static str)
    where
        T: Copy + Debug + PartialEq + Serialize + FromStr<Err = UnknownName>,
    {
        for one in all {
            assert_eq!(serde_json::to_value(one).unwrap(), name(*one));
            assert_eq!(name(*one).parse(), Ok(*one));
        }
    }

    #[test]
    fn names_are_those_in_json_and_lead_back() {
        compare(&AuxiliaryHead::ALL, AuxiliaryHead::name);
        compare(&Backend::ALL, Backend::name);
        compare(&ExportFormat::ALL, ExportFormat::name);
        compare(&Finding::ALL, Finding::name);
        compare(&GameResult::ALL, GameResult::name);
        compare(&InputEncoding::ALL, InputEncoding::name);
        compare(&MatchPurpose::ALL, MatchPurpose::name);
        compare(&MatchStatus::ALL, MatchStatus::name);
        compare(&NetworkStatus::ALL, NetworkStatus::name);
        compare(&PolicyEncoding::ALL, PolicyEncoding::name);
        compare(&RunStatus::ALL, RunStatus::name);
        compare(&Scope::ALL, Scope::name);
        compare(&Span::ALL, Span::name);
        compare(&Termination::ALL, Termination::name);
        compare(&WorkKind::ALL, WorkKind::name);
    }

    #[test]
    fn other_texts_lead_nowhere() {
        assert_eq!(WorkKind::from_name("Match"), None);
        let unknown = UnknownName("Match".to_owned());
        assert_eq!("Match".parse::<WorkKind>(), Err(unknown));
    }
}
