//! Network files of either format, recognised by their content and not by their names.

use std::path::Path;

use rookery_common::network::VerifiedNetwork;
use rookery_common::network::file::MAX_FILE_BYTES;

use crate::error::Result;
use crate::io::read_bounded;
use crate::lc0;
use crate::weights::Weights;

/// A network as its file has it.
#[derive(Debug)]
pub enum NetworkFile {
    /// In Rookery's format.
    Rookery(VerifiedNetwork, Weights),
    /// In Lc0's format.
    Lc0(Weights),
}

impl NetworkFile {
    /// Reads and verifies a network file.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`](crate::ModelError::File) if it cannot be read, [`ModelError::Lc0`](crate::ModelError::Lc0) if it is
    /// no usable network of Lc0 but begins as one or is compressed, and as [`Weights::from_bytes`] for any other file.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_bytes(&read_bounded(path, MAX_FILE_BYTES)?)
    }

    /// Reads and verifies a network's bytes.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), except that they are there.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if lc0::is_lc0(bytes) {
            return Ok(Self::Lc0(lc0::from_bytes(bytes)?));
        }
        let (verified, weights) = Weights::from_bytes(bytes)?;
        Ok(Self::Rookery(verified, weights))
    }

    /// The network.
    pub fn into_weights(self) -> Weights {
        match self {
            Self::Rookery(_, weights) | Self::Lc0(weights) => weights,
        }
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::network::NetworkSpec;

    use super::*;

    fn read(bytes: &[u8]) -> Result<NetworkFile> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("network");
        std::fs::write(&path, bytes).unwrap();
        NetworkFile::read(&path)
    }

    #[test]
    fn both_formats_are_read_whatever_the_file_is_called() {
        let weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        let ours = read(&weights.to_bytes().unwrap()).unwrap();
        assert!(matches!(ours, NetworkFile::Rookery(..)));
        let lc0 = read(&lc0::to_bytes(&weights).unwrap()).unwrap();
        assert!(matches!(lc0, NetworkFile::Lc0(_)));
        assert_eq!(lc0.into_weights().spec(), weights.spec());
    }

    #[test]
    fn files_that_are_no_networks_are_called_what_they_are() {
        let gzip = |bytes: &[u8]| lc0::gzip::compress(bytes).unwrap();
        let weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        let ours = weights.to_bytes().unwrap();
        let problem = br#"{"title": "Not found", "status": 404, "detail": "no run nosuch", "code": "not-found"}"#;
        for (bytes, what) in [
            (
                problem.to_vec(),
                "an error of a server, \"no run nosuch\"; download it again",
            ),
            (b"<html>404</html>".to_vec(), "a web page"),
            (
                b"PK\x03\x04\0\0\0\0\0\0net/data.pkl".to_vec(),
                "a PyTorch file",
            ),
            (b"\x80\x02}q\0".to_vec(), "a Python pickle"),
            (b"\x08\x08\x12\x07pytorch".to_vec(), "an ONNX model"),
            (b"\x89HDF\r\n\x1a\n\0".to_vec(), "an HDF5 file"),
            (b"[Event \"x\"]\n\n1. e4 *\n".to_vec(), "a file of games"),
            (b"hello\n".to_vec(), "a text that begins \"hello\""),
            (Vec::new(), "the file is empty"),
            (vec![0; 5000], "zeros"),
            (gzip(b"hello"), "holds a text that begins \"hello\""),
            (gzip(b""), "holds nothing"),
            (gzip(&ours), "holds a safetensors file"),
            (b"2\n1.0 1.0\n".to_vec(), "weights as text"),
            (ours[..ours.len() - 1].to_vec(), "not a safetensors file"),
        ] {
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.contains(what), "{error}, not {what}");
        }
    }
}
