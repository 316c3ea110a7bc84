"""Honest workers of several kinds of numbers under a coordinator that is killed: `scripts/mixed-fleet`."""

import argparse
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from local_run import ROOT, RUN, LocalRun, Programs, environment, fail, interrupted_by_signals, run_until_stopped, say

HELP = """
Plays two runs with real workers, each on its own device and precision, and an auditor of the operator's
in 32 bits on the processor. One run searches by Gumbel and has puzzles, the other by PUCT with forced
playouts and playout caps. The coordinator is killed again and again, as a power cut would, and started again.

At the end it prints as JSON what was accepted, refused and audited, how far audits of each pair of
devices were apart, and what `ledger check` says. It fails if a chunk was refused or an audit failed.
"""
PUCT = """
[selfplay]
ply_limit = 120
full_search_share = 0.5
fast_visits = 8
opening_plies = 4
resign = { threshold = -0.6 }

[selfplay.search]
visits = 32
forced_playouts = { k = 2.0 }

[selfplay.temperature]
start = 1.0
end = 0.4
plies = 40

[matches]
ply_limit = 120

[matches.search]
visits = 16

[scheduling]
puzzle_share = 0.0
selfplay_games = 16
match_games = 8
job_seconds = 60
lease_seconds = 120
"""


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/mixed-fleet", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30, metavar="N", help="Play for N minutes. [default: 30]")
    parser.add_argument(
        "--workers", default="cpu/f32,gpu:0/f32,gpu:0/f16", metavar="LIST",
        help="Devices with precisions, one worker each; cpu/bf16 needs a worker with libtorch. "
        "[default: cpu/f32,gpu:0/f32,gpu:0/f16]",
    )
    parser.add_argument("--kill-every", type=float, default=60, metavar="S",
                        help="Kill the coordinator every S seconds; 0 never does. [default: 60]")
    parser.add_argument("--network", default="4x32", metavar="SHAPE",
                        help="Blocks x filters of the networks. [default: 4x32]")
    parser.add_argument("--bin", type=Path, metavar="DIR",
                        help="Take the programs from this folder. [default: build them]")
    parser.add_argument("--dir", type=Path, default=ROOT / "mixed-fleet", metavar="D",
                        help="Keep everything in this folder, which must be new. [default: mixed-fleet]")
    return parser.parse_args()


