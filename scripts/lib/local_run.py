"""Rookery's programs on this machine, as scripts need them: built, started together, asked, and
stopped in the right order."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = "main"
# What the programs take to compile from nothing: minutes of one core, and minutes however many cores there are.
CORE_MINUTES = 18
LEAST_MINUTES = 3
# The trainer's libtorch is here anyway, and with it a worker can compute in bf16, which some processors do faster.
WORKER_WITH_LIBTORCH = ("--features", "rookery-worker/torch")


# What ends a script: Ctrl-C, `kill`, and a terminal that closes.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text):
    # A terminal that was closed hears nothing, and there may be programs to stop.
    with contextlib.suppress(OSError):
        print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def fail(text):
    say(text)
    sys.exit(1)


class Stopped(Exception):
    """A program ended by itself."""


def interrupted_by_signals():
    """Lets SIGTERM and SIGHUP interrupt the script as Ctrl-C does, so that it stops its programs on the way out. Under
    nohup it goes on after SIGHUP."""
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def run_until_stopped(play, stop):
    """Plays until that ends or is interrupted, then stops, also after an error and undisturbed by further signals. The exit
    status: 1 if a program ended by itself or does not answer."""
    status = 0
    try:
        play()
    except KeyboardInterrupt:
        pass
    except (Stopped, OSError) as error:
        say(str(error))
        status = 1
    finally:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)
        stop()
    return status


class Programs:
    """Builds the programs, or takes them from a folder, and knows where they are."""

    NAMES = ("coordinator", "worker", "trainer")

    def __init__(self, folder=None):
        if folder:
            self.folder = folder.resolve()
            check_built(self.folder, *self.NAMES)
            return
        self.folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
        if not all(self.path(name).exists() for name in self.NAMES):
            libtorch = "" if (ROOT / ".libtorch/stamp").exists() else "530 MB of libtorch to download, then "
            say(f"to be built, once: {libtorch}{compiling()}, then the first games; a network is first promoted or "
                "rejected some minutes later")
        step([ROOT / "scripts/libtorch"])
        build()

    def path(self, name):
        return self.folder / f"rookery-{name}"


def check_built(folder, *names):
    """Ends the script unless a folder has these programs."""
    release = " --release" if folder.name == "release" else ""
    for name in names:
        if not (folder / f"rookery-{name}").exists():
            fail(f"there is no {folder}/rookery-{name}: run 'cargo build{release} --workspace --bins' first")


def compiling():
    """How long the programs take to compile from nothing, in words."""
    cores = len(os.sched_getaffinity(0))
    minutes = round(max(CORE_MINUTES / cores, LEAST_MINUTES))
    return f"about {minutes} minutes of compiling on {cores} core{'' if cores == 1 else 's'}"


def step(command):
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode != 0:
        fail(f"{command[0]} failed; its messages are above")


def build():
    """Builds the release programs. Where cargo has no terminal for its progress bar, a line says now and then how far
    it is."""
    say("building the programs; their own code comes last and takes longest")
    command = ["cargo", "build", "--release", *WORKER_WITH_LIBTORCH]
    if sys.stderr.isatty():
        return step(command)
    listed = subprocess.run(["cargo", "tree", *WORKER_WITH_LIBTORCH, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"],
                            cwd=ROOT, stdout=subprocess.PIPE, text=True)
    packages = len({line.removesuffix(" (*)") for line in listed.stdout.splitlines() if line})
    # One JSON object for each thing that is built, or found to be up to date.
    process = subprocess.Popen([*command, "--quiet", "--message-format", "json-render-diagnostics"],
                               cwd=ROOT, stdout=subprocess.PIPE, text=True)
    begin, done = time.monotonic(), set()
    reader = threading.Thread(target=lambda: done.update(map(package_of, process.stdout)), daemon=True)
    reader.start()
    while reader.join(30) or reader.is_alive():
        say(f"compiled {len(done - {None})} of {packages} packages in {(time.monotonic() - begin) / 60:.1f} minutes")
    if process.wait() != 0:
        fail("cargo build failed; its messages are above")


def package_of(line):
    """Of what package cargo says that a part is there."""
    return json.loads(line).get("package_id")


class LocalRun:
    """One run on this machine: its folder, a coordinator, a worker and a trainer, and what the
    coordinator says of it."""

    def __init__(self, folder, programs, params, port=None):
        self.dir = folder.resolve()
        self.dir.mkdir(parents=True, exist_ok=True)
        self.programs = programs
        self.params = params
        self.port = port or free_port(8080)
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes = {}

    def coordinator(self, *words):
        """Runs a command of the coordinator on the run's data and returns what it prints."""
        return self._output("coordinator", ["--data-dir", self.dir / "coordinator", *words])

    def trainer(self, *words):
        """Runs a command of the trainer and returns what it prints."""
        return self._output("trainer", words, self.token("trainer", "train", "operate"))

    def _output(self, program, words, token=None):
        command = [self.programs.path(program), *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(token))
        if done.returncode != 0:
            fail(f"rookery-{program} {' '.join(map(str, words))} failed; its message is above")
        return done.stdout

    def token(self, name, *scopes):
        """The token of a user of the coordinator, made once and kept in the folder."""
        kept = self.dir / f"{name}.token"
        if not kept.exists():
            words = [word for scope in scopes for word in ("--scope", scope)]
            # A start that was interrupted may have made the user without keeping the token.
            user = f"{name}-{secrets.token_hex(2)}"
            answer = json.loads(self.coordinator("user", "create", user, *words, "--json"))
            # So that a token that is there is whole.
            fresh = kept.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_text(answer["token"])
            fresh.rename(kept)
        return kept.read_text().strip()

    def prepare(self):
        """Makes ledger and run; whether the run is new."""
        self.coordinator("migrate")
        names = [run["name"] for run in json.loads(self.coordinator("run", "list", "--json"))]
        if RUN in names:
            return False
        self.coordinator("run", "create", RUN, "--params", self.params)
        return True

    def import_puzzles(self, file):
        """Gives the run puzzles of Lichess's database."""
        say("importing puzzles")
        sys.stderr.write(self.coordinator("puzzles", "import", "--run", RUN, file))

    def start(self, name, program, words, token=None, cores=None, variables=None):
        """Starts a program, on these cores only if they are given."""
        log = open(self.dir / f"{name}.log", "ab")
        pin = ["taskset", "--cpu-list", ",".join(map(str, cores))] if cores else []
        self.processes[name] = subprocess.Popen(
            [*pin, self.programs.path(program), *words],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            # With less priority than the trainer, a worker of the same cores would play only while that waits.
            env={"ROOKERY_PRIORITY": "unchanged", **environment(token), **(variables or {})},
            # Ctrl-C must reach the script only: it stops the programs in the right order.
            start_new_session=True,
        )

    def start_coordinator(self, *words, cores=None):
        serve = ["--data-dir", self.dir / "coordinator", "serve", "--listen", f"127.0.0.1:{self.port}"]
        self.start("coordinator", "coordinator", [*serve, *words], cores=cores)
        self.wait_ready()

    def start_trainer(self, *words, cores=None):
        folder = ["--server", self.url, "--run", RUN, "--dir", self.dir / "trainer"]
        self.start("trainer", "trainer", ["run", *folder, *words],
                   self.token("trainer", "train", "operate"), cores, {"ROOKERY_DEVICE": trainer_device()})

    def start_worker(self, *words, cores=None):
        folder = ["--server", self.url, "--dir", self.dir / "worker"]
        self.start("worker", "worker", ["run", *folder, *words],
                   self.token("volunteer", "contribute"), cores)

    def wait_ready(self):
        for _ in range(300):
            self.check_alive()
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        fail(f"the coordinator does not answer; see {self.dir / 'coordinator.log'}")

    def check_alive(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                log = self.dir / f"{name}.log"
                tail = log.read_text(errors="replace").splitlines()[-15:]
                raise Stopped(f"the {name} ended with status {process.returncode}; the end of {log}:\n"
                              + "\n".join(tail))

    def get(self, path):
        with urllib.request.urlopen(f"{self.url}/api/v1{path}", timeout=30) as answer:
            return json.load(answer)

    def state(self):
        run = next(run for run in self.get("/runs") if run["name"] == RUN)
        return run, self.get(f"/networks?run={RUN}"), self.get(f"/matches?run={RUN}")

    def stop_players(self):
        """Stops worker and trainer gently: what they have finished is handed in."""
        for name in ("worker", "trainer"):
            self.interrupt(name, signal.SIGINT)
        for name, patience in (("worker", 90), ("trainer", 60)):
            self.wait(name, patience)

    def stop_coordinator(self):
        self.interrupt("coordinator", signal.SIGTERM)
        self.wait("coordinator", 30)

    def interrupt(self, name, number):
        process = self.processes.get(name)
        if process and process.poll() is None:
            process.send_signal(number)

    def wait(self, name, patience):
        process = self.processes.get(name)
        if not process:
            return
        # A second interrupt makes worker and trainer stop at once, losing nothing that is finished.
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                patience = 20
        process.wait()


def environment(token):
    """This program's variables, and a token."""
    return {**os.environ, **({"ROOKERY_TOKEN": token} if token else {})}


def trainer_device():
    """The device that this program's variables name, where libtorch can train on it: only workers know the others."""
    named = os.environ.get("ROOKERY_DEVICE", "auto")
    return named if named.split(":")[0] in ("cpu", "cuda", "mps") else "auto"


def free_port(wanted):
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return probe.getsockname()[1]
            except OSError:
                continue
    fail("no free port")
