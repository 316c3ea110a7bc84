//! A PostgreSQL server of its own, from the programs that Debian's package `postgresql` installs.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User};
use tempfile::TempDir;

use crate::programs::quiet_port;

/// Who runs the server where the test is run by root, which PostgreSQL refuses.
const USER: &str = "nobody";
/// The programs that are needed; all lie in one folder.
const PROGRAMS: [&str; 8] = [
    "initdb",
    "pg_ctl",
    "postgres",
    "createdb",
    "psql",
    "pg_dump",
    "pg_restore",
    "vacuumdb",
];
/// The state of a zombie.
const GONE: char = 'Z';
/// Between two looks at a process.
const PAUSE: Duration = Duration::from_millis(5);
/// The database that is made.
const DATABASE: &str = "rookery";

/// A server, stopped and removed when it is dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    port: u16,
}

impl Postgres {
    /// Starts a server with an empty database, which syncs to disk as servers do. Its files lie
    /// in `folder`, or in the system's temporary one.
    ///
    /// # Errors
    ///
    /// If PostgreSQL is not installed, or does not start.
    pub fn start(folder: Option<&Path>) -> anyhow::Result<Self> {
        let folder = match folder {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        };
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        if Uid::effective().is_root() {
            let user = User::from_name(USER)?.context("there is a user `nobody`")?;
            chown(
                folder.path(),
                Some(user.uid.as_raw()),
                Some(user.gid.as_raw()),
            )?;
        }
        let server = Self {
            folder,
            port: quiet_port()?,
        };
        let data = server.data();
        run(program("initdb")?.arg("--pgdata").arg(&data).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]))?;
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\n\
             max_connections = 200\n",
            server.port,
            server.folder.path().display()
        );
        let file = data.join("rookery.conf");
        fs::write(&file, settings)?;
        let include = format!("include = '{}'\n", file.display());
        let all = fs::read_to_string(data.join("postgresql.conf"))? + &include;
        fs::write(data.join("postgresql.conf"), all)?;
        server.run()?;
        run(program("createdb")?
            .arg("--host")
            .arg(server.folder.path())
            .arg("--port")
            .arg(server.port.to_string())
            .args(["--username=postgres", DATABASE]))?;
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The database's address.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!(
            "postgres:///{DATABASE}?host={folder}&port={}&user=postgres",
            self.port
        )
    }

    /// Where it listens, too.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Makes room for the log of changes: some 16 MiB, so that a full disk stops no server before that.
    ///
    /// # Errors
    ///
    /// If the server does not.
    pub fn make_room_for_log(&self) -> anyhow::Result<()> {
        for statement in ["SELECT pg_switch_wal()", "CHECKPOINT"] {
            let mut psql = program("psql")?;
            run(psql.args(["--command", statement, &self.url()]))?;
        }
        Ok(())
    }

    /// Backs the database up, as the operator's guide says.
    ///
    /// # Errors
    ///
    /// If it cannot be.
    pub fn back_up(&self) -> anyhow::Result<PathBuf> {
        let file = self.folder.path().join("ledger.dump");
        let mut dump = program("pg_dump")?;
        dump.args(["--format=custom", "--file"]).arg(&file);
        run(dump.arg(self.url()))?;
        Ok(file)
    }

    /// Restores a backup into the database, which is empty, as the operator's guide says.
    ///
    /// # Errors
    ///
    /// If it cannot be.
    pub fn restore(&self, backup: &Path) -> anyhow::Result<()> {
        let url = self.url();
        // Its user may read nothing but this folder.
        let file = self.folder.path().join("ledger.dump");
        fs::copy(backup, &file)?;
        let mut restore = program("pg_restore")?;
        run(restore.args(["--no-owner", "--dbname", &url]).arg(&file))?;
        run(program("vacuumdb")?.args(["--analyze-only", "--dbname", &url]))
    }

    /// Starts the server again after it was killed.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn run(&self) -> anyhow::Result<()> {
        let log = self.folder.path().join("log");
        let started = run(program("pg_ctl")?
            .arg("--pgdata")
            .arg(self.data())
            .arg("--log")
            .arg(&log)
            .args(["--wait", "--timeout", "240", "start"]));
        started.with_context(|| fs::read_to_string(&log).unwrap_or_default())
    }

    /// Kills the server as a power cut would, and waits until its last process is gone.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn kill(&self) -> anyhow::Result<()> {
        let file = fs::read_to_string(self.data().join("postmaster.pid"))?;
        let pid: i32 = file.lines().next().unwrap_or_default().trim().parse()?;
        // Once the first process is stopped, it makes no more of them.
        kill(Pid::from_raw(pid), Signal::SIGSTOP)?;
        while !matches!(state(pid), 'T' | GONE) {
            std::thread::sleep(PAUSE);
        }
        let mut all = children(pid)?;
        all.push(pid);
        for pid in &all {
            // A process that ended by itself meanwhile is as good.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        for pid in all {
            while state(pid) != GONE {
                std::thread::sleep(PAUSE);
            }
        }
        // A dead process keeps its number until its parent has looked at it, and the server would
        // take that for a running one: the locks go, as they would with the machine.
        let socket = format!(".s.PGSQL.{}.lock", self.port);
        fs::remove_file(self.folder.path().join(socket))?;
        fs::remove_file(self.data().join("postmaster.pid"))?;
        Ok(())
    }
}

/// The state of a process, as the system writes it: that of a zombie also where there is none.
fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.unwrap_or(GONE)
}

fn children(parent: i32) -> anyhow::Result<Vec<i32>> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
    Ok(list
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect())
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A server that was killed needs no stopping.
        let _ = program("pg_ctl").map(|mut stop| {
            stop.arg("--pgdata").arg(self.data());
            run(stop.args(["--mode", "immediate", "stop"]))
        });
    }
}

/// A program of PostgreSQL, to be run by a user that is not root.
///
/// # Errors
///
/// If PostgreSQL is not installed.
pub fn program(name: &str) -> anyhow::Result<Command> {
    let path = folder_of_programs()?.join(name);
    if !Uid::effective().is_root() {
        return Ok(Command::new(path));
    }
    let mut command = Command::new("runuser");
    command.args(["-u", USER, "--"]).arg(path);
    Ok(command)
}

fn folder_of_programs() -> anyhow::Result<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = installed
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    std::env::split_paths(&on_path)
        .chain(versions)
        .find(|folder| PROGRAMS.iter().all(|name| folder.join(name).is_file()))
        .context("PostgreSQL's initdb is missing: install the package `postgresql`")
}

/// Runs a command to its end. What it says goes to a file: a server that it leaves behind would
/// keep a pipe open.
///
/// # Errors
///
/// If it does not start, or fails; the error shows what it said.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let log = tempfile::NamedTempFile::new()?;
    let done = command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.reopen()?)
        .stderr(log.reopen()?)
        .status()
        .with_context(|| format!("{command:?} did not start"))?;
    let said = fs::read_to_string(log.path()).unwrap_or_default();
    ensure!(done.success(), "{command:?} failed:\n{said}");
    Ok(())
}
