//! Names of choices: what stands for each variant of an enum in the API, the ledger and specifications.

/// Gives an enum `ALL`, `name` and `from_name`. A variant that is left out does not compile. The names
/// are those in the enum's JSON.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All of them, in the order in which they are declared.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            $(#[$doc])*
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
    };
}

pub(crate) use names;

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use crate::audit::Finding;
    use crate::encoding::{InputEncoding, PolicyEncoding};
    use crate::network::AuxiliaryHead;
    use crate::protocol::jobs::{Backend, WorkKind};
    use crate::protocol::matches::MatchStatus;
    use crate::protocol::networks::{ExportFormat, NetworkStatus};
    use crate::protocol::people::Scope;
    use crate::protocol::runs::RunStatus;

    fn compare<T: Copy + Serialize>(all: &[T], name: fn(T) -> &'static str) {
        for one in all {
            assert_eq!(serde_json::to_value(one).unwrap(), name(*one));
        }
    }

    #[test]
    fn names_are_those_in_json() {
        compare(&AuxiliaryHead::ALL, AuxiliaryHead::name);
        compare(&Backend::ALL, Backend::name);
        compare(&ExportFormat::ALL, ExportFormat::name);
        compare(&Finding::ALL, Finding::name);
        compare(&InputEncoding::ALL, InputEncoding::name);
        compare(&MatchStatus::ALL, MatchStatus::name);
        compare(&NetworkStatus::ALL, NetworkStatus::name);
        compare(&PolicyEncoding::ALL, PolicyEncoding::name);
        compare(&RunStatus::ALL, RunStatus::name);
        compare(&Scope::ALL, Scope::name);
        compare(&WorkKind::ALL, WorkKind::name);
    }

    #[test]
    fn names_lead_back_and_other_texts_nowhere() {
        for kind in WorkKind::ALL {
            assert_eq!(WorkKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(WorkKind::from_name("Match"), None);
    }
}
