//! Network files of ours and of Lc0, told apart by how their names end.

use std::path::Path;

use anyhow::Context as _;
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
    Ok(Weights::read(path)?.1)
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
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut endings = LC0_ENDINGS.into_iter().chain([".safetensors"]);
    let bare = endings.find_map(|ending| name.strip_suffix(ending));
    bare.unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_has_neither_folder_nor_ending() {
        let stems = ["a/b.c.pb.gz", "net.pb", "/x/net.safetensors", "net"];
        let stems = stems.map(|path| stem(Path::new(path)));
        assert_eq!(stems, ["b.c", "net", "net", "net"]);
    }
}
