//! What the program works with, once flags, variables, file and defaults are merged.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use rookery_backend_gpu::MatrixChoice;
use rookery_backends::{DeviceSelection, NamedDevice, default_data_dir};
use rookery_common::ids::RunName;
use rookery_common::secret::read_secret;
use rookery_common::signing::RunKey;
use rookery_common::text::{is_blank, printable};
use rookery_engine::Precision;

use super::file::ConfigFile;
use crate::api::{Server, Token};
use crate::cli::{ComputeArgs, JudgeArgs, RunArgs, ServerArgs};
use crate::judges::JudgeSettings;
use crate::priority::Priority;

/// Settings of `run`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The coordinator.
    pub server: Server,
    /// The operator's token, if one was given.
    pub token: Option<Token>,
    /// The invitation with which to register, if one was given.
    pub invitation: Option<String>,
    /// The key that the run's networks must be signed with, if one was given.
    pub run_key: Option<RunKey>,
    /// The contributor's name, if one was given.
    pub name: Option<String>,
    /// This worker's name.
    pub worker: String,
    /// The run to work for.
    pub run: Option<RunName>,
    /// Where and how to compute.
    pub compute: Compute,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Finished games wait no longer than this before they are uploaded.
    pub chunk_every: Duration,
    /// Whether people may watch a game while it is played.
    pub share_live: bool,
    /// Jobs after which the program ends.
    pub max_jobs: Option<u32>,
    /// Time after which it finishes the games in hand and ends.
    pub end_after: Option<Duration>,
    /// Whether other programs have the processor first.
    pub priority: Priority,
    /// What may end games early.
    pub judges: JudgeSettings,
}

/// How the numbers are chosen in which networks are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrecisionChoice {
    /// The fastest: those of an unfinished job, those that were measured before, or those that are measured now.
    #[default]
    Auto,
    /// The fastest, measured now.
    Measure,
    /// These.
    Only(Precision),
}

impl FromStr for PrecisionChoice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "measure" => Ok(Self::Measure),
            _ => match text.parse() {
                Ok(Precision::Auto) => Ok(Self::Auto),
                Ok(precision) => Ok(Self::Only(precision)),
                Err(_) => {
                    anyhow::bail!(
                        "RK-0312: {text:?} is no precision; write auto, measure, f32, bf16 or f16"
                    )
                }
            },
        }
    }
}

/// Where and how to compute.
#[derive(Debug, Clone)]
pub struct Compute {
    /// The devices.
    pub devices: NamedDevice<DeviceSelection>,
    /// How the numbers are chosen.
    pub precision: PrecisionChoice,
    /// Threads that play; chosen by the device if it is not given.
    pub threads: Option<NonZeroUsize>,
    /// Games at once, all threads together; chosen by the device if it is not given.
    pub games: Option<NonZeroUsize>,
    /// Share of the time for which GPUs compute at most, above 0 and at most 1.
    pub gpu_share: f64,
    /// Whether GPUs may use cooperative matrices.
    pub gpu_matrices: MatrixChoice,
    /// Whether a GPU and the processor may compute side by side where the device is left to the program.
    pub pairs: bool,
}

/// Most threads that play.
const MAX_THREADS: usize = 1024;
/// Most games at once, all threads together.
const MAX_GAMES: usize = 65_536;
/// Least share of a GPU's time: with less, its threads idle for minutes between batches.
const LEAST_GPU_SHARE: f64 = 0.01;
/// Most characters of a worker's name.
const MAX_WORKER_NAME: usize = 64;

impl Settings {
    /// Merges flags and variables (`args`) with the file.
    ///
    /// # Errors
    ///
    /// If a value is missing or not valid.
    pub fn resolve(args: RunArgs, file: &ConfigFile) -> anyhow::Result<Self> {
        let run = args.server.run.or(file.run.clone());
        let run = run.map(|run| run.parse()).transpose()?;
        let token = given_token(args.token, args.token_file.as_deref(), file)?;
        let minutes = args.chunk_minutes.or(file.chunk_minutes).unwrap_or(5.0);
        anyhow::ensure!(
            (0.01..=1440.0).contains(&minutes),
            "RK-0009: chunk-minutes is {minutes}, allowed is 0.01 to 1440"
        );
        let worker = args.worker.or(file.worker.clone());
        Ok(Self {
            server: resolve_server(args.server.server, file)?,
            token,
            invitation: args.invitation.or(file.invitation.clone()),
            run_key: args.run_key.or(file.run_key.clone()),
            name: args.name.or(file.name.clone()),
            worker: worker_name(worker)?,
            run,
            data_dir: resolve_data_dir(args.server.dir, file)?,
            compute: Compute::resolve(&args.compute, file)?,
            chunk_every: Duration::from_secs_f64(minutes * 60.0),
            share_live: args.share_live || file.share_live,
            max_jobs: args.max_jobs,
            end_after: args.minutes.map(playing_time).transpose()?,
            priority: args.priority.or(file.priority).unwrap_or_default(),
            judges: judges(args.judges, file),
        })
    }
}

