//! `import`: make a network of a file of Lc0.

use std::path::PathBuf;

use rookery_common::output;

use rookery_cli::flags::OutputArgs;
use rookery_cli::network_file;

/// Flags of `import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A network of Lc0 (.pb.gz): a residual network, with or without squeeze-excitation, with
    /// Lc0's classical input. Its moves-left head is dropped.
    #[arg(value_name = "FILE.pb.gz")]
    pub file: PathBuf,
    /// Write the network to this file. [default: FILE.safetensors]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
}

/// Makes the network and prints its name.
///
/// # Errors
///
/// If the file is no such network, or the new one cannot be written.
pub fn execute(args: &ImportArgs) -> anyhow::Result<()> {
    let output = match &args.output {
        Some(path) => path.clone(),
        None => network_file::beside(&args.file, "safetensors"),
    };
    args.replace.check(&output)?;
    let weights = network_file::read_lc0(&args.file)?;
    let hash = weights.write(&output)?;
    let spec = weights.spec();
    tracing::info!(
        "imported a {} network of {} parameters to {}",
        spec.shape(),
        spec.parameters(),
        output.display()
    );
    output::print_line(&hash.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rookery_common::network::NetworkSpec;
    use rookery_model::{Weights, lc0};

    use super::*;
    use crate::testing;
    use rookery_cli::network_file::creator;

    fn import(file: &Path, force: bool) -> anyhow::Result<()> {
        execute(&ImportArgs {
            file: file.to_owned(),
            output: None,
            replace: OutputArgs { force },
        })
    }

    #[test]
    fn a_network_of_lc0_becomes_one_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let mut spec = NetworkSpec::resnet(1, 8);
        spec.training_step = 7;
        let weights = Weights::random(spec.clone(), 1).unwrap();
        let file = dir.path().join("a.b.pb.gz");
        std::fs::write(&file, lc0::to_bytes(&weights).unwrap()).unwrap();
        import(&file, false).unwrap();
        let (read, _) = Weights::read(&dir.path().join("a.b.safetensors")).unwrap();
        spec.creator = creator();
        assert_eq!(read.spec, spec);
    }

    #[test]
    fn what_an_import_would_replace_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (file, original) = (
            dir.path().join("net.pb.gz"),
            dir.path().join("net.safetensors"),
        );
        let bytes = lc0::to_bytes(&testing::network()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        std::fs::write(&original, "mine").unwrap();
        let error = import(&file, false).unwrap_err().to_string();
        assert!(
            error.contains("net.safetensors") && error.contains("--force"),
            "{error}"
        );
        assert_eq!(std::fs::read(&original).unwrap(), b"mine");
        import(&file, true).unwrap();
        assert!(Weights::read(&original).is_ok());
    }

    #[test]
    fn a_file_that_is_no_network_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pb.gz");
        std::fs::write(&file, "nothing").unwrap();
        let error = import(&file, false).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("a.pb.gz") && text.contains("a text that begins \"nothing\""),
            "{text}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
