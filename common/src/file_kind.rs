//! Recognises unexpected files by their first bytes, for error messages: a web page in place of a network, an archive
//! in place of games.

use std::fmt;

use crate::text::printable;

/// Bytes of a file that are looked at.
const LOOKED_AT: usize = 4096;
/// Largest answer of a server, in bytes: no other text is parsed.
const LONGEST_ANSWER: usize = 1 << 16;
/// Most characters of a file that are shown.
const SHOWN: usize = 200;

const SAFETENSORS: &str = "a safetensors file";
const UNPACK: &str = "unpack it first";
pub(crate) const AGAIN: &str = "download it again, with `curl -fL` and the right address";
pub(crate) const OTHER_PROGRAM: &str =
    "only networks of Rookery (.safetensors) and Lc0 (.pb.gz) can be read";
const IMPORT: &str = "import it first (rookery-trainer import)";
const UTF8: &str = "write it as UTF-8 first";

/// The kinds that their first bytes tell: these bytes and where they stand, the kind, and what to do.
const MAGIC: [(usize, &[u8], &str, &str); 21] = [
    (0, b"\x1f\x8b", "a gzip file", UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file", UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (4, b"1AY&SY", "compressed by bzip2", UNPACK),
    (0, b"\xfd7zXZ\0", "compressed by xz", UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (257, b"ustar", "a tar archive", UNPACK),
    (0, b"\xff\xfe", "text in UTF-16", UTF8),
    (0, b"\xfe\xff", "text in UTF-16", UTF8),
    (
        0,
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file, as Keras writes",
        OTHER_PROGRAM,
    ),
    (0, b"\x93NUMPY", "a NumPy array", OTHER_PROGRAM),
    (0, b"GGUF", "a GGUF model", OTHER_PROGRAM),
    (4, b"TFL3", "a TensorFlow Lite model", OTHER_PROGRAM),
    (0, b"\x0d\xc0\x01\0\0", "a network of Lc0", IMPORT),
    (4, b"\0\0\0\0{\"", SAFETENSORS, "it needs no import"),
    (0, b"\x7fELF", "a program", OTHER_PROGRAM),
    (0, b"MZ\x90\0", "a program", OTHER_PROGRAM),
    (0, b"%PDF-", "a PDF document", AGAIN),
    (0, b"\x89PNG", "a picture", AGAIN),
    (
        0,
        b"version https://git-lfs",
        "a pointer of Git LFS",
        "get the file itself with `git lfs pull`",
    ),
    (0, b"SQLite format 3", "an SQLite database", OTHER_PROGRAM),
];

/// What a file is, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKind {
    what: String,
    remedy: &'static str,
    is_text: bool,
}

impl FileKind {
    /// The kind of a file that has these bytes, or begins with them; none where that is not known.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let begin = &bytes[..bytes.len().min(LOOKED_AT)];
        let magic = MAGIC
            .iter()
            .find(|(at, magic, ..)| begin.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
        if begin.is_empty() {
            return Some(Self::text("empty", AGAIN));
        }
        if let Some((_, _, what, remedy)) = magic {
            return Some(Self::binary(what, remedy));
        }
        if begin.starts_with(b"PK\x03\x04") {
            return Some(zip(begin));
        }
        match begin {
            [0x80, 2..=5, ..] => Some(Self::binary(
                "a Python pickle, as PyTorch writes",
                OTHER_PROGRAM,
            )),
            // `ir_version`, then another field of an ONNX model.
            [
                0x08,
                1..=20,
                0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42,
                ..,
            ] => Some(Self::binary("an ONNX model", OTHER_PROGRAM)),
            _ if is_utf16(begin) => Some(Self::binary("text in UTF-16", UTF8)),
            _ if begin.iter().all(|byte| *byte == 0) => {
                Some(Self::binary("nothing but zeros", AGAIN))
            }
            _ => text(begin).map(|text| of_text(text, bytes)),
        }
    }

    /// Whether it begins as a safetensors file.
    pub fn is_safetensors(&self) -> bool {
        self.what == SAFETENSORS
    }

    /// Whether it may be read as text: plain text or games, or empty.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    fn binary(what: &str, remedy: &'static str) -> Self {
        Self {
            what: what.to_owned(),
            remedy,
            is_text: false,
        }
    }

    fn text(what: &str, remedy: &'static str) -> Self {
        Self {
            is_text: true,
            ..Self::binary(what, remedy)
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// A zip archive: several programs' networks are one.
fn zip(begin: &[u8]) -> FileKind {
    let holds = |name: &[u8]| begin.windows(name.len()).any(|part| part == name);
    if holds(b"data.pkl") {
        FileKind::binary("a PyTorch file", OTHER_PROGRAM)
    } else if holds(b"metadata.json") || holds(b"model.weights.h5") {
        FileKind::binary("a Keras model", OTHER_PROGRAM)
    } else if holds(b".npy") {
        FileKind::binary("a NumPy archive", OTHER_PROGRAM)
    } else {
        FileKind::binary("a zip archive", UNPACK)
    }
}

/// Whether this is ASCII in UTF-16, without the mark that usually comes first: every other byte is zero, no other is.
fn is_utf16(begin: &[u8]) -> bool {
    let ascii = |byte: u8| byte == b' ' || byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let has_zeros_at = |at: usize| {
        begin.len() >= 8
            && begin
                .chunks_exact(2)
                .all(|pair| pair[at] == 0 && ascii(pair[1 - at]))
    };
    has_zeros_at(0) || has_zeros_at(1)
}

/// The beginning as text, if it is: UTF-8 without control characters. A character may be cut at its end.
fn text(begin: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(begin) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&begin[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let odd = |c: char| c.is_control() && !c.is_ascii_whitespace();
    (!text.contains(odd)).then_some(text)
}

fn of_text(begin: &str, bytes: &[u8]) -> FileKind {
    let begin = begin.trim_start_matches('\u{feff}').trim_start();
    let lower = begin.to_ascii_lowercase();
    if lower.starts_with("<!doctype html") || (lower.starts_with('<') && lower.contains("<html")) {
        return FileKind::binary("a web page (HTML)", AGAIN);
    }
    if lower.starts_with("<?xml") {
        return FileKind::binary("an XML document, perhaps an error of a server", AGAIN);
    }
    if bytes.len() <= LONGEST_ANSWER
        && let Ok(json) = serde_json::from_slice::<serde_json::Value>(bytes.trim_ascii())
        && json.is_object()
    {
        return of_json(&json);
    }
    let is_tag = |line: &str| {
        line.strip_prefix('[')
            .is_some_and(|tag| tag.contains(" \""))
    };
    if begin.lines().next().is_some_and(is_tag) {
        return FileKind::text("a file of games (PGN)", OTHER_PROGRAM);
    }
    let first = printable(begin.lines().next().unwrap_or_default(), 40);
    FileKind::text(&format!("a text that begins {first:?}"), OTHER_PROGRAM)
}

/// A server's answer, with what it says of a problem.
fn of_json(json: &serde_json::Value) -> FileKind {
    let said = ["detail", "title", "message", "error"];
    let said = said.iter().find_map(|name| json.get(name)?.as_str());
    let what = match said {
        Some(said) => format!("an error of a server, {:?}", printable(said, SHOWN)),
        None => "a JSON text, perhaps an answer of a server".to_owned(),
    };
    FileKind::binary(&what, AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_first_bytes_tell_its_kind() {
        let problem = br#"{"title":"Not found","status":404,"detail":"there is no run nosuch","code":"not-found"}"#;
        let tar = [&[b'a'; 257][..], b"ustar\x0000"].concat();
        let lc0 = b"\x0d\xc0\x01\0\0\x12".as_slice();
        let torch = b"PK\x03\x04\0\0\x08\x08\0\0net/data.pklFB".as_slice();
        let safetensors = [&20_u64.to_le_bytes()[..], b"{\"a\":{}}"].concat();
        for (bytes, what) in [
            (b"".as_slice(), "empty"),
            (b"\n<!DOCTYPE html><html></html>", "a web page"),
            (b"<html>\n<head>", "a web page"),
            (b"<?xml version=\"1.0\"?><Error/>", "an XML"),
            (problem, "an error of a server, \"there is no run nosuch\""),
            (b" {\"error\": 1}\n", "a JSON text"),
            (b"PK\x03\x04\x14\0\0\0net.pb", "a zip archive; unpack"),
            (torch, "a PyTorch file"),
            (b"\x80\x02\x8a\x0a", "PyTorch"),
            (b"\x80\x05\x95", "pickle"),
            (b"\x08\x08\x12\x07rookery", "an ONNX model"),
            (b"\x89HDF\r\n\x1a\n", "Keras"),
            (b"\x1f\x8b\x08\0", "a gzip file"),
            (&tar, "a tar archive"),
            (&[0; 100], "zeros"),
            (lc0, "a network of Lc0"),
            (&safetensors, "a safetensors file"),
            (b"\xff\xfe[\0E\0", "UTF-16"),
            (b"[\0E\0v\0e\0n\0t\0", "UTF-16"),
            (b"\0[\0E\0v\0e\0n\0t", "UTF-16"),
            (
                b"version https://git-lfs.github.com/spec/v1\n",
                "git lfs pull",
            ),
            (b"[Event \"x\"]\n\n1. e4 *\n", "games (PGN)"),
            (b"hello\nworld", "a text that begins \"hello\""),
            ("é".repeat(LOOKED_AT).as_bytes(), "a text"),
        ] {
            let kind = FileKind::of(bytes).map(|kind| kind.to_string());
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]);
            assert!(
                kind.as_ref().is_some_and(|kind| kind.contains(what)),
                "{shown:?}: {kind:?}, not {what}"
            );
        }
    }

    #[test]
    fn what_may_be_meant_as_text_passes_and_nothing_is_guessed() {
        for text in [
            "{a comment} 1. e4 *",
            "{\"quoted\"} 1. e4 *",
            "1. e4 *",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n",
            "",
        ] {
            assert!(FileKind::of(text.as_bytes()).is_some_and(|kind| kind.is_text()));
        }
        assert_eq!(
            FileKind::of(b"M\xfcller \x01\x02"),
            None,
            "Latin-1, or anything"
        );
        assert!(!FileKind::of(b"<html>").unwrap().is_text());
    }
}
