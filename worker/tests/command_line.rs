//! The program itself: what it shows of secrets, and who may read what it makes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::CommandFactory as _;
use rookery_backend_gpu::adapters;
use rookery_cli::testing::{check_help, check_refusals, said};
use rookery_worker::cli::Cli;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rookery-worker");

/// The variables whose values `--help` may show: they hold no secret. A new one is `hide_env_values`, or stands here.
const HARMLESS: &[&str] = &[
    "ROOKERY_ADJUDICATOR",
    "ROOKERY_CHUNK_MINUTES",
    "ROOKERY_SHARE_LIVE",
    "ROOKERY_CONFIG",
    "ROOKERY_DEVICE",
    "ROOKERY_DEVICE_LISTEN",
    "ROOKERY_DEVICE_CA",
    "ROOKERY_DEVICE_TLS_CERT",
    "ROOKERY_DEVICE_TLS_KEY",
    "ROOKERY_DEVICE_TOKEN_FILE",
    "ROOKERY_GAMES",
    "ROOKERY_GPU_MATRICES",
    "ROOKERY_GPU_SHARE",
    "ROOKERY_LOG",
    "ROOKERY_LOG_FORMAT",
    "ROOKERY_NAME",
    "ROOKERY_PRECISION",
    "ROOKERY_PRIORITY",
    "ROOKERY_RUN",
    "ROOKERY_RUN_KEY",
    "ROOKERY_SYZYGY",
    "ROOKERY_THREADS",
    "ROOKERY_TOKEN_FILE",
    "ROOKERY_WORKER",
    "ROOKERY_WORKER_DIR",
];

/// Variables that may hold a secret.
const SECRET: &[(&str, &str)] = &[
    ("ROOKERY_SERVER", "http://ann:SECRET@x"),
    ("ROOKERY_TOKEN", "rk_SECRET"),
    ("ROOKERY_INVITATION", "ri_SECRET"),
];

#[test]
fn help_shows_only_variables_without_secrets() {
    check_help(PROGRAM, &Cli::command(), HARMLESS, SECRET);
}

#[test]
fn a_refused_value_is_not_repeated() {
    let lines = [
        "run --server http://ann:SECRET@x",
        "run --server ann:SECRET@x",
        "run --server http://x/?token=SECRET",
        "setup --yes --server http://ann:SECRET@x",
        "bench --server https://ann:SECRET@:x",
        "run --server http://127.0.0.1:1 --token rk_SECRET\u{e4}",
        "run rk_SECRET",
        "--http://ann:SECRET@x",
    ];
    check_refusals(PROGRAM, &lines);
}

/// What the worker makes is readable by its user alone, whatever the umask.
#[cfg(unix)]
#[test]
fn what_is_made_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // Nothing listens there: the worker waits for its coordinator.
    let script = "umask 022; exec \"$0\" run --server http://127.0.0.1:1 --name ann --dir \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, PROGRAM]).arg(&data);
    let mut worker = command.stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !data.join("registering").exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "the worker has not begun"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    for name in ["", "spool", "registering"] {
        let mode = data.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
}

/// Without certificates on the system, an address of http works, and one of https says what is missing.
#[cfg(target_os = "linux")]
#[test]
fn certificates_are_needed_for_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let without = |server: &str| {
        let mut command = Command::new(PROGRAM);
        command
            .args(["run", "--device", "cpu", "--server", server, "--dir"])
            .arg(folder.path())
            .env("SSL_CERT_FILE", folder.path().join("none"))
            .env("SSL_CERT_DIR", folder.path().join("none"));
        command
    };
    let output = without("https://127.0.0.1:1").output().unwrap();
    let told = said(&output);
    assert!(told.contains("RK-0113"), "{told}");
    assert!(told.contains("ca-certificates"), "{told}");

    // Nothing listens there: the worker says so, and tries again until it is stopped.
    let mut plain = without("http://127.0.0.1:1");
    let mut worker = plain.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(worker.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains("RK-0101")));
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// An engine opens its device again with every network.
#[test]
fn a_software_adapter_is_told_from_a_card_once() {
    let Some(software) = adapters().into_iter().find(|one| one.is_software) else {
        return println!("NOT RUN: there is no software adapter");
    };
    let (folder, device) = (
        tempfile::tempdir().unwrap(),
        format!("gpu:{}", software.number),
    );
    let log = folder.path().join("log");
    let mut command = Command::new(PROGRAM);
    command
        .args(["uci", "--network", "1x8", "--precision", "f32"])
        .args(["--device", &device, "--dir"])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap());
    let mut engine = command.spawn().unwrap();
    let mut orders = engine.stdin.take().unwrap();
    let mut lines = BufReader::new(engine.stdout.take().unwrap()).lines();
    for network in ["1x8", "1x16"] {
        write!(orders, "setoption name Network value {network}\nisready\n").unwrap();
        // An error would stand before it.
        assert_eq!(lines.next().unwrap().unwrap(), "readyok");
    }
    writeln!(orders, "quit").unwrap();
    engine.wait().unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("RK-0320").count(), 1, "{log}");
}
