"""Writes what happened in a run as Markdown. Run scripts/run-report with --help for what it does."""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import chess


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/run-report")
    parser.add_argument("--server", required=True)
    parser.add_argument("--run", default="main")
    parser.add_argument("--trainer-dir", type=Path, required=True)
    parser.add_argument("--worker", type=Path, required=True)
    parser.add_argument("--puzzles", type=Path, help="Lichess's CSV; without it there are no puzzle scores")
    parser.add_argument("--count", type=int, default=200, help="puzzles of each kind")
    parser.add_argument("--visits", type=int, default=32)
    return parser.parse_args()


def get(options, path):
    with urllib.request.urlopen(f"{options.server}/api/v1{path}", timeout=60) as answer:
        return json.load(answer)


def mean_losses(metrics, step):
    """Mean policy and value loss over the last hundred steps before a candidate was submitted."""
    near = [m["values"] for m in metrics if step - 100 < m["step"] <= step]
    pick = lambda name: [values[name] for values in near if name in values]
    policy, value = pick("policy_loss"), pick("value_loss")
    if not policy:
        return "", ""
    return f"{sum(policy) / len(policy):.3f}", f"{sum(value) / len(value):.3f}"


def played_between(ledger, after, before):
    """Training games and positions accepted between two times."""
    chunks = [c for c in ledger if c["kind"] != "match" and after < c["accepted_at"] <= before]
    return sum(c["games"] for c in chunks), sum(c["positions"] for c in chunks)


def load_puzzles(path, theme, count):
    """Positions with their solutions, `count` of them, spread over the file."""
    found = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if theme in row["Themes"].split():
                before, solution = row["Moves"].split()[0], row["Moves"].split()[1]
                board = chess.Board(row["FEN"])
                board.push_uci(before)
                found.append((f"{row['FEN']} moves {before}", board, solution))
    return found[:: max(1, len(found) // count)][:count]


def solved(options, network, puzzles):
    """The share of puzzles whose first move the network finds; any mate counts."""
    lines = "\n".join(line for line, _, _ in puzzles) + "\n"
    command = [options.worker, "evaluate", "--network", network, "--visits", str(options.visits),
               "--batch", "--json"]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    right = 0
    for answer, (_, board, solution) in zip(done.stdout.splitlines(), puzzles, strict=True):
        best = json.loads(answer)["best"]
        after = board.copy()
        after.push_uci(best)
        right += best == solution or after.is_checkmate()
    return f"{100 * right / len(puzzles):.0f} %"


def puzzle_scores(options, networks):
    if options.puzzles is None:
        return {}
    sets = [load_puzzles(options.puzzles, theme, options.count) for theme in ("mateIn1", "mateIn2")]
    scores = {}
    with tempfile.TemporaryDirectory() as folder:
        for network in networks:
            file = Path(folder) / f"{network['number']}.safetensors"
            urllib.request.urlretrieve(options.server + network["file"], file)
            scores[network["number"]] = [solved(options, file, puzzles) for puzzles in sets]
            print(f"run-report: puzzles of network {network['number']}", file=sys.stderr)
    return scores


def rating(network):
    fit = network.get("rating")
    if not fit:
        return ""
    if network.get("anchor") and fit["low"] == fit["high"]:
        return f"{fit['elo']:g} (given)"
    return f"{fit['elo']:.0f} ({fit['low']:.0f} to {fit['high']:.0f})"


def main():
    options = arguments()
    networks = sorted(get(options, f"/networks?run={options.run}"), key=lambda n: n["number"])
    gates = {m["candidate"]: m for m in get(options, f"/matches?run={options.run}&limit=500")
             if m["purpose"] == "gate"}
    metrics = get(options, f"/runs/{options.run}/metrics")
    ledger = [json.loads(line) for line in open(options.trainer_dir / "ledger.jsonl")]
    puzzles = puzzle_scores(options, networks)

    head = ["network", "step", "games", "positions", "policy loss", "value loss", "gate +/=/-", "score",
            "LLR", "verdict", "rating", "mate in 1", "mate in 2"]
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    before = ""
    for network in networks:
        games, positions = played_between(ledger, before, network["submitted_at"])
        before = network["submitted_at"]
        step = network["spec"]["training_step"]
        gate = gates.get(network["number"])
        tally, score, llr = "", "", ""
        if gate:
            wins, draws, losses = (gate["tally"][k] for k in ("wins", "draws", "losses"))
            tally = f"{wins}/{draws}/{losses}"
            score = f"{100 * (wins + draws / 2) / max(1, wins + draws + losses):.1f} %"
            llr = f"{gate['llr']:.2f}" if gate.get("llr") is not None else ""
        row = [network["number"], step, games, positions, *mean_losses(metrics, step), tally, score, llr,
               network["status"], rating(network), *puzzles.get(network["number"], ["", ""])]
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
