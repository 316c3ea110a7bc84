#!/usr/bin/env python3
"""Ends a script of scripts/lib/local_run.py in every way, and looks whether the programs that it started are gone.

Programs stand in for Rookery's that do nothing until they are stopped. Needs nothing else.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A run with a worker and a trainer. It says so, and fails or repeats what it is told.
SCRIPT = """
import sys
from pathlib import Path
from local_run import LocalRun, Programs, Stopped, fail, interrupted_by_signals, run_until_stopped

folder, way = Path(sys.argv[1]), sys.argv[2]
interrupted_by_signals()
run = LocalRun(folder / way, Programs(folder), None)

def play():
    for name in ("coordinator", "trainer", "worker"):
        run.start(name, name, [])
    print(*(process.pid for process in run.processes.values()), flush=True)
    if way == "fails":
        fail("no network")
    if way == "unreachable":
        raise OSError("no coordinator")
    if way == "stopped":
        raise Stopped("the trainer ended")
    for line in sys.stdin:
        print(line, end="", flush=True)

def stop():
    run.stop_players()
    run.stop_coordinator()

sys.exit(run_until_stopped(play, stop))
"""
STAND_IN = """#!/bin/sh
exec sleep 1000
"""
# How it ends, and with which status.
WAYS = {"SIGINT": 0, "SIGTERM": 0, "SIGHUP": 0, "fails": 1, "unreachable": 1, "stopped": 1}


def alive(pid):
    """Whether there is such a process; one that nobody has waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def heed_all_but(ignored):
    """Heeds signals that whoever runs this may ignore, as nohup does, but for one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)


def end(folder, way, ignored=None):
    """Runs the script and ends it, after a signal that it ignores; its status, and which of its programs are alive."""
    script = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, folder, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env={"PYTHONPATH": str(ROOT / "scripts/lib"), "PATH": "/usr/bin:/bin"},
        preexec_fn=lambda: heed_all_but(ignored),
    )
    pids = list(map(int, script.stdout.readline().split()))
    assert len(pids) == 3, pids
    try:
        if ignored:
            script.send_signal(ignored)
            print("goes on", file=script.stdin, flush=True)
            assert script.stdout.readline() == "goes on\n", f"it ended by {ignored}, which it inherited as ignored"
        if way.startswith("SIG"):
            script.send_signal(signal.Signals[way])
        status = script.wait(timeout=300)
        return status, [pid for pid in pids if alive(pid)]
    finally:
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)


def main():
    with tempfile.TemporaryDirectory(prefix="rookery-stops-") as temporary:
        folder = Path(temporary)
        for name in ("coordinator", "trainer", "worker"):
            program = folder / f"rookery-{name}"
            program.write_text(STAND_IN)
            program.chmod(0o755)
        for way, expected in WAYS.items():
            status, left = end(folder, way)
            if left or status != expected:
                sys.exit(f"check-stops: after {way} the status is {status}, and {len(left)} of 3 programs are alive")
        # As under nohup.
        end(folder, "SIGTERM", ignored=signal.SIGHUP)


if __name__ == "__main__":
    main()
