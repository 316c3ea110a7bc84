"""The whole loop on one machine, from nothing: `scripts/demo`."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from local_run import ROOT, RUN, LocalRun, Programs, interrupted_by_signals, run_until_stopped, say

HELP = """
Runs Rookery on this machine: installs what a build needs (as scripts/setup --help says) and
libtorch, builds the programs, starts a coordinator, a worker and a trainer, and lets networks learn
by self-play and puzzles, generation after generation, each promoted only if it wins its gate
match. Watch it at http://127.0.0.1:8080.

Stop it with Ctrl-C: the worker hands in the games it has finished, the trainer saves its state.
Start it again with the same folder, and it goes on where it was.
"""


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="Stop after N minutes of running.")
    parser.add_argument(
        "--dir", type=Path, default=ROOT / "demo", metavar="D",
        help="Keep everything in this folder; an earlier demo in it goes on. [default: demo]",
    )
    parser.add_argument(
        "--once", action="store_true", help="Stop when one candidate has been promoted or rejected."
    )
    parser.add_argument(
        "--json", action="store_true", help="At the end, print what happened as one JSON object."
    )
    parser.add_argument(
        "--network", default="4x32", metavar="SHAPE",
        help="Blocks x filters of the first network. [default: 4x32]",
    )
    parser.add_argument(
        "--from", dest="begin_with", metavar="NETWORK",
        help="Begin with this network instead of random weights: a file, or `small`, which comes with "
        "Rookery and plays well already.",
    )
    parser.add_argument(
        "--params", type=Path, metavar="FILE",
        help="The run's parameters. [default: deploy/runs/demo.toml; with --from deploy/runs/after-warm-start.toml]",
    )
    parser.add_argument(
        "--openings", type=Path, metavar="FILE",
        help="The book of positions from which games begin. [default: deploy/runs/odds.epd, where pieces are missing; "
        "with --from none]",
    )
    parser.add_argument(
        "--puzzles", type=Path, metavar="CSV",
        help="Import mates in one and two from this Lichess puzzle file. Without it, puzzles are "
        "mined from the run's own games.",
    )
    parser.add_argument(
        "--port", type=int, metavar="P",
        help="Port of the pages. [default: 8080, or a free one if that is taken]",
    )
    options = parser.parse_args()
    runs = ROOT / "deploy/runs"
    if options.begin_with:
        options.params = options.params or runs / "after-warm-start.toml"
    else:
        options.params = options.params or runs / "demo.toml"
        options.openings = options.openings or runs / "odds.epd"
    return options


class Demo(LocalRun):
    """The demo's run, with puzzles."""

    def __init__(self, options):
        super().__init__(options.dir, Programs(), options.params, options.port)
        self.options = options
        self.mined = time.monotonic()
        self.final = None

    def prepare(self):
        if super().prepare() and self.options.puzzles:
            self.import_puzzles(self.options.puzzles)

    def start_all(self):
        options = self.options
        self.start_coordinator(*(["--openings", options.openings] if options.openings else []))
        # The worker takes what the trainer leaves; it has most of the work.
        threads = ["--threads", str(max(1, (os.cpu_count() or 1) // 4)), "--encode-threads", "1"]
        first = ["--network", options.begin_with] if options.begin_with else ["--init", options.network]
        self.start_trainer(*threads, *first)
        self.start_worker("--share-live")

    def play(self):
        self.prepare()
        self.start_all()
        say(f"running; look at {self.url} (stop with Ctrl-C)")
        watch(self)

    def stop(self):
        if not self.processes:
            return
        say("stopping: the worker hands in the games it has finished")
        self.stop_players()
        try:
            self.final = self.state()
        except (OSError, StopIteration):
            say("the coordinator does not answer any more")
        finally:
            self.stop_coordinator()

    def trainer_says(self):
        """What the trainer has logged last, less the time; nothing where it has not yet."""
        lines = (self.dir / "trainer.log").read_text(errors="replace").splitlines()
        return lines[-1].partition(" INFO ")[2] if lines else ""

    def mine_puzzles(self):
        """Now and then, makes puzzles of the forced mates in the run's own games."""
        if self.options.puzzles or time.monotonic() - self.mined < 120:
            return
        self.mined = time.monotonic()
        last = self.coordinator("puzzles", "mine", "--run", RUN).strip().splitlines()
        if last:
            say(last[-1])


def gated(networks):
    return [n for n in networks if n["status"] in ("promoted", "rejected")]


def gates(matches):
    return [m for m in matches if m["purpose"] == "gate"]


def standing(match):
    """How far an open gate match is."""
    tally, in_order = match["tally"], match.get("in_order")
    text = (f"{sum(tally['pairs']['counts'])} of {match['pair_limit']} pairs in: "
            f"+{tally['wins']} ={tally['draws']} -{tally['losses']}")
    if in_order:
        llr = "" if in_order.get("llr") is None else f", LLR {in_order['llr']:.2f}"
        text += f"; decided in order, {in_order['pairs']} counted so far{llr}"
    return text


def strength(run, networks, matches):
    """How strong the best network is, in words: its games, and those of the best ones shortly before, with each anchor.

    >>> networks = [{"number": 1, "status": "anchor", "anchor": "random"},
    ...             {"number": 7, "status": "promoted"}, {"number": 8, "status": "rejected"}]
    >>> game = lambda one, other, **tally: {"candidate": one, "opponent": other, "tally": tally}
    >>> strength({"best": 7}, networks, [game(7, 1, wins=20, draws=0, losses=0), game(1, 7, wins=0, draws=1, losses=19),
    ...                                  game(8, 1, wins=0, draws=0, losses=9)])
    ['network 7 beats random: +39 =1 -0 in 40 games']
    """
    best = run.get("best")
    if best is None:
        return []
    near = {n["number"] for n in networks
            if n["status"] in ("initial", "promoted") and best - 10 <= n["number"] <= best}
    lines = []
    for anchor in networks:
        if anchor["status"] != "anchor":
            continue
        wins = draws = losses = 0
        for match in matches:
            tally, sides = match["tally"], (match["candidate"], match["opponent"])
            if anchor["number"] not in sides or not near.intersection(sides):
                continue
            ours = ("wins", "losses") if sides[0] in near else ("losses", "wins")
            wins, losses, draws = wins + tally[ours[0]], losses + tally[ours[1]], draws + tally["draws"]
        games = wins + draws + losses
        if games:
            share = (wins + draws / 2) / games
            verb = "beats" if share >= 0.65 else "is about as strong as" if share >= 0.35 else "loses to"
            lines.append(f"network {best} {verb} {anchor['anchor']}: +{wins} ={draws} -{losses} in {games} games")
    return lines


def progress(run, networks, matches):
    best = run.get("best")
    own = [n for n in networks if n["status"] != "anchor"]
    parts = [f"{run['games']} games", f"{run['positions']} positions",
             f"{len(own)} network{'' if len(own) == 1 else 's'}"]
    parts.append("no network yet" if best is None else f"best is {best}")
    for match in gates(matches):
        if match["status"] == "open":
            parts.append(f"candidate {match['candidate']}: {standing(match)}")
    return ", ".join(parts)


def report(demo, run, networks, matches):
    decided = (m for m in gates(matches) if m["status"] != "open")
    last = max(decided, key=lambda m: m["id"], default=None)
    gate = last and {**{k: last["tally"][k] for k in ("wins", "draws", "losses")},
                     "llr": last.get("llr"), "verdict": last["status"]}
    return {
        "dir": str(demo.dir),
        "networks": [
            {"number": n["number"], "sha256": n["hash"], "rating": (n.get("rating") or {}).get("elo"),
             "verdict": n["status"]}
            for n in sorted(networks, key=lambda n: n["number"])
        ],
        "games": run["games"],
        "positions": run["positions"],
        "chunks": run["chunks"],
        "chunk_bytes": run["chunk_bytes"],
        "gate": gate,
        "strength": strength(run, networks, matches),
    }


def watch(demo):
    """Shows progress until it is time to stop."""
    options = demo.options
    deadline = time.monotonic() + options.minutes * 60 if options.minutes else None
    before = {n["number"] for n in gated(demo.state()[1])}
    shown, said = 0.0, None
    while deadline is None or time.monotonic() < deadline:
        demo.check_alive()
        state = demo.state()
        now = (progress(*state), demo.trainer_says())
        # What is as it was is said once a minute.
        if time.monotonic() - shown >= (60 if now == said else 10):
            shown, said = time.monotonic(), now
            say(now[0] + (f"; trainer: {now[1]}" if now[1] else ""))
        if options.once and {n["number"] for n in gated(state[1])} - before:
            return
        demo.mine_puzzles()
        time.sleep(1)


def main():
    options = arguments()
    interrupted_by_signals()
    demo = Demo(options)
    status = run_until_stopped(demo.play, demo.stop)
    if demo.final:
        say(progress(*demo.final))
        for line in strength(*demo.final):
            say(line)
        if options.json:
            print(json.dumps(report(demo, *demo.final), indent=2))
    say(f"stopped; start again with the same folder, {demo.dir}, to go on")
    sys.exit(status)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
