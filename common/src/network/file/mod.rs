//! Network files: safetensors with the specification in the header, checked as hostile input.

mod numbers;

use safetensors::{SafeTensorError, SafeTensors};

use numbers::{check_folded, check_tensor};

use super::error::SpecError;
use super::layers::Layers;
use super::layout::tensors;
use super::spec::NetworkSpec;
use crate::file_kind::{AGAIN, FileKind, OTHER_PROGRAM};
use crate::ids::ContentHash;
use crate::text::printable;

/// The key of the header's metadata under which the specification stands as JSON.
pub const SPEC_KEY: &str = "rookery.spec";

/// Largest network file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Largest header, in bytes: names and shapes of the largest network take a tenth of it.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Most characters of what a parser says of a header that are shown: it may quote all of it.
const SHOWN: usize = 200;

/// A network file that passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedNetwork {
    /// The file's name.
    pub hash: ContentHash,
    /// What it holds.
    pub spec: NetworkSpec,
}

/// What is wrong with a network file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetworkFileError {
    /// The file is too large.
    #[error("{what} is {bytes} bytes, allowed are {limit}")]
    Size {
        /// The file.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The first eight bytes are not the length of a header that a network can have.
    #[error(
        "the header is {bytes} bytes by the file's first eight, allowed are {MAX_HEADER_BYTES}: the file is damaged or \
         of an unknown kind; {OTHER_PROGRAM}"
    )]
    Header {
        /// What they say.
        bytes: u64,
    },
    /// The file is no safetensors file.
    #[error("not a safetensors file: {0}")]
    Format(String),
    /// The file is of another kind.
    #[error("the file is {0}")]
    Other(FileKind),
    /// The header holds no specification.
    #[error("the header has no {SPEC_KEY:?}: this safetensors file is not a Rookery network")]
    NoSpec,
    /// The specification cannot be read.
    #[error("the specification in the header cannot be read: {0}")]
    SpecSyntax(String),
    /// The specification is outside the bounds.
    #[error("the specification is not allowed: {0}")]
    Spec(#[from] SpecError),
    /// A tensor that the specification asks for is missing.
    #[error("tensor {0:?} is missing")]
    Missing(String),
    /// There are tensors that the specification does not ask for.
    #[error("tensor {0:?} is not part of the network that the header specifies")]
    Unexpected(String),
    /// A tensor has another shape.
    #[error("tensor {name:?} has shape {found:?}, the specification asks for {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape in the file.
        found: Vec<usize>,
        /// The shape that the specification asks for.
        expected: Vec<u32>,
    },
    /// A tensor holds another type of number.
    #[error("tensor {name:?} holds {dtype}, allowed are F32 and F16")]
    Type {
        /// The tensor.
        name: String,
        /// What it holds.
        dtype: String,
    },
    /// A number is infinite or not a number, or a variance is negative.
    #[error("tensor {name:?} holds {what} at index {index}")]
    Value {
        /// The tensor.
        name: String,
        /// What was found.
        what: &'static str,
        /// The position in the tensor.
        index: usize,
    },
    /// A convolution is infinite as evaluation computes it.
    #[error(
        "tensor {name:?} is infinite at index {index} once its normalisation is multiplied into \
         it: no device can compute this network"
    )]
    Folded {
        /// The tensor.
        name: String,
        /// The position in the tensor.
        index: usize,
    },
}

/// Checks a network file: sizes, header, specification, names, shapes, types and numbers, these
/// also as evaluation computes with them. Nothing is allocated in proportion to what the header
/// claims.
///
/// # Errors
///
/// The first [`NetworkFileError`] found.
pub fn verify(bytes: &[u8]) -> Result<VerifiedNetwork, NetworkFileError> {
    let (spec, file) = open(bytes).map_err(|error| of_kind(error, bytes))?;
    let expected = tensors(&spec);
    for tensor in &expected {
        check_tensor(&file, tensor)?;
    }
    if let Ok(layers) = Layers::new(&spec) {
        for convolution in layers.normalized_convolutions() {
            check_folded(&file, convolution)?;
        }
    }
    Ok(VerifiedNetwork {
        hash: ContentHash::of(bytes),
        spec,
    })
}

/// What is wrong with a file that may be of another kind altogether.
fn of_kind(error: NetworkFileError, bytes: &[u8]) -> NetworkFileError {
    use NetworkFileError::{Format, Header, Other, Size};
    match (error, FileKind::of(bytes)) {
        (Format(_) | Size { .. } | Header { .. }, Some(kind)) if !kind.is_safetensors() => {
            Other(kind)
        }
        (error, _) => error,
    }
}

