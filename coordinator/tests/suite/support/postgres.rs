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

use rookery_tests::postgres::{program, run};

/// Settings of a server whose data nobody needs after a power cut.
const SETTINGS: &str = "listen_addresses = ''\nmax_connections = 300\nfsync = off\n\
                        full_page_writes = off\nshared_buffers = 64MB\n";

/// Waits for the users of a folder ($1) to be gone, then stops the server by the command that
/// follows and removes its data, before the next user starts another.
const WATCH: &str = "watch() {
    folder=$1; shift
    while ! flock --exclusive --nonblock \"$folder/users\" \\
        sh -c 'data=$1; shift; \"$@\" && rm -rf \"$data\"' sh \"$folder/data\" \"$@\"; do
        sleep 3
        [ -d \"$folder/data\" ] || exit
    done
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
    let mut initdb = program("initdb").unwrap();
    initdb.arg("--pgdata").arg(&data);
    run(initdb
        .args(["--username=postgres", "--auth=trust"])
        .args(encoding))
    .unwrap();
    let settings = format!(
        "{SETTINGS}unix_socket_directories = '{}'\n",
        folder.display()
    );
    let file = data.join("postgresql.auto.conf");
    fs::write(file, settings).unwrap();
    let mut pg_ctl = program("pg_ctl").unwrap();
    pg_ctl.arg("--pgdata").arg(&data);
    pg_ctl.arg("--log").arg(data.join("log"));
    run(pg_ctl.args(["--wait", "--timeout", "240", "start"])).unwrap();
}

fn watch(folder: &Path) {
    let stop = {
        let mut stop = program("pg_ctl").unwrap();
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
