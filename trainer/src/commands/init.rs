//! `init`: make a network of random weights, as a file or for a coordinator.

use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::files::write_whole;
use rookery_common::ids::ContentHash;
use rookery_common::network::{Activation, AuxiliaryHead, NetworkSpec, PolicyHead, ValueHead};
use rookery_common::output;
use rookery_model::Weights;

use super::flags::ServerArgs;
use crate::exports;
use crate::presets;
use rookery_cli::Shutdown;
use rookery_cli::flags::{OutputArgs, named};
use rookery_cli::network_file::creator;

/// Flags of `init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// The shape, blocks x filters, for example 6x64; or a name: tiny (4x32), small (6x64), medium
    /// (10x128), large (20x256), alphazero, thesis or deltazero, which reproduce those networks.
    /// Other flags win over a name's settings.
    #[arg(value_name = "SHAPE")]
    pub shape: String,
    /// What the network sees. [default: lc0-112, or what the name says]
    #[arg(long, value_parser = named(InputEncoding::ALL, InputEncoding::name))]
    pub input: Option<InputEncoding>,
    /// What its policy means. [default: lc0-1858, or what the name says]
    #[arg(long, value_parser = named(PolicyEncoding::ALL, PolicyEncoding::name))]
    pub policy: Option<PolicyEncoding>,
    /// How its policy is computed. [default: convolution, dense for flat-1968]
    #[arg(long, value_enum)]
    pub policy_head: Option<PolicyKind>,
    /// What its value is. [default: wdl, or what the name says]
    #[arg(long, value_enum)]
    pub value: Option<ValueKind>,
    /// Share of the value head's hidden units that each training step leaves out, 0 to 0.9.
    /// [default: 0, or what the name says]
    #[arg(long, value_name = "SHARE")]
    pub value_dropout: Option<f32>,
    /// Add heads that only training uses, so that the network learns more of each position:
    /// moves-left, short-value, opponent-reply, future-board, final-board, soft-policy, or several with commas between
    /// them.
    #[arg(long, value_name = "HEADS", value_delimiter = ',')]
    #[arg(value_parser = named(AuxiliaryHead::ALL, AuxiliaryHead::name))]
    pub auxiliary: Vec<AuxiliaryHead>,
    /// Squeeze-excitation with this ratio; 0 for none. [default: 8, or 4 up to 32 filters]
    #[arg(long, value_name = "RATIO")]
    pub se_ratio: Option<u32>,
    /// The activation.
    #[arg(long, value_enum, default_value_t)]
    pub activation: Activation,
    /// The seed of the weights: the same seed gives the same file.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the network to this file.
    #[arg(short, long, value_name = "FILE", required_unless_present = "submit")]
    pub output: Option<PathBuf>,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// Submit the network to the coordinator.
    #[arg(long)]
    pub submit: bool,
    /// The coordinator, with --submit.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// How a policy is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PolicyKind {
    /// Convolutions to planes.
    Convolution,
    /// A dense layer on 32 channels.
    Dense,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ValueKind {
    /// Probabilities of win, draw and loss.
    Wdl,
    /// One number from -1 to 1.
    Scalar,
}

impl InitArgs {
    /// The specification that the flags describe.
    ///
    /// # Errors
    ///
    /// If it is outside the bounds.
    pub fn spec(&self) -> anyhow::Result<NetworkSpec> {
        let mut spec = presets::named_or_shaped(&self.shape)?;
        let body = spec.body_mut()?;
        if let Some(ratio) = self.se_ratio {
            body.se_ratio = (ratio > 0).then_some(ratio);
        }
        body.activation = self.activation;
        spec.input = self.input.unwrap_or(spec.input);
        if self.policy.is_some() || self.policy_head.is_some() {
            spec.policy.encoding = self.policy.unwrap_or(spec.policy.encoding);
            spec.policy.head = self.head(spec.policy.encoding);
        }
        let (ValueHead::Wdl { channels, hidden } | ValueHead::Scalar { channels, hidden }) =
            spec.value;
        spec.value = match self.value {
            Some(ValueKind::Wdl) => ValueHead::Wdl { channels, hidden },
            Some(ValueKind::Scalar) => ValueHead::Scalar { channels, hidden },
            None => spec.value,
        };
        spec.value_dropout = self.value_dropout.unwrap_or(spec.value_dropout);
        spec.auxiliary.clone_from(&self.auxiliary);
        spec.creator = creator();
        spec.check()?;
        Ok(spec)
    }