/// Opens a network file without reading its numbers.
fn open(bytes: &[u8]) -> Result<(NetworkSpec, SafeTensors<'_>), NetworkFileError> {
    check_sizes(bytes)?;
    let format = |error: SafeTensorError| {
        NetworkFileError::Format(match error {
            SafeTensorError::MetadataIncompleteBuffer => {
                format!("it breaks off, or has bytes that belong to no tensor; {AGAIN}")
            }
            error => said(&error),
        })
    };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let metadata = header.metadata().as_ref().ok_or(NetworkFileError::NoSpec)?;
    let json = metadata.get(SPEC_KEY).ok_or(NetworkFileError::NoSpec)?;
    let spec: NetworkSpec =
        serde_json::from_str(json).map_err(|error| NetworkFileError::SpecSyntax(said(&error)))?;
    spec.check()?;
    let file = SafeTensors::deserialize(bytes).map_err(format)?;
    let expected = tensors(&spec);
    let known: std::collections::HashSet<&str> =
        expected.iter().map(|tensor| tensor.name.as_str()).collect();
    if let Some(name) = file.names().into_iter().find(|name| !known.contains(*name)) {
        return Err(NetworkFileError::Unexpected(
            name.chars().take(120).collect(),
        ));
    }
    Ok((spec, file))
}

/// What a parser says of a header, as far as it is shown.
fn said(error: &dyn std::error::Error) -> String {
    printable(&error.to_string(), SHOWN)
}

