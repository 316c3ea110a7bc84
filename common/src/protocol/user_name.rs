//! Names of users: letters of any script, so that no name passes for another.
//!
//! The rules are those of Unicode Technical Standard 39: characters of its general security profile,
//! scripts mixed as its level "highly restrictive" allows (Latin with Japanese, Chinese or Korean, else
//! one script), and [`skeleton`]s that coordinators keep unique. A name that is written from right to
//! left follows the rule of RFC 5893, so that it stays in its place in a line.

use unicode_bidi::{BidiClass, bidi_class};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection as _};
use url::form_urlencoded::byte_serialize;

/// Most characters of a user's name.
pub const NAME_CHARS: usize = 32;
/// Most marks on one letter.
const MARKS: usize = 3;

/// What a name may be, for people.
pub const RULE: &str =
    "use 1 to 32 letters of one script, digits, _ and -, but no - at the beginning";

/// The name as it is kept, if a new user can have it: in Unicode's form NFC. A command line would take a hyphen at
/// its beginning for a flag.
pub fn user_name(text: &str) -> Option<String> {
    // Longer ones need not be looked into.
    if text.len() > NAME_CHARS * 16 {
        return None;
    }
    let name: String = text.nfc().collect();
    (is_user_name(&name) && !name.starts_with('-')).then_some(name)
}

/// Whether a user can have exactly this name.
pub fn is_user_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.chars().count() > NAME_CHARS {
        return false;
    }
    if name.chars().all(plain) {
        return true;
    }
    let fine = |c: char| {
        plain(c)
            || (GeneralSecurityProfile::identifier_allowed(c)
                && (c.is_alphanumeric() || is_combining_mark(c)))
    };
    name.chars().all(fine)
        && name.nfc().eq(name.chars())
        && marks_are_few(name)
        && name.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        && has_one_direction(name)
}

/// The name as a part of an address.
pub fn in_url(name: &str) -> String {
    byte_serialize(name.as_bytes()).collect()
}

/// What all names have in common that look alike: a name is refused where another has the same
/// skeleton, or differs in case only. The difference between `I`, `l` and `1` is not in it, nor is case.
pub fn skeleton(name: &str) -> String {
    let likeness: String = unicode_security::skeleton(name).collect();
    likeness.to_lowercase()
}

/// Whether no letter carries a tower of marks, and none stands without a letter.
fn marks_are_few(name: &str) -> bool {
    let mut marks = MARKS;
    name.chars().all(|c| {
        marks = if is_combining_mark(c) { marks + 1 } else { 0 };
        marks <= MARKS
    })
}

/// Whether a name is written in one direction: from left to right, or as RFC 5893, section 2, has it.
fn has_one_direction(name: &str) -> bool {
    use BidiClass::{AL, AN, EN, ES, L, NSM, ON, R};
    let classes: Vec<BidiClass> = name.chars().map(bidi_class).collect();
    let has = |class: BidiClass| classes.contains(&class);
    if !(has(R) || has(AL) || has(AN)) {
        return true;
    }
    let last = classes.iter().rev().find(|class| **class != NSM);
    let allowed = |class: &BidiClass| matches!(class, R | AL | AN | EN | ES | ON | NSM);
    matches!(classes.first(), Some(R | AL))
        && matches!(last, Some(R | AL | EN | AN))
        && classes.iter().all(allowed)
        && !has(L)
        && !(has(EN) && has(AN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_any_script_make_a_name() {
        for name in [
            "ann",
            "Ann-2_b",
            "Ärger",
            "Åse",
            "жанна",
            "Ελένη",
            "山田太郎",
            "たろう",
            "yamada太郎",
            "김철수",
            "אורי",
            "אורי-2",
            "سارة",
            "गीता",
            "சுதா",
            "นภา",
            "Nguyễn",
        ] {
            assert!(is_user_name(name), "{name}");
            assert_eq!(user_name(name).as_deref(), Some(name));
        }
        let decomposed = "A\u{308}rger";
        assert!(!is_user_name(decomposed));
        assert_eq!(user_name(decomposed).as_deref(), Some("Ärger"));
    }

    #[test]
    fn no_new_name_looks_like_a_flag() {
        for name in ["-", "--help", "-h"] {
            assert_eq!(user_name(name), None);
        }
        assert_eq!(user_name("a-").as_deref(), Some("a-"));
    }

    #[test]
    fn a_name_stands_in_addresses() {
        assert_eq!(in_url("Ann-2_b"), "Ann-2_b");
        assert_eq!(in_url("Ärger"), "%C3%84rger");
    }

    #[test]
    fn what_misleads_makes_none() {
        for name in [
            "",
            "a b",
            "a/b",
            "a.b",
            "ann\u{200b}",
            "\u{200b}",
            "an\u{200d}n",
            "ann\u{202e}",
            "\u{feff}ann",
            "аlice", // Cyrillic а
            "алисаx",
            "αlpha",
            "אbג",
            "2אורי",
            "אורי-",
            "\u{301}a",
            "a\u{323}\u{323}\u{323}\u{323}\u{323}",
            "♞knight",
            "ﬁne",    // a ligature
            "ａｎｎ", // full width
            "𝐚𝐧𝐧",
            "a\u{0}",
            "ann\u{e0041}",
            "'ann",
        ] {
            assert_eq!(user_name(name), None, "{name:?}");
        }
        assert!(is_user_name(&"я".repeat(NAME_CHARS)));
        assert!(!is_user_name(&"я".repeat(NAME_CHARS + 1)));
        assert_eq!(user_name(&"a".repeat(1 << 20)), None);
    }

    #[test]
    fn names_that_look_alike_have_one_skeleton() {
        for (one, other) in [
            ("alice", "aIice"),
            ("alice", "Alice"),
            ("alice", "a1ice"),
            ("bob", "B0b"),
            ("mary", "rnary"),
            ("ace", "асе"), // Cyrillic
        ] {
            assert_eq!(skeleton(one), skeleton(other), "{one} {other}");
        }
        for (one, other) in [("alice", "alica"), ("ann", "anna"), ("ann-1", "ann-2")] {
            assert_ne!(skeleton(one), skeleton(other), "{one} {other}");
        }
    }
}
