//! `export`: write a network for other programs.

use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::files::write_whole;
use rookery_common::protocol::networks::ExportFormat;
use rookery_model::Weights;

use crate::exports;
use rookery_cli::flags::OutputArgs;
use rookery_cli::network_file;

/// Flags of `export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The network, as a file of Rookery or of Lc0 (.pb.gz).
    #[arg(value_name = "NETWORK")]
    pub network: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    pub format: FileFormat,
    /// Write to this file. [default: NETWORK with the format's ending]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
}

/// A format of network files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// Lc0's .pb.gz, for networks with input lc0-112 and policy lc0-1858.
    Lc0,
    /// An ONNX model with Lc0's names of inputs and outputs.
    Onnx,
    /// Rookery's own format, checked and written anew in 32-bit numbers.
    Safetensors,
    /// The same in f16, half the size.
    SafetensorsF16,
}

impl FileFormat {
    /// How file names end.
    fn ending(self) -> &'static str {
        match self {
            Self::Lc0 => ExportFormat::Lc0.ending(),
            Self::Onnx => ExportFormat::Onnx.ending(),
            Self::Safetensors => "safetensors",
            Self::SafetensorsF16 => "f16.safetensors",
        }
    }

    /// The bytes of a network's file.
    fn make(self, weights: &Weights) -> rookery_model::error::Result<Vec<u8>> {
        match self {
            Self::Lc0 => exports::make(ExportFormat::Lc0, weights),
            Self::Onnx => exports::make(ExportFormat::Onnx, weights),
            Self::Safetensors => weights.to_bytes(),
            Self::SafetensorsF16 => weights.to_half_bytes(),
        }
    }
}

/// Writes the file.
///
/// # Errors
///
/// If the network cannot be read or the format cannot hold it, or the file cannot be written.
pub fn execute(args: &ExportArgs) -> anyhow::Result<()> {
    let network = args.network.display();
    let output = args.output.clone();
    let beside = || network_file::beside(&args.network, args.format.ending());
    let output = output.unwrap_or_else(beside);
    anyhow::ensure!(
        output != args.network,
        "the export would replace {network}; name another file with --output"
    );
    args.replace.check(&output)?;
    let weights = network_file::read(&args.network)?;
    let bytes = args.format.make(&weights);
    let bytes = bytes.with_context(|| format!("cannot export {network}"))?;
    write_whole(&output, &bytes).with_context(|| format!("cannot write {}", output.display()))?;
    tracing::info!("exported {network} to {}", output.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rookery_common::encoding::InputEncoding;
    use rookery_common::network::NetworkSpec;
    use rookery_model::lc0;

    use super::*;
    use crate::testing;

    fn export(network: &Path, format: FileFormat) -> anyhow::Result<()> {
        let (network, output) = (network.to_owned(), None);
        execute(&ExportArgs {
            network,
            format,
            output,
            replace: OutputArgs::default(),
        })
    }

    #[test]
    fn files_are_written_beside_the_network() {
        let dir = tempfile::tempdir().unwrap();
        let network = dir.path().join("net.safetensors");
        testing::network().write(&network).unwrap();
        export(&network, FileFormat::Lc0).unwrap();
        export(&network, FileFormat::Onnx).unwrap();
        export(&network, FileFormat::SafetensorsF16).unwrap();
        assert!(Weights::read(&dir.path().join("net.f16.safetensors")).is_ok());
        assert!(lc0::read(&dir.path().join("net.pb.gz")).is_ok());
        assert!(dir.path().join("net.onnx").exists());
        let error = export(&network, FileFormat::Safetensors).unwrap_err();
        assert!(error.to_string().contains("--output"), "{error}");
        let error = export(&network, FileFormat::Onnx).unwrap_err();
        assert!(
            error.to_string().contains("net.onnx is there already"),
            "{error}"
        );
    }

    #[test]
    fn networks_of_lc0_are_exported_too() {
        let dir = tempfile::tempdir().unwrap();
        let network = dir.path().join("maia.pb.gz");
        let bytes = lc0::to_bytes(&testing::network()).unwrap();
        std::fs::write(&network, bytes).unwrap();
        export(&network, FileFormat::Onnx).unwrap();
        assert!(dir.path().join("maia.onnx").exists());
        export(&network, FileFormat::Safetensors).unwrap();
        assert!(Weights::read(&dir.path().join("maia.safetensors")).is_ok());
        let renamed = dir.path().join("renamed.safetensors");
        std::fs::copy(&network, &renamed).unwrap();
        export(&renamed, FileFormat::Onnx).unwrap();
        std::fs::write(&network, "nothing").unwrap();
        let error = export(&network, FileFormat::Lc0).unwrap_err();
        assert!(error.to_string().contains("would replace"), "{error}");
    }

    #[test]
    fn a_network_that_lc0_does_not_know_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let network = dir.path().join("net.safetensors");
        let mut spec = NetworkSpec::resnet(1, 8);
        spec.input = InputEncoding::Az119;
        Weights::random(spec, 1).unwrap().write(&network).unwrap();
        let error = export(&network, FileFormat::Lc0).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("az-119") && text.contains("lc0-112"),
            "{text}"
        );
        assert!(!dir.path().join("net.pb.gz").exists());
        export(&network, FileFormat::Onnx).unwrap();
    }
}