class Fleet(LocalRun):
    """Two runs, their workers and an auditor."""

    RUNS = (RUN, "puct")

    def __init__(self, options):
        if options.dir.exists():
            fail(f"{options.dir} exists; give a new folder by --dir")
        super().__init__(options.dir, Programs(options.bin), ROOT / "deploy/runs/demo.toml")
        self.options = options
        self.kills = 0

    def prepare(self):
        super().prepare()
        params = self.dir / "puct.toml"
        params.write_text(PUCT)
        self.coordinator("run", "create", "puct", "--params", params)

    def start_coordinator(self):
        super().start_coordinator("--openings", ROOT / "deploy/runs/odds.epd")

    def submit_networks(self):
        """Each run's first network, which is best at once, and a candidate that plays for its place."""
        for seed in (1, 2):
            network = self.dir / f"{seed}.safetensors"
            self.trainer("init", self.options.network, "--seed", str(seed), "--output", network)
            for run in self.RUNS:
                self.trainer("submit", network, "--server", self.url, "--run", run)

    def start_workers(self):
        for device in self.options.workers.split(","):
            for run in self.RUNS:
                self.join(f"{device.replace('/', '-').replace(':', '')}-{run}", device, run)
        for run in self.RUNS:
            self.join(f"auditor-{run}", "cpu/f32", run, "audit")

    def join(self, name, device, run, *scopes):
        """Starts a worker with an account of its own."""
        kind, precision = device.split("/")
        # A software adapter is slow: few games at once, so that they end.
        games = "32" if kind == "cpu" else "4"
        words = ["run", "--server", self.url, "--run", run, "--dir", self.dir / name, "--worker", name,
                 "--device", kind, "--precision", precision, "--threads", "1", "--games", games]
        self.start(name, "worker", words, self.token(name, "contribute", *scopes))

    def kill_coordinator(self):
        process = self.processes["coordinator"]
        process.kill()
        process.wait()
        self.kills += 1
        self.start_coordinator()

    def watch(self):
        end = time.monotonic() + self.options.minutes * 60
        every = self.options.kill_every or float("inf")
        kill, shown = time.monotonic() + every, 0.0
        while time.monotonic() < end:
            self.check_alive()
            if time.monotonic() >= kill:
                self.kill_coordinator()
                kill = time.monotonic() + every
            if time.monotonic() - shown >= 60:
                shown = time.monotonic()
                runs = self.get("/runs")
                say(f"{sum(r['games'] for r in runs)} games, {sum(r['positions'] for r in runs)} positions, "
                    f"coordinator killed {self.kills} times")
            time.sleep(0.5)

    def play(self):
        self.prepare()
        self.start_coordinator()
        self.submit_networks()
        self.start_workers()
        say(f"running; look at {self.url} (stop with Ctrl-C)")
        self.watch()

    def stop(self):
        say("stopping: workers hand in the games they have finished")
        try:
            self.stop_workers()
        finally:
            self.stop_coordinator()

    def stop_workers(self):
        names = [name for name in self.processes if name != "coordinator"]
        # The first one finishes the games in hand, the second one stops at once.
        for patience in (60, 60):
            for name in names:
                self.interrupt(name, signal.SIGINT)
            end = time.monotonic() + patience
            for name in names:
                try:
                    self.processes[name].wait(max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    continue
        for name in names:
            self.wait(name, 1)

    def report(self):
        ledger = sqlite3.connect(f"file:{self.dir / 'coordinator/ledger.db'}?mode=ro", uri=True)
        chunks, games, positions = ledger.execute("SELECT count(*), sum(games), sum(positions) FROM chunks").fetchone()
        states = dict(ledger.execute("SELECT state, count(*) FROM audits GROUP BY state"))
        check = subprocess.run(
            [self.programs.path("coordinator"), "--data-dir", self.dir / "coordinator", "ledger", "check", "--json"],
            stdout=subprocess.PIPE, text=True, env=environment(None))
        return {
            "minutes": self.options.minutes, "kills": self.kills, "chunks": chunks, "games": games,
            "positions": positions, "backends": dict(ledger.execute("SELECT backend, count(*) FROM chunks GROUP BY 1")),
            "refused": self.refusals(), "audits": states, "distances": self.distances(ledger),
            "ledger_check": json.loads(check.stdout), "ledger_consistent": check.returncode == 0,
        }

    def refusals(self):
        """Of each worker, what its log says of refused chunks."""
        logs = {name: (self.dir / f"{name}.log").read_text(errors="replace") for name in self.processes}
        found = {name: re.findall(r"a chunk was refused.*", log) for name, log in logs.items()}
        return {name: lines for name, lines in found.items() if lines}

    def distances(self, ledger):
        """Of each pair of backends: audits, positions, and of each distance the mean and the largest of an audit."""
        rows = ledger.execute("""
            SELECT author.backend, auditor.backend, o.plies, o.policy, o.visits, o.value, o.best, o.choice
            FROM audit_opinions o
            JOIN audits a ON a.id = o.audit_id
            JOIN chunks author ON author.sequence = a.chunk
            JOIN chunks auditor
              ON auditor.sequence = (SELECT min(p.chunk) FROM audit_parts p WHERE p.job_id = o.job_id)
            WHERE o.plies > 0""").fetchall()
        pairs = {}
        for author, auditor, plies, *sums in rows:
            pairs.setdefault(f"{author} audited by {auditor}", []).append((plies, sums))
        names = ("policy", "visits", "value", "best", "choice")
        return {
            pair: {
                "audits": len(audits), "positions": (total := sum(plies for plies, _ in audits)),
                **{name: {"mean": round(sum(sums[i] * plies for plies, sums in audits) / total, 5),
                          "largest": round(max(sums[i] for _, sums in audits), 5)}
                   for i, name in enumerate(names)},
            }
            for pair, audits in sorted(pairs.items())
        }


def main():
    options = arguments()
    interrupted_by_signals()
    fleet = Fleet(options)
    status = run_until_stopped(fleet.play, fleet.stop)
    report = fleet.report()
    print(json.dumps(report, indent=2))
    clean = not report["refused"] and not report["audits"].get("failed") and report["ledger_consistent"]
    sys.exit(status or (0 if clean else 1))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