    fn head(&self, policy: PolicyEncoding) -> PolicyHead {
        let dense = PolicyHead::Dense { channels: 32 };
        match self.policy_head {
            Some(PolicyKind::Dense) => dense,
            None if policy == PolicyEncoding::Flat1968 => dense,
            Some(PolicyKind::Convolution) | None => PolicyHead::Convolution,
        }
    }
}

/// Makes the network.
///
/// # Errors
///
/// If the flags describe no network, the file cannot be written, or the coordinator refuses.
pub async fn execute(args: InitArgs, shutdown: Shutdown) -> anyhow::Result<()> {
    let spec = args.spec()?;
    let client = match args.submit {
        true => Some(args.server.client(&args.server.file()?, shutdown)?),
        false => None,
    };
    if let Some(path) = &args.output {
        args.replace.check(path)?;
    }
    let (shape, parameters) = (spec.shape(), spec.parameters());
    let weights = Weights::random(spec, args.seed)?;
    let bytes = weights.to_bytes()?;
    let hash = ContentHash::of(&bytes);
    tracing::info!("made a {shape} network of {parameters} parameters");
    if let Some(path) = &args.output {
        write_whole(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(client) = client {
        let receipt = client.submit(bytes).await?;
        tracing::info!("submitted it as network {}", receipt.number);
        exports::offer(&client, hash, &weights).await?;
    }
    output::print_line(&hash.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn spec(flags: &str) -> anyhow::Result<NetworkSpec> {
        let line = format!("init {flags} -o x");
        rookery_cli::testing::flags::<InitArgs>(Path::new(""), &line)?.spec()
    }

    #[test]
    fn flags_describe_a_network() {
        let default = NetworkSpec {
            creator: creator(),
            ..NetworkSpec::resnet(4, 32)
        };
        assert_eq!(spec("4x32").unwrap(), default);
        let flags = "4x32 --input az-119 --policy flat-1968 --value scalar --se-ratio 0";
        let other = spec(flags).unwrap();
        assert_eq!(other.policy.head, PolicyHead::Dense { channels: 32 });
        assert!(matches!(other.value, ValueHead::Scalar { .. }));
        assert_eq!(other.body().unwrap().se_ratio, None);
        let helped = spec("4x32 --auxiliary moves-left,short-value,opponent-reply,future-board,final-board,soft-policy").unwrap();
        assert_eq!(helped.auxiliary, AuxiliaryHead::ALL);
    }

    #[tokio::test]
    async fn a_network_that_is_there_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let init = |force: &str| {
            let line = format!("init 1x8 -o DIR/net {force}");
            let args = rookery_cli::testing::flags(dir.path(), &line).unwrap();
            execute(args, Shutdown::default())
        };
        init("").await.unwrap();
        let error = init("").await.unwrap_err().to_string();
        assert!(error.contains("--force"), "{error}");
        init("--force").await.unwrap();
    }

    #[test]
    fn a_name_describes_a_network_and_flags_change_it() {
        let named = spec("deltazero").unwrap();
        assert_eq!(
            (named.shape().as_str(), named.value_dropout),
            ("19x64", 0.4)
        );
        assert_eq!(named.policy.encoding, PolicyEncoding::Flat1968);
        let changed = spec("deltazero --value-dropout 0 --value wdl --input lc0-112").unwrap();
        let value = ValueHead::Wdl {
            channels: 1,
            hidden: 256,
        };
        assert_eq!((changed.value, changed.value_dropout), (value, 0.0));
        assert_eq!(changed.policy, named.policy);
        let error = format!("{:#}", spec("huge").unwrap_err());
        assert!(error.contains("alphazero"), "{error}");
    }

    #[test]
    fn flags_that_describe_none_are_refused() {
        for flags in [
            "",
            "4by32",
            "4x33",
            "4x32 --input lc0",
            "4x32 --policy flat-1968 --policy-head convolution",
            "4x32 --se-ratio 5",
            "4x32 --auxiliary moves-left,moves-left",
            "4x32 --auxiliary oracle",
        ] {
            assert!(spec(flags).is_err(), "{flags}");
        }
    }
}