/// The operator's token: a flag's or a variable's, else the file's.
fn given_token(
    token: Option<String>,
    path: Option<&Path>,
    file: &ConfigFile,
) -> anyhow::Result<Option<Token>> {
    let in_file = || {
        file.token
            .is_none()
            .then_some(file.token_file.as_ref())
            .flatten()
    };
    let text = match (token, path) {
        (Some(text), _) => Some(text),
        (None, Some(path)) => Some(read_secret(path)?),
        (None, None) => in_file().map(|path| read_secret(path)).transpose()?,
    };
    let given = text.map(|text| Token::parse(&text)).transpose()?;
    Ok(given.or(file.token.clone()))
}

fn playing_time(minutes: f64) -> anyhow::Result<Duration> {
    const YEAR: f64 = 60.0 * 24.0 * 365.0;
    anyhow::ensure!(
        (0.01..=YEAR).contains(&minutes),
        "RK-0009: --minutes is {minutes}, allowed is 0.01 to {YEAR}"
    );
    Ok(Duration::from_secs_f64(minutes * 60.0))
}

fn judges(args: JudgeArgs, file: &ConfigFile) -> JudgeSettings {
    let given = args.syzygy;
    let syzygy = if given.is_empty() {
        file.syzygy.clone()
    } else {
        given
    };
    JudgeSettings {
        syzygy,
        adjudicator: args.adjudicator.or(file.adjudicator.clone()),
    }
}

impl Compute {
    /// Merges flags and variables with the file.
    ///
    /// # Errors
    ///
    /// If a value is not valid.
    pub fn resolve(args: &ComputeArgs, file: &ConfigFile) -> anyhow::Result<Self> {
        let gpu_share = args.gpu_share.or(file.gpu_share).unwrap_or(1.0);
        anyhow::ensure!(
            (LEAST_GPU_SHARE..=1.0).contains(&gpu_share),
            "RK-0009: gpu-share is {gpu_share}, allowed is {LEAST_GPU_SHARE} to 1"
        );
        let gpu_matrices = or_auto(&args.gpu_matrices, &file.gpu_matrices).parse();
        let gpu_matrices =
            gpu_matrices.map_err(|error| anyhow::anyhow!("gpu-matrices: {error}"))?;
        let device: NamedDevice<DeviceSelection> = or_auto(&args.device, &file.device).parse()?;
        Ok(Self {
            devices: device.with_access(&file.remote_access())?,
            precision: or_auto(&args.precision, &file.precision).parse()?,
            threads: number(args.threads.or(file.threads), "threads", MAX_THREADS)?,
            games: number(args.games.or(file.games), "games", MAX_GAMES)?,
            gpu_share,
            gpu_matrices,
            pairs: true,
        })
    }
}

/// What a flag or a variable says, else the file, else `auto`.
pub(crate) fn or_auto<'a>(flag: &'a Option<String>, file: &'a Option<String>) -> &'a str {
    flag.as_deref().or(file.as_deref()).unwrap_or("auto")
}

/// A number of `what`, from 1 to `most`, if one is given.
fn number(given: Option<usize>, what: &str, most: usize) -> anyhow::Result<Option<NonZeroUsize>> {
    let check = |n: usize| {
        let number = NonZeroUsize::new(n).filter(|_| n <= most);
        number.with_context(|| format!("RK-0009: {what} is {n}, allowed is 1 to {most}"))
    };
    given.map(check).transpose()
}

/// The coordinator from flags, variables or file.
///
/// # Errors
///
/// If none is given.
pub(super) fn resolve_server(flag: Option<Server>, file: &ConfigFile) -> anyhow::Result<Server> {
    flag.or_else(|| file.server.clone()).context(
        "RK-0112: no coordinator is given: use --server https://…, ROOKERY_SERVER, or `rookery-worker setup`",
    )
}

