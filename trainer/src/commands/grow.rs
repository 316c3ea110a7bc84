//! `grow`: make a larger network of a smaller one.

use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::files::write_whole;
use rookery_common::ids::ContentHash;
use rookery_common::network::NetworkSpec;
use rookery_common::output;

use rookery_cli::flags::OutputArgs;
use rookery_cli::network_file;

/// Flags of `grow`.
#[derive(Debug, clap::Args)]
pub struct GrowArgs {
    /// The network, as a file of Rookery or of Lc0 (.pb.gz), or `small`, which comes with Rookery.
    #[arg(value_name = "NETWORK")]
    pub network: PathBuf,
    /// The shape to grow to, blocks x filters, for example 10x128; neither may be smaller than now.
    #[arg(value_name = "SHAPE")]
    pub shape: String,
    /// Write the network to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// The seed of the new weights: the same seed gives the same file.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Writes the larger network and prints its name.
///
/// # Errors
///
/// If the network cannot be read or is larger, or the file cannot be written.
pub fn execute(args: &GrowArgs) -> anyhow::Result<()> {
    args.replace.check(&args.output)?;
    let weights = network_file::read(&args.network)?;
    let target = NetworkSpec::from_shape(&args.shape)?;
    let (before, wanted) = (weights.spec().body()?, target.body()?);
    anyhow::ensure!(
        wanted.blocks >= before.blocks && wanted.filters >= before.filters,
        "RK-0608: a {} network cannot grow to {}: neither blocks nor filters may shrink",
        weights.spec().shape(),
        args.shape
    );
    let grown = weights.grown(wanted.blocks, wanted.filters, args.seed)?;
    let grown = grown.with_context(|| {
        format!(
            "RK-0608: the network cannot grow: it is {} already",
            args.shape
        )
    })?;
    let spec = NetworkSpec {
        creator: network_file::creator(),
        parent: Some(ContentHash::of(&weights.to_bytes()?)),
        ..grown.spec().clone()
    };
    let bytes = grown.with_spec(spec)?.to_bytes()?;
    write_whole(&args.output, &bytes)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    tracing::info!(
        "grew a {} network to {}: {}",
        weights.spec().shape(),
        args.shape,
        args.output.display()
    );
    output::print_line(&ContentHash::of(&bytes).to_string())
}

#[cfg(test)]
mod tests {
    use rookery_model::Weights;

    use super::*;
    use crate::testing;

    #[test]
    fn a_network_grows_and_only_grows() {
        let dir = tempfile::tempdir().unwrap();
        let [network, output] = ["net", "grown"].map(|name| dir.path().join(name));
        let small = testing::network();
        small.write(&network).unwrap();
        let grow = |shape: &str| {
            execute(&GrowArgs {
                network: network.clone(),
                shape: shape.to_owned(),
                output: output.clone(),
                replace: OutputArgs::default(),
                seed: 1,
            })
        };
        for (shape, told) in [
            (small.spec().shape(), "already"),
            ("1x0".to_owned(), "filters"),
            ("much".to_owned(), "much"),
        ] {
            let error = format!("{:#}", grow(&shape).unwrap_err());
            assert!(error.contains(told), "{shape}: {error}");
        }
        grow("3x24").unwrap();
        let (_, grown) = Weights::read(&output).unwrap();
        assert_eq!(grown.spec().shape(), "3x24");
        let parent = ContentHash::of(&std::fs::read(&network).unwrap());
        assert_eq!(grown.spec().parent, Some(parent));
        let error = grow("4x32").unwrap_err().to_string();
        assert!(error.contains("there already"), "{error}");
    }
}
