//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, ValueEnum};

/// Puts a coordinator under the load of many simulated workers, measures it by route, and then
/// checks that it holds exactly what it acknowledged.
///
/// Without --url the tool starts a coordinator of its own in a temporary folder. It talks to
/// coordinators on this machine only. The workers' games are real: the engine plays them with a
/// uniform evaluator before anything is measured. The exit status is 0 only if every acknowledged
/// chunk is in the ledger and the store exactly once, every lease is accounted for, no candidate is
/// lost, every gate was decided by its games, and no lie was believed.
#[derive(Debug, Parser)]
#[command(name = "rookery-swarm", version)]
pub(crate) struct Cli {
    /// Use the coordinator at this address instead of starting one. It must be on this machine.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The run to work for, with --url; it must have a network.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) run: String,
    /// A token with the scope `train`, with --url: the ledger is read with it at the end.
    #[arg(
        long,
        env = "ROOKERY_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
    /// Keep the own coordinator's ledger in this database instead of an SQLite file.
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    pub(crate) database: Option<String>,
    /// Keep the own coordinator's ledger in a PostgreSQL server that is started for it, from the
    /// programs of the package `postgresql`.
    #[arg(long, conflicts_with_all = ["url", "database"])]
    pub(crate) postgres: bool,
    /// Keep the own coordinator's networks and chunks in this store instead of a folder.
    #[arg(long, value_name = "STORE", conflicts_with = "url")]
    pub(crate) store: Option<String>,
    /// Keep them in an S3 server that is started for it.
    #[arg(long, conflicts_with_all = ["url", "store"])]
    pub(crate) s3: bool,
    /// Keep the own coordinator's files in this folder, so that they lie on the disk to be
    /// measured. [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) dir: Option<PathBuf>,
    /// What to do, one after the other, each for --seconds.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "mix")]
    pub(crate) mode: Vec<Mode>,
    /// How long each mode is measured, in seconds, 1 to 86,400. `reconnect` ends when every worker
    /// is back.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Simulated workers, 1 to 100,000: those whose heartbeats and reconnections are measured, and
    /// those of the mix.
    #[arg(long, default_value_t = 64)]
    pub(crate) workers: usize,
    /// Connections that are kept open; the workers take turns on them. 1 to 10,000.
    #[arg(long, default_value_t = 16)]
    pub(crate) connections: usize,
    /// Requests a second in all (an open loop: a slow answer delays no other request, and waiting
    /// counts). Without it every connection asks again as soon as it was answered (a closed loop).
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) rate: Option<f64>,
    /// Contributors that the workers belong to; they are registered first.
    #[arg(long, default_value_t = 8)]
    pub(crate) contributors: usize,
    /// Share of the mix's workers that keep their job for a while, with heartbeats, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) slow: f64,
    /// Share of the mix's workers that drop jobs without a word and break off uploads, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) crashing: f64,
    /// Share of the mix's workers that send chunks twice and the same games in another file.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) duplicating: f64,
    /// Share of the mix's workers that send chunks with a lie in them, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) lying: f64,
    /// Plies of the own coordinator's games, 10 to 1,000: a chunk of one game has as many
    /// positions.
    #[arg(long, default_value_t = 100)]
    pub(crate) plies: u32,
    /// Games of the own coordinator's jobs, 1 to 4,096.
    #[arg(long, default_value_t = 1)]
    pub(crate) games: u32,
    /// Visits of each move of the own coordinator's games, 4 to 1,000.
    #[arg(long, default_value_t = 100)]
    pub(crate) visits: u32,
    /// Chunks that are prepared for `uploads` at most, 1 to 1,000,000; its time ends with them.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) chunks: usize,
    /// About this often during `mix`, in seconds, kill one of --kill as a power cut would, and
    /// start it again.
    #[arg(long, value_name = "SECONDS", conflicts_with = "url")]
    pub(crate) kill_every: Option<f64>,
    /// What to kill, in turn.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "coordinator")]
    pub(crate) kill: Vec<Victim>,
    /// About this often during `mix`, in seconds, submit a candidate, whose gate is then played;
    /// every second gate is made to promote, the others to reject. All games are then played by the
    /// engine when their job is there, so that audits find them true.
    #[arg(long, value_name = "SECONDS", conflicts_with = "url")]
    pub(crate) gate_every: Option<f64>,
    /// The seed of all choices; the same seed and run play the same games.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads of the load generator, 1 to 64.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Ask for jobs.
    Jobs,
    /// Upload chunks whose jobs were taken before.
    Uploads,
    /// Heartbeats of all workers in turn, each with a job.
    Heartbeats,
    /// All workers lose their connection and come back at once, each on a new one, with a heartbeat.
    Reconnect,
    /// Whole jobs: taken, kept alive, played, uploaded; by honest and other workers.
    Mix,
}

