"""Self-play and evaluations a second here and in lc0. `scripts/bench-lc0 --help` says more."""

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from local_run import check_built  # noqa: E402

# What lc0's onednn backend can be told that may pay on a processor: numbers of 16 or 32 bits, one
# evaluation at a time with all cores, or those of several games gathered to larger batches.
BACKENDS = ";".join([
    "onednn:fp16=false,threads={threads}",
    "onednn:fp16=true,winograd=false,threads={threads}",
    "multiplexing:backend=onednn,max_batch=128,threads=1,(fp16=false)",
    "multiplexing:backend=onednn,max_batch=128,threads=1,(fp16=true,winograd=false)",
])

# Every move is searched from nothing by both.
PARAMS = "[selfplay]\nreuse_tree = false\n"


# Searched one after the other as an engine does: an opening, a middlegame, an ending.
SEARCHED = [
    "startpos",
    "fen r1bq1rk1/pp2ppbp/2np1np1/8/3NP3/2N1BP2/PPPQ2PP/R3KB1R w KQ - 3 9",
    "fen 8/5k2/1p1r2p1/p1p2p1p/P1P2P1P/1P2R1P1/5K2/8 w - - 4 41",
]


def uci_speed(command, seconds, environment=None):
    """Nodes a second of a UCI engine, the mean over the positions; none if it ends or refuses."""
    engine = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, env=environment)

    def ask(answer, *lines):
        engine.stdin.write("".join(f"{line}\n" for line in lines))
        engine.stdin.flush()
        heard = list(itertools.takewhile(lambda line: not line.startswith(answer), engine.stdout))
        return [line.split() for line in heard]

    speeds = []
    try:
        ask("uciok", "uci")
        # The first search is for the device to prepare.
        for turn, position in enumerate(["startpos", *SEARCHED]):
            ask("readyok", "ucinewgame", f"position {position}", "isready")
            begin = time.monotonic()
            heard = ask("bestmove", f"go movetime {1000 * seconds if turn else 500}")
            nodes = [int(words[words.index("nodes") + 1]) for words in heard if "nodes" in words]
            if not nodes:
                return None
            speeds.append(nodes[-1] / (time.monotonic() - begin))
        ask("", "quit")
    except BrokenPipeError:
        return None
    finally:
        engine.kill()
        engine.wait()
    return statistics.mean(speeds[1:])


# A line of a measurement: until lc0 0.32 in words, from 0.33 on a row of a table that begins with the batch size and
# the mean speed.
BARE_SPEED = re.compile(r"throughput ([0-9.]+)|^ *[0-9]+, *([0-9.]+),", re.MULTILINE)


def bare_speeds(printed):
    """Evaluations a second of each batch size, as lc0's backendbench prints them.

    >>> bare_speeds("Benchmark batch size 64 with inference average time 31.9ms - throughput 2006.2 nps.")
    [2006.2]
    >>> bare_speeds("size, mean nps, mean ms,   sdev,\\n  64,     2509,   25.51, 0.4312, 0.0169,    2561")
    [2509.0]
    """
    return [float(old or new) for old, new in BARE_SPEED.findall(printed)]


class Ours:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.network = folder / "network.safetensors"
        self.params = folder / "params.toml"
        self.params.write_text(PARAMS)
        self.run("trainer", "import", options.network, "--output", self.network)

    def run(self, name, *words):
        program = self.options.bin / f"rookery-{name}"
        done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"bench-lc0: {program.name} {words[0]} failed; its message is above")
        return done.stdout

    def measure(self, precision):
        """Bare evaluations and positions of self-play a second."""
        answer = json.loads(self.run(
            "worker", "bench", "--device", "cpu", "--network", self.network, "--precision", precision, "--threads",
            self.options.threads, "--batches", self.options.batches, "--params", self.params, "--visits",
            self.options.visits, "--seconds", self.options.seconds, "--dir", self.folder, "--json",
        ))
        return max(row["evals_per_s"] for row in answer["bare"]), answer["selfplay"]["positions_per_s"]


    def search(self, precision):
        """Nodes a second of one search as a UCI engine."""
        return uci_speed([self.options.bin / "rookery-worker", "uci", "--device", "cpu", "--network", self.network,
                          "--precision", precision, "--threads", self.options.threads], self.options.search_seconds)


