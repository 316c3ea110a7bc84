//! Network files of ours and of Lc0, told apart by how their names end.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::network::VerifiedNetwork;
use rookery_nn::{Weights, lc0};

use crate::learner::creator;

/// How the names of Lc0's files end.
const LC0_ENDINGS: [&str; 2] = [".pb.gz", ".pb"];

/// Reads a network of ours or of Lc0.
///
/// # Errors
///
/// If it cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Weights> {
    let name = path.to_string_lossy();
    if LC0_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return read_lc0(path);
    }
    Ok(read_ours(path)?.1)
}

/// Reads a network of ours, and what its file says of it.
///
/// # Errors
///
/// If it cannot be read. What looks like a file of Lc0 is said to be one.
pub fn read_ours(path: &Path) -> anyhow::Result<(VerifiedNetwork, Weights)> {
    Weights::read(path).with_context(|| {
        let hint = if lc0::is_lc0(path) {
            "; this looks like a file of Lc0, import it first (rookery-trainer import)"
        } else {
            ""
        };
        format!("cannot read the network {}{hint}", path.display())
    })
}

/// Reads a network of Lc0 as one that this program made.
///
/// # Errors
///
/// If it cannot be read.
pub fn read_lc0(path: &Path) -> anyhow::Result<Weights> {
    let cannot = || format!("cannot import {}", path.display());
    let weights = lc0::read(path).with_context(cannot)?;
    let mut spec = weights.spec().clone();
    spec.creator = creator();
    weights.with_spec(spec).with_context(cannot)
}

/// The name of a network's file without folder and ending, for people.
pub fn stem(path: &Path) -> String {
    let bare = bare(path);
    let name = bare.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The file beside a network's that is called as it is, with another ending.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut beside = bare(path).into_os_string();
    beside.push(".");
    beside.push(ending);
    beside.into()
}

/// The path without the ending of a network's file, if it has one.
fn bare(path: &Path) -> PathBuf {
    let mut bare = path.to_owned();
    for ending in ["gz", "pb", "safetensors"] {
        if bare.extension().is_some_and(|found| found == ending) {
            bare.set_extension("");
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_file_that_is_no_network_is_named_and_lc0_s_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.safetensors");
        std::fs::write(&path, "nothing").unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("net.safetensors"), "{error}");
        assert!(!error.contains("Lc0"), "{error}");
        let bytes = lc0::to_bytes(&testing::network()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("net.safetensors"), "{error}");
        assert!(error.contains("import it first"), "{error}");
    }

    #[test]
    fn a_stem_has_neither_folder_nor_ending() {
        let stems = ["a/b.c.pb.gz", "net.pb", "/x/net.safetensors", "net"];
        let stems = stems.map(|path| stem(Path::new(path)));
        assert_eq!(stems, ["b.c", "net", "net", "net"]);
    }

    #[test]
    fn a_file_beside_a_network_has_its_name_and_another_ending() {
        for (path, expected) in [
            ("a/maia-1.5.pb.gz", "a/maia-1.5.onnx"),
            ("net.pb", "net.onnx"),
            ("/x/net.safetensors", "/x/net.onnx"),
            ("maia-1.5", "maia-1.5.onnx"),
        ] {
            assert_eq!(beside(Path::new(path), "onnx"), Path::new(expected));
        }
    }
}