fn check_sizes(bytes: &[u8]) -> Result<(), NetworkFileError> {
    let length = bytes.len() as u64;
    if length > MAX_FILE_BYTES {
        return Err(NetworkFileError::Size {
            what: "the file",
            bytes: length,
            limit: MAX_FILE_BYTES,
        });
    }
    let Some(header) = bytes
        .first_chunk::<8>()
        .map(|first| u64::from_le_bytes(*first))
    else {
        return Err(NetworkFileError::Format(
            "it is shorter than a header".into(),
        ));
    };
    if header > MAX_HEADER_BYTES {
        return Err(NetworkFileError::Header { bytes: header });
    }
    if length - 8 < header {
        return Err(NetworkFileError::Format(format!(
            "it breaks off within its header; {AGAIN}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use safetensors::Dtype;
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::network::{Program, program_file};

    /// A file of zeros with unit variances; `change` may spoil its list of tensors.
    fn file_with(spec: &str, change: impl Fn(&mut Vec<(String, Vec<usize>, Vec<u8>)>)) -> Vec<u8> {
        let mut list: Vec<_> = tensors(&NetworkSpec::resnet(1, 8))
            .into_iter()
            .map(|t| {
                let bytes = vec![0; 4 * t.elements() as usize];
                (t.name, t.shape.iter().map(|n| *n as usize).collect(), bytes)
            })
            .collect();
        change(&mut list);
        let views: Vec<_> = list
            .iter()
            .map(|(name, shape, data)| {
                (
                    name.clone(),
                    TensorView::new(Dtype::F32, shape.clone(), data).unwrap(),
                )
            })
            .collect();
        let metadata = HashMap::from([(SPEC_KEY.to_owned(), spec.to_owned())]);
        safetensors::serialize(views, Some(metadata)).unwrap()
    }

    fn small_spec() -> String {
        serde_json::to_string(&NetworkSpec::resnet(1, 8)).unwrap()
    }

    #[test]
    fn a_good_file_passes() {
        let bytes = file_with(&small_spec(), |_| {});
        let network = verify(&bytes).unwrap();
        assert_eq!(network.spec, NetworkSpec::resnet(1, 8));
        assert_eq!(network.hash, ContentHash::of(&bytes));
    }

    #[test]
    fn a_program_has_one_file_and_no_tensors() {
        let program = Program::alpha_beta(2);
        let bytes = program_file(program).unwrap();
        let verified = verify(&bytes).unwrap();
        assert_eq!(verified.spec, NetworkSpec::of_program(program));
        assert_eq!(program_file(program).unwrap(), bytes);
        assert_ne!(program_file(Program::Random).unwrap(), bytes);
        let json = serde_json::to_string(&verified.spec).unwrap();
        let with_tensors = verify(&file_with(&json, |_| {})).unwrap_err();
        assert!(matches!(with_tensors, NetworkFileError::Unexpected(_)));
        let deep = Program::alpha_beta(5);
        assert!(matches!(program_file(deep), Err(NetworkFileError::Spec(_))));
    }

    #[test]
    fn wrong_tensors_are_named() {
        let missing = file_with(&small_spec(), |list| drop(list.remove(0)));
        assert_eq!(
            verify(&missing),
            Err(NetworkFileError::Missing("input.weight".into()))
        );
        let extra = file_with(&small_spec(), |list| {
            list.push(("evil".into(), vec![1], vec![0; 4]));
        });
        assert_eq!(
            verify(&extra),
            Err(NetworkFileError::Unexpected("evil".into()))
        );
        let shape = file_with(&small_spec(), |list| list[0].1.reverse());
        assert!(matches!(
            verify(&shape),
            Err(NetworkFileError::Shape { .. })
        ));
    }

    #[test]
    fn numbers_that_cannot_be_computed_with_are_found() {
        let nan = file_with(&small_spec(), |list| {
            list[0].2[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
        });
        assert!(matches!(
            verify(&nan),
            Err(NetworkFileError::Value { index: 2, .. })
        ));
        let negative = file_with(&small_spec(), |list| {
            let variance = list
                .iter_mut()
                .find(|t| t.0 == "input.norm.variance")
                .unwrap();
            variance.2[..4].copy_from_slice(&(-1.0_f32).to_le_bytes());
        });
        assert!(matches!(
            verify(&negative),
            Err(NetworkFileError::Value { index: 0, .. })
        ));
    }

    /// Fills the tensors whose names end so with a number.
    fn fill(list: &mut [(String, Vec<usize>, Vec<u8>)], end: &str, number: f32) {
        for (name, _, data) in list {
            if name.ends_with(end) {
                let filled = data.as_chunks_mut::<4>().0;
                filled.fill(number.to_le_bytes());
            }
        }
    }

    #[test]
    fn a_network_that_overflows_where_normalisations_are_multiplied_in_is_refused() {
        let huge = file_with(&small_spec(), |list| fill(list, "", 1e30));
        let error = verify(&huge).unwrap_err();
        let folded = |name: &str, index| NetworkFileError::Folded {
            name: name.into(),
            index,
        };
        assert_eq!(error, folded("input.weight", 0));
        assert!(
            error.to_string().contains("no device can compute"),
            "{error}"
        );
        let bias = file_with(&small_spec(), |list| {
            fill(list, ".norm.variance", 1.0);
            fill(list, "conv1.norm.weight", 1e20);
            let mean = list
                .iter_mut()
                .find(|t| t.0 == "blocks.0.conv1.norm.mean")
                .unwrap();
            mean.2[28..].copy_from_slice(&1e20_f32.to_le_bytes());
        });
        assert_eq!(verify(&bias), Err(folded("blocks.0.conv1.norm.bias", 7)));
        let large = file_with(&small_spec(), |list| {
            fill(list, "", 1e9);
            fill(list, ".norm.variance", 1.0);
        });
        assert!(verify(&large).is_ok(), "each number is finite");
    }

    #[test]
    fn headers_that_lie_are_refused_without_allocation() {
        let mut huge = u64::MAX.to_le_bytes().to_vec();
        huge.extend_from_slice(b"{}");
        assert!(matches!(
            verify(&huge),
            Err(NetworkFileError::Header { bytes: u64::MAX })
        ));
        let spec = small_spec().replace("\"filters\":8", "\"filters\":4294967295");
        assert!(matches!(
            verify(&file_with(&spec, |_| {})),
            Err(NetworkFileError::Spec(_))
        ));
        assert!(matches!(
            verify(b"sh\x01rt"),
            Err(NetworkFileError::Format(_))
        ));
        assert!(matches!(verify(b"short"), Err(NetworkFileError::Other(_))));
        let other = file_with("{}", |_| {});
        assert!(matches!(
            verify(&other),
            Err(NetworkFileError::SpecSyntax(_))
        ));
    }

    #[test]
    fn what_is_said_of_a_header_is_short_and_steers_no_terminal() {
        let odd = format!("\\u001b[2J\\nforged line {}", "x".repeat(10_000));
        let spec = small_spec().replace("\"resnet\"", &format!("\"{odd}\""));
        let flat = file_with(&small_spec(), |list| list[0].1.extend([1; 10_000]));
        for bytes in [file_with(&spec, |_| {}), flat] {
            let text = verify(&bytes).unwrap_err().to_string();
            assert!(text.len() < 400, "{text}");
            assert!(!text.contains(['\u{1b}', '\n']), "{text}");
        }
    }

    #[test]
    fn a_truncated_file_is_refused_at_every_length() {
        let bytes = file_with(&small_spec(), |_| {});
        for length in (0..bytes.len()).step_by(997) {
            let error = verify(&bytes[..length]).unwrap_err().to_string();
            let says = ["breaks off", "empty", "shorter"];
            assert!(
                says.iter().any(|word| error.contains(word)),
                "{length} bytes: {error}"
            );
        }
    }
}
