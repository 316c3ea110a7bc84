//! The real programs as processes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long anything may take before a test gives up: CI machines are slow.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Where the programs were built: beside this program, or the folder above a test's or an
/// example's own binary.
///
/// # Errors
///
/// If the program is not there: `cargo build --workspace --bins` builds it.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("a program lies in target/PROFILE")?;
    let folder = if folder.ends_with("deps") || folder.ends_with("examples") {
        folder.parent()
    } else {
        Some(folder)
    };
    let folder = folder.context("a test binary lies in target/PROFILE/deps")?;
    let path = folder.join(name);
    ensure!(
        path.is_file(),
        "{} is missing: run `cargo build --workspace --bins` first",
        path.display()
    );
    Ok(path)
}

/// A running program; it is killed when dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program; what it prints goes to `log`, after what is there already.
    ///
    /// # Errors
    ///
    /// If the program is missing or cannot be started.
    pub fn start(
        name: &str,
        log: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program(name)?);
        command.args(arguments).envs(environment.iter().copied());
        Self::spawn(name, command, log)
    }

    /// The same for a command that starts the program `name`.
    pub(crate) fn spawn(name: &str, mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = command
            // A test's worker waits for no other program of the machine.
            .env("ROOKERY_PRIORITY", "unchanged")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("{name} did not start"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
        })
    }

    /// What the program has printed so far.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until the program has printed these words.
    ///
    /// # Errors
    ///
    /// If that takes too long.
    pub async fn wait_for(&self, words: &str) -> anyhow::Result<()> {
        let said = async || Ok(self.printed().contains(words).then_some(()));
        eventually(words, said).await
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// If the process is gone.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        kill(pid, signal).with_context(|| format!("{} cannot be signalled", self.name))
    }

    /// Whether the program has been stopped by a signal, to be continued.
    ///
    /// # Errors
    ///
    /// If the process is gone.
    pub fn stands_still(&self) -> anyhow::Result<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // Its name comes before, and may hold anything.
        let (_, rest) = stat.rsplit_once(')').context("a process has a state")?;
        Ok(rest.trim_start().starts_with('T'))
    }

    /// Kills the program at once, as a power cut would.
    ///
    /// # Errors
    ///
    /// If the process cannot be killed.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks the program to end (SIGTERM) and waits until it has.
    ///
    /// # Errors
    ///
    /// If it does not end in time, or ends with an error; the error shows what it printed.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end(Signal::SIGTERM)
    }

    /// Asks the program to end as Ctrl-C does (SIGINT) and waits until it has.
    ///
    /// # Errors
    ///
    /// If it does not end in time, or ends with an error; the error shows what it printed.
    pub fn interrupt(&mut self) -> anyhow::Result<()> {
        self.end(Signal::SIGINT)
    }

    fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        self.signal(signal)?;
        let status = self.wait()?;
        ensure!(status.success(), "{status}:\n{}", self.printed());
        Ok(())
    }

    /// Whether the program has ended by itself.
    ///
    /// # Errors
    ///
    /// If the operating system does not say.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the program's own end.
    ///
    /// # Errors
    ///
    /// If it does not end in time; the error shows what it printed.
    pub fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("{} did not end; it printed:\n{}", self.name, self.printed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end and returns what it printed to its standard output.
///
/// # Errors
///
/// If it fails; the error shows what it said.
pub fn run(name: &str, arguments: &[&str]) -> anyhow::Result<String> {
    run_with(name, arguments, &[])
}

/// The same with variables of the environment.
///
/// # Errors
///
/// If it fails; the error shows what it said.
pub fn run_with(
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> anyhow::Result<String> {
    let mut command = Command::new(program(name)?);
    command.args(arguments).envs(environment.iter().copied());
    let done = command.output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "{name} {arguments:?} failed:\n{said}"
    );
    Ok(String::from_utf8(done.stdout)?)
}

/// Asks again and again until there is an answer.
///
/// # Errors
///
/// If no answer comes in time, or the question fails.
pub async fn eventually<T>(
    what: &str,
    mut question: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(answer) = question().await? {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    bail!("waited {} s in vain: {what}", PATIENCE.as_secs())
}

/// A free port which no outgoing connection takes while its server is down; another one each time, and not
/// one that another test takes for a server which has yet to start.
///
/// # Errors
///
/// If every port that is tried is in use.
pub fn quiet_port() -> anyhow::Result<u16> {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    // Tests that start together are processes whose numbers are neighbours.
    let own = 20_000 + (std::process::id() % 1_250) as u16 * 8;
    let first = own + ASKED.fetch_add(1, Relaxed);
    (first..first + 2_000)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("there is a free port")
}