/// What can be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Victim {
    /// The coordinator.
    Coordinator,
    /// The PostgreSQL server of --postgres.
    Postgres,
    /// The S3 server of --s3.
    S3,
}

impl Mode {
    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Uploads => "uploads",
            Self::Heartbeats => "heartbeats",
            Self::Reconnect => "reconnect",
            Self::Mix => "mix",
        }
    }
}

impl Cli {
    /// Checks every number against its range.
    ///
    /// # Errors
    ///
    /// The first that is outside.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        within("--seconds", self.seconds as f64, 1.0, 86_400.0)?;
        within("--workers", self.workers as f64, 1.0, 100_000.0)?;
        within("--connections", self.connections as f64, 1.0, 10_000.0)?;
        within("--contributors", self.contributors as f64, 1.0, 10_000.0)?;
        within("--plies", f64::from(self.plies), 10.0, 1000.0)?;
        within("--games", f64::from(self.games), 1.0, 4096.0)?;
        within("--visits", f64::from(self.visits), 4.0, 1000.0)?;
        within("--chunks", self.chunks as f64, 1.0, 1e6)?;
        within("--threads", self.threads as f64, 1.0, 64.0)?;
        within("--rate", self.rate.unwrap_or(1.0), 0.001, 1e6)?;
        for (flag, seconds) in [
            ("--kill-every", self.kill_every),
            ("--gate-every", self.gate_every),
        ] {
            within(flag, seconds.unwrap_or(1.0), 0.5, 86_400.0)?;
        }
        let shares = [self.slow, self.crashing, self.duplicating, self.lying];
        for share in shares {
            within("a share of workers", share, 0.0, 1.0)?;
        }
        within("all shares of workers", shares.iter().sum(), 0.0, 1.0)?;
        ensure!(
            self.postgres || !self.kill.contains(&Victim::Postgres),
            "only the server of --postgres can be killed"
        );
        ensure!(
            self.s3 || !self.kill.contains(&Victim::S3),
            "only the server of --s3 can be killed"
        );
        ensure!(
            self.url.is_none() || self.token.is_some(),
            "with --url a token with the scope `train` is needed to read the ledger: give --token"
        );
        Ok(())
    }
}

fn within(what: &str, value: f64, low: f64, high: f64) -> anyhow::Result<()> {
    ensure!(
        (low..=high).contains(&value),
        "{what} is {value}, allowed is {low} to {high}"
    );
    Ok(())
}

/// The host and port of a coordinator on this machine.
///
/// # Errors
///
/// If the address is no plain HTTP address of this machine.
pub(crate) fn local_address(url: &str) -> anyhow::Result<std::net::SocketAddr> {
    let url = reqwest::Url::parse(url).with_context(|| format!("{url:?} is no address"))?;
    ensure!(
        url.scheme() == "http",
        "{url} is not http: the swarm speaks no TLS"
    );
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let ip: IpAddr = match host {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        other => match other.parse() {
            Ok(ip) => ip,
            Err(_) => bail!("{other} is not an address of this machine: the swarm loads no other"),
        },
    };
    ensure!(
        ip.is_loopback(),
        "{ip} is not on this machine: the swarm loads no other"
    );
    Ok((ip, url.port().unwrap_or(80)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loaded() {
        assert!(local_address("http://127.0.0.1:8080").is_ok());
        assert!(local_address("http://localhost:1").is_ok());
        assert!(local_address("http://[::1]:1/").is_ok());
        for other in [
            "http://10.0.0.1:8080",
            "http://example.org",
            "https://127.0.0.1",
            "x",
        ] {
            assert!(local_address(other).is_err(), "{other}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn shares_of_more_than_all_workers_are_refused() {
        let cli = Cli::parse_from(["rookery-swarm", "--slow", "0.6", "--lying", "0.6"]);
        assert!(cli.check().is_err());
        assert!(Cli::parse_from(["rookery-swarm"]).check().is_ok());
    }
}