pub(crate) fn resolve_data_dir(
    flag: Option<PathBuf>,
    file: &ConfigFile,
) -> anyhow::Result<PathBuf> {
    flag.or_else(|| file.dir.clone())
        .or_else(default_data_dir)
        .context("RK-0010: there is no home folder; name the folder of token, networks and games with --dir")
}

impl ServerArgs {
    /// The coordinator and the folder of networks, for commands that only read.
    ///
    /// # Errors
    ///
    /// If either is not known.
    pub fn resolve(&self, file: &ConfigFile) -> anyhow::Result<(Server, PathBuf)> {
        let data_dir = resolve_data_dir(self.dir.clone(), file)?;
        Ok((resolve_server(self.server.clone(), file)?, data_dir))
    }
}

/// The worker's name as coordinators take it: the one that was given, or else the machine's.
pub(crate) fn worker_name(given: Option<String>) -> anyhow::Result<String> {
    let Some(given) = given else {
        let name = printable(&machine_name(), MAX_WORKER_NAME);
        return Ok(if is_blank(&name) {
            "worker".to_owned()
        } else {
            name
        });
    };
    let name = printable(given.trim(), MAX_WORKER_NAME);
    anyhow::ensure!(
        !is_blank(&name),
        "RK-0407: the worker's name {given:?} shows nothing: give one with --worker that tells this machine from your others, \
         or leave it out to use the machine's"
    );
    Ok(name)
}

