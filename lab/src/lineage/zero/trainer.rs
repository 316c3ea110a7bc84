//! `rookery-trainer` as another program: it trains with libtorch, which the lab does without.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use rookery_uci::locate;

/// The program's name.
const NAME: &str = "rookery-trainer";

/// The program, and the flags that every training has.
#[derive(Debug)]
pub struct TrainerProgram {
    path: PathBuf,
    /// Its device.
    device: String,
    threads: Option<usize>,
}

impl TrainerProgram {
    /// The program at a path, or else the one beside this one, or else that of the `PATH`.
    pub fn find(path: Option<&Path>, device: &str, threads: Option<usize>) -> Self {
        let beside = || {
            let own = std::env::current_exe().ok()?;
            let path = own.with_file_name(NAME);
            path.is_file().then_some(path)
        };
        let path = path.map(Path::to_owned).or_else(beside);
        Self {
            path: path.unwrap_or_else(|| locate(Path::new(NAME))),
            device: device.to_owned(),
            threads,
        }
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// If the program does not start, or fails; it has said why on standard error.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        command: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<()> {
        let shown = self.path.display();
        let status = Command::new(&self.path)
            .args(["--log", "warn", command])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .with_context(|| {
                format!("RK-0811: cannot start {shown}; name rookery-trainer with --trainer")
            })?;
        anyhow::ensure!(
            status.success(),
            "{shown} {command} failed ({status}); its message is above"
        );
        Ok(())
    }

    /// Runs a command that computes.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn compute<'a>(
        &self,
        command: &str,
        arguments: impl IntoIterator<Item = &'a OsStr>,
    ) -> anyhow::Result<()> {
        let threads = self.threads.map(|threads| threads.to_string());
        let mut all = vec![OsStr::new("--device"), OsStr::new(&self.device)];
        if let Some(threads) = &threads {
            all.extend([OsStr::new("--threads"), OsStr::new(threads)]);
        }
        for argument in arguments {
            all.push(argument);
        }
        self.run(command, all)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_gets_device_and_threads_and_its_failure_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trainer");
        let said = dir.path().join("said");
        let script = format!(
            "#!/bin/sh\necho \"$@\" > '{}'\n[ \"$3\" = train ]\n",
            said.display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let trainer = TrainerProgram::find(Some(&path), "cpu", Some(2));
        trainer
            .compute("train", ["--steps".as_ref(), "5".as_ref()])
            .unwrap();
        let line = std::fs::read_to_string(&said).unwrap();
        assert_eq!(
            line,
            "--log warn train --device cpu --threads 2 --steps 5\n"
        );
        let error = trainer.run("init", ["x"]).unwrap_err().to_string();
        assert!(error.contains("trainer init failed"), "{error}");
        let missing = TrainerProgram::find(Some(Path::new("/no/such/program")), "cpu", None);
        let error = missing.run("init", ["x"]).unwrap_err().to_string();
        assert!(error.contains("--trainer"), "{error}");
    }
}