class Lc0:
    def __init__(self, options, folder):
        self.options = options
        # It writes its training data below HOME.
        self.environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder)}

    def start(self, mode, backend, *words):
        name, _, settings = backend.partition(":")
        command = [self.options.lc0, mode, "-w", self.options.network, "-b", name, "-o", settings, *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=self.environment)

    def bare(self, backend):
        """Evaluations a second, at the best of the batch sizes; none if lc0 refuses the backend."""
        best = None
        for batch in self.options.batches.split(","):
            process = self.start("backendbench", backend, f"--start-batch-size={batch}", f"--max-batch-size={batch}",
                                 f"--batches={max(20, 400 * 64 // int(batch))}")
            best = max([best, *bare_speeds(process.communicate()[0])], key=lambda speed: speed or 0)
        return best

    def search(self, backend):
        """Nodes a second of one search as a UCI engine; none if lc0 refuses the backend."""
        name, _, settings = backend.partition(":")
        return uci_speed([self.options.lc0, "-w", self.options.network, "-b", name, "-o", settings, "-t",
                          self.options.threads, "--smart-pruning-factor=0"], self.options.search_seconds,
                         self.environment)

    def selfplay(self, backend, games):
        """Moves a second, once all games have begun; none if lc0 refuses the backend."""
        process = self.start("selfplay", backend, "--games=-1", f"--parallelism={games}",
                             f"--visits={self.options.visits}", "--training=true", "--noise-epsilon=0.25",
                             "--temperature=1.0", "--reuse-tree=false", "--move-thinking")
        times = []

        def read():
            for line in process.stdout:
                if line.startswith("bestmove"):
                    times.append(time.monotonic())

        reader = threading.Thread(target=read)
        reader.start()
        deadline = time.monotonic() + 60
        while len(times) < games and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        begin, before = time.monotonic(), len(times)
        if process.poll() is None:
            time.sleep(self.options.seconds)
        moves, seconds = len(times) - before, time.monotonic() - begin
        process.send_signal(signal.SIGKILL)
        process.wait()
        reader.join()
        return moves / seconds if moves else None


def fastest(measure, choices):
    """What was measured of each choice that works, and the best of them."""
    tried = {choice: measure(*choice) for choice in choices}
    tried = {choice: speed for choice, speed in tried.items() if speed}
    if not tried:
        sys.exit("bench-lc0: lc0 works with none of the backends; see `lc0 --help` for those that it has")
    return tried, max(tried, key=tried.get)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench-lc0")
    parser.add_argument("--lc0", type=Path, required=True)
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--visits", type=int, default=100)
    parser.add_argument("--games", type=lambda text: [int(games) for games in text.split(",")], default=[32, 64, 128])
    parser.add_argument("--backends", default=BACKENDS)
    parser.add_argument("--batches", default="64,128,256")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--search-seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--bin", type=Path, default=Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release")
    options = parser.parse_args()
    check_built(options.bin, "worker")
    backends = options.backends.format(threads=options.threads).split(";")
    precisions = ("f32", "auto")
    rounds = {name: [] for name in ("lc0_bare", "lc0_search", "lc0_selfplay", *(
        f"rookery_{what}_{precision}" for precision in precisions for what in ("bare", "search", "selfplay")))}
    with tempfile.TemporaryDirectory() as folder:
        ours, lc0 = Ours(options, Path(folder)), Lc0(options, Path(folder))
        bare_tried, bare = fastest(lc0.bare, [(backend,) for backend in backends])
        search_tried, search = fastest(lc0.search, [(backend,) for backend in backends])
        selfplay_tried, selfplay = fastest(lc0.selfplay, list(itertools.product(backends, options.games)))
        for _ in range(options.rounds):
            for precision in precisions:
                evaluations, positions = ours.measure(precision)
                rounds[f"rookery_bare_{precision}"].append(evaluations)
                rounds[f"rookery_selfplay_{precision}"].append(positions)
                rounds[f"rookery_search_{precision}"].append(ours.search(precision))
            rounds["lc0_bare"].append(lc0.bare(*bare))
            rounds["lc0_search"].append(lc0.search(*search))
            rounds["lc0_selfplay"].append(lc0.selfplay(*selfplay))
    medians = {name: statistics.median(values) for name, values in rounds.items()}
    print(json.dumps({
        "network": options.network.name, "threads": options.threads, "visits": options.visits,
        "lc0_bare_with": bare[0], "lc0_search_with": search[0],
        "lc0_selfplay_with": selfplay,
        "lc0_tried_bare": {backend: speed for (backend,), speed in bare_tried.items()},
        "lc0_tried_search": {backend: speed for (backend,), speed in search_tried.items()},
        "lc0_tried_selfplay": {f"{backend}, {games} games": speed for (backend, games), speed in selfplay_tried.items()},
        "evaluations_per_s": {name: speed for name, speed in medians.items() if "bare" in name},
        "nodes_per_s": {name: speed for name, speed in medians.items() if "search" in name},
        "positions_per_s": {name: speed for name, speed in medians.items() if "selfplay" in name},
        "rounds": rounds,
        "over_lc0": {name: speed / medians[f"lc0_{name.split('_')[1]}"]
                     for name, speed in medians.items() if name.startswith("rookery")},
    }, indent=1))


if __name__ == "__main__":
    main()
