//! Network files of ours and of Lc0, and what is called after them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::ids::ContentHash;
use rookery_common::network::NetworkSpec;
use rookery_model::{NetworkFile, Weights, included, lc0};

/// How network files name the program that made them.
pub fn creator() -> String {
    concat!("rookery-trainer ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Reads a network of ours or of Lc0; `small` is the one that comes with Rookery, unless a file is called so.
///
/// # Errors
///
/// If it cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Weights> {
    Ok(match open(path)? {
        NetworkFile::Rookery(_, weights) => weights,
        NetworkFile::Lc0(weights) => made_here(weights)?,
    })
}

/// Reads a network's file, or makes one of random weights where the text is a shape such as `6x64`.
///
/// # Errors
///
/// If it cannot be read, or there is no such shape.
pub fn read_or_random(name: &Path) -> anyhow::Result<Weights> {
    match NetworkSpec::from_shape(&name.to_string_lossy()) {
        Ok(spec) if !name.exists() => Ok(Weights::random(spec, 0)?),
        _ => read(name),
    }
}

/// Reads a network of ours or of Lc0, and the hash of its file; that of Lc0's is the one that it has once it is
/// imported.
///
/// # Errors
///
/// If it cannot be read.
pub fn read_hashed(path: &Path) -> anyhow::Result<(ContentHash, Weights)> {
    Ok(match open(path)? {
        NetworkFile::Rookery(verified, weights) => (verified.hash, weights),
        NetworkFile::Lc0(weights) => {
            let weights = made_here(weights)?;
            (ContentHash::of(&weights.to_bytes()?), weights)
        }
    })
}

fn open(path: &Path) -> anyhow::Result<NetworkFile> {
    if path == Path::new(included::NAME) && !path.exists() {
        return Ok(NetworkFile::from_bytes(included::FILE)?);
    }
    NetworkFile::read(path)
        .with_context(|| format!("RK-0601: cannot read the network {}", path.display()))
}

/// Reads a network of Lc0 as one that this program made.
///
/// # Errors
///
/// If it cannot be read.
pub fn read_lc0(path: &Path) -> anyhow::Result<Weights> {
    let cannot = || format!("cannot import {}", path.display());
    made_here(lc0::read(path).with_context(cannot)?).with_context(cannot)
}

/// A network of Lc0 as this program's.
fn made_here(weights: Weights) -> anyhow::Result<Weights> {
    let mut spec = weights.spec().clone();
    spec.creator = creator();
    Ok(weights.with_spec(spec)?)
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

    fn network() -> Weights {
        Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap()
    }

    #[test]
    fn networks_of_lc0_are_read_whatever_they_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let (weights, path) = (network(), dir.path().join("net.safetensors"));
        std::fs::write(&path, lc0::to_bytes(&weights).unwrap()).unwrap();
        let read = read(&path).unwrap();
        assert_eq!(read.spec().creator, creator());
        let (hash, hashed) = read_hashed(&path).unwrap();
        assert_eq!(hashed.spec(), read.spec());
        assert_eq!(hash, ContentHash::of(&read.to_bytes().unwrap()));
        let path = dir.path().join("net.pb.gz");
        let written = weights.write(&path).unwrap();
        assert_eq!(read_hashed(&path).unwrap().0, written);
    }

    #[test]
    fn the_network_that_comes_with_rookery_has_a_name() {
        let (hash, weights) = read_hashed(Path::new("small")).unwrap();
        assert_eq!(hash, ContentHash::of(included::FILE));
        assert_eq!(weights.spec().shape(), "6x64");
    }

    #[test]
    fn a_file_that_is_no_network_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.safetensors");
        std::fs::write(&path, "nothing").unwrap();
        for error in [
            read(&path).unwrap_err(),
            read_hashed(&path).unwrap_err(),
            read_lc0(&path).unwrap_err(),
        ] {
            let error = format!("{error:#}");
            assert!(error.contains("net.safetensors"), "{error}");
            assert!(error.contains("begins \"nothing\""), "{error}");
        }
        network().write(&path).unwrap();
        let error = format!("{:#}", read_lc0(&path).unwrap_err());
        assert!(error.contains("needs no import"), "{error}");
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