/// The machine's name.
fn machine_name() -> String {
    let from_file = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_variable = || {
        ["HOSTNAME", "COMPUTERNAME"]
            .into_iter()
            .find_map(|v| std::env::var(v).ok())
    };
    let name = from_file().or_else(from_variable).unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use rookery_engine::DeviceChoice;

    use super::*;
    use crate::cli::{Cli, Command};

    fn resolve(flags: &[&str], file: &str) -> anyhow::Result<Settings> {
        let words = ["rookery-worker", "run"].iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(words)?.command else {
            anyhow::bail!("another command")
        };
        Settings::resolve(args, &toml::from_str(file)?)
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let file = "server = \"http://file\"\nthreads = 3\ndevice = \"cpu\"\ndir = \"/d\"";
        let settings = resolve(&["--server", "http://flag", "--games", "9"], file).unwrap();
        assert_eq!(settings.server.to_string(), "http://flag");
        assert_eq!(settings.compute.threads, NonZeroUsize::new(3));
        assert_eq!(settings.compute.games, NonZeroUsize::new(9));
        let cpu = DeviceSelection::One(DeviceChoice::Cpu);
        assert!(matches!(settings.compute.devices, NamedDevice::Local(local) if local == cpu));
        assert_eq!(settings.data_dir, PathBuf::from("/d"));
        assert_eq!(settings.chunk_every, Duration::from_secs(300));
    }

    #[test]
    fn a_gpu_computes_all_the_time_unless_the_volunteer_wants_otherwise() {
        let share = |flags: &[&str], line: &str| {
            let file = format!("server = \"http://x\"\ndir = \"/d\"\n{line}");
            resolve(flags, &file).unwrap().compute.gpu_share
        };
        assert_eq!(share(&[], ""), 1.0);
        assert_eq!(share(&[], "gpu-share = 0.25"), 0.25);
        assert_eq!(share(&["--gpu-share", "0.5"], "gpu-share = 0.25"), 0.5);
    }

    #[test]
    fn other_programs_go_first_unless_the_volunteer_wants_otherwise() {
        let priority = |flags: &[&str], line: &str| {
            let file = format!("server = \"http://x\"\ndir = \"/d\"\n{line}");
            resolve(flags, &file).unwrap().priority
        };
        assert_eq!(priority(&[], ""), Priority::Low);
        let line = "priority = \"unchanged\"";
        assert_eq!(priority(&[], line), Priority::Unchanged);
        assert_eq!(priority(&["--priority", "low"], line), Priority::Low);
    }

    #[test]
    fn a_workers_name_becomes_one_that_coordinators_take() {
        let name = format!("den\u{1b}[2J\n{}", "x".repeat(100));
        let flags = ["--server", "http://x", "--worker", name.as_str()];
        let settings = resolve(&flags, "dir = \"/d\"").unwrap();
        assert_eq!(settings.worker, format!("den[2J{}", "x".repeat(58)));
    }

    #[test]
    fn a_workers_name_that_shows_nothing_is_refused_wherever_it_stands() {
        for name in ["", " ", "\u{200b}\u{feff}", "\u{1b}"] {
            let flags = ["--server", "http://x", "--worker", name];
            let flag = resolve(&flags, "dir = \"/d\"");
            let file = ConfigFile {
                worker: Some(name.to_owned()),
                dir: Some("/d".into()),
                ..ConfigFile::default()
            };
            let file = resolve(&flags[..2], &toml::to_string(&file).unwrap());
            assert!(
                flag.unwrap_err().to_string().contains("--worker"),
                "{name:?}"
            );
            assert!(file.is_err(), "{name:?}");
        }
        let flags = ["--server", "http://x", "--worker", " den "];
        assert_eq!(resolve(&flags, "dir = \"/d\"").unwrap().worker, "den");
    }

    #[test]
    fn numbers_are_chosen_by_measurement_or_by_name() {
        let choice = |precision: &str| {
            let flags = ["--server", "http://x", "--precision", precision];
            resolve(&flags, "dir = \"/d\"").map(|settings| settings.compute.precision)
        };
        assert_eq!(choice("auto").unwrap(), PrecisionChoice::Auto);
        assert_eq!(choice("measure").unwrap(), PrecisionChoice::Measure);
        assert_eq!(
            choice("bf16").unwrap(),
            PrecisionChoice::Only(Precision::Bf16)
        );
        let error = choice("fp8").unwrap_err().to_string();
        assert!(error.contains("auto, measure, f32"), "{error}");
    }

    #[test]
    fn numbers_that_no_machine_plays_are_refused_wherever_they_stand() {
        let flags = ["--server", "http://x", "--games", "99999999999"];
        let flag = resolve(&flags, "dir = \"/d\"");
        let file = "dir = \"/d\"\nserver = \"http://x\"\ngames = 99999999999";
        for refused in [flag, resolve(&[], file)] {
            let error = format!("{:#}", refused.unwrap_err());
            assert_eq!(
                error,
                "RK-0009: games is 99999999999, allowed is 1 to 65536"
            );
        }
        let most = resolve(&["--games", "65536"], file).unwrap();
        assert_eq!(most.compute.games, NonZeroUsize::new(65_536));
    }

    #[test]
    fn a_token_is_read_from_a_file_unless_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "rk_file\n").unwrap();
        let shown = path.display().to_string();
        let token = |flags: &[&str], line: &str| {
            let file = format!("server = \"http://x\"\ndir = \"/d\"\n{line}");
            resolve(flags, &file).map(|settings| settings.token)
        };
        let parsed = |text: &str| Some(Token::parse(text).unwrap());
        let flag = ["--token-file", shown.as_str()];
        let line = format!("token-file = {shown:?}");
        assert_eq!(
            token(&flag, "token = \"rk_line\"").unwrap(),
            parsed("rk_file")
        );
        assert_eq!(token(&[], &line).unwrap(), parsed("rk_file"));
        assert_eq!(
            token(&["--token", "rk_flag"], &line).unwrap(),
            parsed("rk_flag")
        );
        assert_eq!(token(&[], "").unwrap(), None);
        std::fs::write(&path, " \n").unwrap();
        let error = format!("{:#}", token(&flag, "").unwrap_err());
        assert!(
            error.contains("is empty") && error.contains(&shown),
            "{error}"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let named = [
            (&["--server", "http://x", "--device", "tpu"][..], "\"tpu\""),
            (
                &["--server", "http://x", "--device", "remote://gpu"],
                "remote://HOST:PORT",
            ),
            (&["--server", "http://x", "--threads", "0"], "threads"),
            (&["--server", "http://x", "--gpu-share", "0"], "gpu-share"),
            (
                &["--server", "http://x", "--gpu-matrices", "yes"],
                "gpu-matrices: `yes` is none of auto, on and off",
            ),
            (&["--server", "http://x", "--gpu-share", "1.5"], "gpu-share"),
            (&["--server", "http://x", "--gpu-share", "NaN"], "gpu-share"),
            (
                &["--server", "http://x", "--chunk-minutes", "0"],
                "chunk-minutes",
            ),
            (&["--server", "http://x", "--run", "No"], "\"No\""),
            (&[], "--server"),
        ];
        for (flags, name) in named {
            let error = format!("{:#}", resolve(flags, "dir = \"/d\"").unwrap_err());
            assert!(error.contains(name), "{error}");
        }
    }
}
