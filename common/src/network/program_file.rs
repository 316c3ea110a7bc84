//! Files of programs, which stand where networks' would.

use std::collections::HashMap;
use std::sync::LazyLock;

use safetensors::tensor::TensorView;

use super::file::{NetworkFileError, SPEC_KEY};
use super::program::{DEEPEST_IN_RUNS, MOST_RANDOM, Program};
use super::spec::NetworkSpec;
use crate::ids::ContentHash;

/// The file of a program, which stands where a network's would: no tensors, and a specification that
/// names it. A program always has the same file.
///
/// # Errors
///
/// [`NetworkFileError::Spec`] for a program that no run may have.
pub fn program_file(program: Program) -> Result<Vec<u8>, NetworkFileError> {
    let spec = NetworkSpec::of_program(program);
    spec.check()?;
    let json = serde_json::to_string(&spec)
        .map_err(|error| NetworkFileError::SpecSyntax(error.to_string()))?;
    let none: [(&str, TensorView<'_>); 0] = [];
    let metadata = HashMap::from([(SPEC_KEY.to_owned(), json)]);
    safetensors::serialize(none, Some(metadata))
        .map_err(|error| NetworkFileError::Format(error.to_string()))
}

impl Program {
    /// The program that has the file of this hash, if one of a run's has.
    pub fn of_file(hash: &ContentHash) -> Option<Self> {
        static PROGRAMS: LazyLock<HashMap<ContentHash, Program>> = LazyLock::new(|| {
            let of_depth =
                |depth| (0..=MOST_RANDOM).map(move |random| Program::AlphaBeta { depth, random });
            let searchers = (1..=DEEPEST_IN_RUNS).flat_map(of_depth);
            let all = std::iter::once(Program::Random).chain(searchers);
            let file = |program| Some((ContentHash::of(&program_file(program).ok()?), program));
            all.filter_map(file).collect()
        });
        PROGRAMS.get(hash).copied()
    }
}
