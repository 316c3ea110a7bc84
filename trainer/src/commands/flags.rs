//! Flags that several commands have.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use rookery_analysis::Device;
use rookery_backend_torch::TorchBackend;
use rookery_cli::{Shutdown, flags};
use rookery_client::Token;
use rookery_common::command_line::read_params;
use rookery_common::ids::RunName;
use rookery_common::params::TrainingParams;
use rookery_common::secret::read_secret;
use rookery_engine::{DeviceChoice, Precision};

use crate::api::Client;
use crate::config::ConfigFile;
use crate::learner::Compute;

/// Where a coordinator on the same machine listens.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// The run that the guides create.
const DEFAULT_RUN: &str = "main";

/// Where to compute.
#[derive(Debug, Clone, clap::Args)]
pub struct DeviceArgs {
    /// Compute on this device: auto, cpu, cuda, cuda:N or mps.
    #[arg(long, env = "ROOKERY_DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
    /// Compute in this precision: auto, f32, bf16, and f16 on a GPU in matches. In training, auto is bf16 on GPUs and
    /// on processors that are faster in it: with AMX, and AMD's with AVX-512.
    #[arg(long, default_value = "auto")]
    pub precision: Precision,
    /// Let libtorch use this many processor threads. [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl DeviceArgs {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// If it is not there or does not work.
    pub fn open(&self) -> anyhow::Result<Compute> {
        if let Some(threads) = self.threads {
            rookery_backend_torch::use_threads(threads);
        }
        let device = rookery_backend_torch::ComputeDevice::open(self.device)?;
        Ok(Compute {
            device,
            precision: self.precision,
        })
    }

    /// The device as matches use it.
    ///
    /// # Errors
    ///
    /// If it is not there, does not work, or does not compute in this precision.
    pub fn players(&self) -> anyhow::Result<Device> {
        let compute = self.open()?;
        let backend = TorchBackend::new(compute.device, compute.precision)?;
        Ok(Device::new(Arc::new(backend), self.threads))
    }
}

/// The parameters of training, where no coordinator gives them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TrainingArgs {
    /// A run's TOML or JSON file (its section training is used), or a file of training parameters alone. Missing
    /// parameters have their defaults.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Positions of a batch. [default: the parameters' batch-size]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<u32>,
    /// Learning rate. [default: the parameters' rate]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// End after this many minutes, if that is sooner, and write the network.
    #[arg(long, value_name = "MINUTES", value_parser = flags::positive)]
    pub minutes: Option<f64>,
}

impl TrainingArgs {
    /// The parameters of the file, or the defaults, with what flags say.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a parameter is out of range.
    pub fn params(&self) -> anyhow::Result<TrainingParams> {
        let mut params = match &self.params {
            Some(path) => read_params(path, TrainingParams::from_text)?,
            None => TrainingParams::default(),
        };
        if let Some(size) = self.batch_size {
            params.batch_size = size;
        }
        if let Some(rate) = self.learning_rate {
            params.learning_rate.base = rate;
        }
        params.check()?;
        Ok(params)
    }

    /// Whether the minutes have passed since then.
    pub fn is_over(&self, begun: Instant) -> bool {
        let minutes = begun.elapsed().as_secs_f64() / 60.0;
        self.minutes.is_some_and(|most| minutes >= most)
    }
}

/// Which coordinator and run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServerArgs {
    /// Read settings from this TOML file: server, token-file, run and dir. Without the flag,
    /// trainer.toml in the working directory is read if it is there.
    #[arg(long, env = "ROOKERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The coordinator's address, for example https://rookery.example.org.
    /// [default: http://127.0.0.1:8080]
    #[arg(
        long,
        env = "ROOKERY_SERVER",
        value_name = "URL",
        hide_env_values = true
    )]
    pub server: Option<String>,
    /// A token with the scope `train`. Other users of the machine see a command line: better give --token-file or
    /// ROOKERY_TOKEN.
    #[arg(
        long,
        env = "ROOKERY_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// The file that holds the token.
    #[arg(long, env = "ROOKERY_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The run's name. [default: main]
    #[arg(long, env = "ROOKERY_RUN", value_name = "NAME")]
    pub run: Option<RunName>,
}

impl ServerArgs {
    /// The configuration file.
    ///
    /// # Errors
    ///
    /// If it was named and cannot be read, or is not valid.
    pub fn file(&self) -> anyhow::Result<ConfigFile> {
        ConfigFile::load(self.config.as_deref())
    }

    /// A client for the coordinator that flags, environment and file name.
    ///
    /// # Errors
    ///
    /// If the text is not an address, or there is no token or it cannot be read: every command that
    /// asks a coordinator needs a token, and it is better said before the work than after.
    pub fn client(&self, file: &ConfigFile, shutdown: Shutdown) -> anyhow::Result<Client> {
        let server = self.server.as_ref().or(file.server.as_ref());
        let server = server.map_or(DEFAULT_SERVER, String::as_str);
        let token = match self.token.as_ref().filter(|token| !token.is_empty()) {
            Some(token) => Some(token.clone()),
            None => {
                let path = self.token_file.as_ref().or(file.token_file.as_ref());
                path.map(|path| read_secret(path)).transpose()?
            }
        };
        let token = token.context(
            "RK-0701: there is no token: set ROOKERY_TOKEN to one with the scope `train`, which the \
             coordinator's operator makes (rookery-coordinator user create NAME --scope train)",
        )?;
        let run = match self.run.as_ref().or(file.run.as_ref()) {
            Some(run) => run.clone(),
            None => DEFAULT_RUN.parse()?,
        };
        Client::new(server, Some(Token::parse(&token)?), run, shutdown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_token_that_can_stand_in_no_header_is_refused_and_not_shown() {
        for token in [
            "rk_secret\nrk_other",
            "rk_secret rk_other",
            "\u{feff}rk_secret",
        ] {
            let args = ServerArgs {
                token: Some(token.to_owned()),
                ..ServerArgs::default()
            };
            let client = args.client(&ConfigFile::default(), Shutdown::default());
            let error = format!("{:#}", client.unwrap_err());
            assert!(error.contains("begins with rk_"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn training_is_over_after_its_minutes_and_never_without_them() {
        let args = |minutes| TrainingArgs {
            minutes,
            ..TrainingArgs::default()
        };
        let begun = Instant::now();
        assert!(!args(None).is_over(begun) && !args(Some(1e5)).is_over(begun));
        let minute_ago = begun.checked_sub(Duration::from_secs(60)).unwrap();
        assert!(args(Some(1.0)).is_over(minute_ago));
    }

    #[test]
    fn a_missing_token_is_said_at_once_and_how_to_get_one() {
        for token in [None, Some(String::new())] {
            let args = ServerArgs {
                token,
                ..ServerArgs::default()
            };
            let client = args.client(&ConfigFile::default(), Shutdown::default());
            let error = client.unwrap_err().to_string();
            assert!(error.contains("ROOKERY_TOKEN"), "{error}");
            assert!(error.contains("--scope train"), "{error}");
        }
    }
}
