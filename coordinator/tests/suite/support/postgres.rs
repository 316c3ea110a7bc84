//! A PostgreSQL server for tests, from the programs that Debian's package `postgresql` installs.
//!
//! The first test process that needs it starts it in a folder under the system's temporary one;
//! others find it there. Every process holds a shared lock while it uses it. A small process that
//! outlives the tests waits until nobody holds the lock any more, stops the server and removes the
//! folder: so it goes away also when tests are killed.

use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Settings of a server whose data nobody needs after a power cut.
const SETTINGS: &str = "listen_addresses = ''\nmax_connections = 300\nfsync = off\n\
                        full_page_writes = off\nshared_buffers = 64MB\n";

/// Waits for the users of a folder ($1) to be gone, then stops the server by the command that
/// follows and removes the folder.
const WATCH: &str = "watch() {
    folder=$1; shift
    while ! flock --exclusive --nonblock \"$folder/users\" \"$@\"; do
        sleep 3
        [ -d \"$folder/data\" ] || exit
    done
    rm -rf \"$folder/data\"
}
watch \"$@\" &";

/// The server, used by this process until it ends.
struct Server {
    folder: PathBuf,
    _used: File,
}

static SERVER: OnceLock<Server> = OnceLock::new();

/// The URL of a database of this name on the server, which is started if it does not run.
pub(crate) fn url(database: &str) -> String {
    let server = SERVER.get_or_init(Server::start);
    format!(
        "postgres:///{database}?host={}&user=postgres",
        server.folder.display()
    )
}

/// A program of PostgreSQL, to be run by a user that is not root.
pub(crate) fn program(name: &str) -> Command {
    let path = path_of(name);
    let root = Command::new("id").arg("-u").output();
    if root.is_ok_and(|id| id.stdout == b"0\n") {
        let mut command = Command::new("runuser");
        command.args(["-u", "nobody", "--"]).arg(path);
        command
    } else {
        Command::new(path)
    }
}

/// Where a program is: on the path, or where Debian keeps it.
fn path_of(name: &str) -> PathBuf {
    let named = std::env::var_os("PATH").unwrap_or_default();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = installed
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort_by_key(|path| std::cmp::Reverse(path.clone()));
    let missing = "the tests need PostgreSQL's programs: install the package `postgresql`";
    std::env::split_paths(&named)
        .chain(versions)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .expect(missing)
}

/// Runs a command to its end; what it says is shown if it fails.
fn run(command: &mut Command) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let done = command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.reopen().unwrap())
        .stderr(log.reopen().unwrap())
        .status();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = fs::read_to_string(log.path()).unwrap_or_default();
    assert!(done.success(), "{command:?} failed:\n{said}");
}

impl Server {
    fn start() -> Self {
        let mut name = DefaultHasher::new();
        env!("CARGO_TARGET_TMPDIR").hash(&mut name);
        let name = format!("rookery-postgres-{:x}", name.finish());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        let used = File::create(folder.join("users")).unwrap();
        used.lock_shared().unwrap();
        let starting = File::create(folder.join("starting")).unwrap();
        starting.lock().unwrap();
        if UnixStream::connect(folder.join(".s.PGSQL.5432")).is_err() {
            start(&folder);
            watch(&folder);
        }
        Self {
            folder,
            _used: used,
        }
    }
}

fn start(folder: &Path) {
    let data = folder.join("data");
    if data.exists() {
        fs::remove_dir_all(&data).unwrap();
    }
    let encoding = ["--encoding=UTF8", "--locale=C", "--no-sync"];
    run(program("initdb")
        .arg("--pgdata")
        .arg(&data)
        .args(["--username=postgres", "--auth=trust"])
        .args(encoding));
    let settings = format!(
        "{SETTINGS}unix_socket_directories = '{}'\n",
        folder.display()
    );
    let file = data.join("postgresql.auto.conf");
    fs::write(file, settings).unwrap();
    run(program("pg_ctl")
        .arg("--pgdata")
        .arg(&data)
        .arg("--log")
        .arg(data.join("log"))
        .args(["--wait", "start"]));
}

fn watch(folder: &Path) {
    let stop = {
        let mut stop = program("pg_ctl");
        stop.arg("--pgdata").arg(folder.join("data"));
        stop.args(["--mode", "immediate", "stop"]);
        stop
    };
    let watching = Command::new("sh")
        .args(["-c", WATCH, "sh"])
        .arg(folder)
        .arg(stop.get_program())
        .args(stop.get_args())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status();
    assert!(watching.unwrap().success());
}
