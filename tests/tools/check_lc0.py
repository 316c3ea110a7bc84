#!/usr/bin/env python3
"""Compares what networks say in every format: Rookery's, Lc0's and ONNX.

Networks are made with `rookery-trainer init`, filled with random numbers so that no part of them is
trivial, and exported. Then the same positions of real and random games, with their history, are
evaluated by
  numpy   the exported .pb.gz, read and computed by lc0_network.py;
  onnx    the exported .onnx, by ONNX Runtime;
  worker  the network itself, by `rookery-worker evaluate --batch`;
  import  the exported .pb.gz, imported again, by the same command;
  f16     the exported .pb.gz by lc0_network.py as a GPU computes in f16, where no GPU has to be at hand;
  lc0     the exported .pb.gz, by Lc0 itself, if --lc0 names it.
Planes and policy indices come from check_encodings.py, which shares nothing with the Rust code.

Needs python-chess, numpy and onnxruntime. Real games and a real network are taken from the folder
ROOKERY_DATA (default: ../shared/data beside the repository) where it exists.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import chess
import chess.pgn
import numpy as np
import onnxruntime

import check_encodings as encodings
from lc0_engine import Lc0Engine
from lc0_network import Lc0Network, exact, half, softmax

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Flags of `init`. Those with another policy than Lc0's are only exported to ONNX.
NETWORKS = {
    "se, convolution, wdl": "3x32",
    "plain, dense, scalar": "2x24 --se-ratio 0 --policy-head dense --value scalar",
    "mish, convolution, scalar": "2x16 --activation mish --value scalar",
    "az-119, az-73, wdl": "2x16 --input az-119 --policy az-73",
    "classic-19, flat-1968, scalar": "2x16 --input classic-19 --policy flat-1968 --value scalar",
}
Tolerance = collections.namedtuple("Tolerance", "most mean")
# How far apart priors and values may be: at most, and of the positions' largest differences the mean.
TOLERANCE = {"f32": Tolerance(1e-3, 1e-3), "bf16": Tolerance(3e-2, 5e-3), "f16": Tolerance(1e-2, 2e-3),
             "lc0's": Tolerance(1, 1)}  # lc0 against itself is told and not judged
# Where a program answers: the priors of a position by policy index, and win, draw, loss.
Answer = collections.namedtuple("Answer", "priors value")


# Positions

def first_games(path, count):
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        games = iter(lambda: chess.pgn.read_game(file), None)
        yield from itertools.islice(games, count)


def random_games(count, rng):
    """Games of random moves: promotions of every kind, repetitions, long endgames."""
    for _ in range(count):
        board = chess.Board()
        while not board.is_game_over() and board.ply() < 240:
            moves = list(board.legal_moves)
            special = [move for move in moves if move.promotion or board.is_castling(move)]
            board.push(rng.choice(special or moves))
        yield chess.pgn.Game.from_board(board)


def goes_on(game):
    """Whether there is something to evaluate: neither moves nor rules have ended the game."""
    board = game.boards[-1]
    over = board.halfmove_clock >= 100 or board.is_insufficient_material() or game.earlier[-1] > 1
    return any(board.legal_moves) and not over and not encodings.needs_chess960(game.boards[0])


def cases(options):
    rng = random.Random(options.seed)
    folder = options.data / "games"
    files = [path for path in sorted(folder.glob("*.pgn")) if "960" not in path.name]
    games = [game for path in files for game in first_games(path, options.games)]
    games += random_games(options.games, rng)
    found = [encodings.from_line(line) for line in encodings.BUILT_IN]
    for game in games:
        if not game.errors:
            found.extend(encodings.from_game(game, rng))
    found = [(game, line) for game, line in found if goes_on(game)]
    return rng.sample(found, min(options.positions, len(found)))


def describe(positions):
    kinds = collections.Counter()
    for game, line in positions:
        board = game.boards[-1]
        kinds["black to move"] += not board.turn
        kinds["with history"] += len(game.boards) > 1
        kinds["repeated"] += game.earlier[-1] > 0
        kinds["en passant"] += board.has_legal_en_passant()
        kinds["castling"] += any(map(board.is_castling, board.legal_moves))
        kinds["promotion"] += any(move.promotion for move in board.legal_moves)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def planes(positions, name):
    """[positions, planes, 8, 8], counts undivided."""
    boards = []
    for game, _ in positions:
        binary, scalars = encodings.encode(game, name)
        words = np.array(binary, dtype="<u8").view(np.uint8).reshape(-1, 8)
        bits = np.unpackbits(words, axis=1, bitorder="little").reshape(-1, 8, 8)
        filled = np.broadcast_to(np.reshape(scalars, (-1, 1, 1)), (len(scalars), 8, 8))
        boards.append(np.concatenate([bits, filled]))
    return np.array(boards, dtype=np.float64)


def indices(game, policy, chess960=False):
    """Policy indices of the legal moves, by their text."""
    board = game.boards[-1]
    return {board.uci(move, chess960=chess960): encodings.index_of(board, move, policy)
            for move in board.legal_moves}


def convolution_cells():
    """The places of the 1858 moves among 80 planes, as docs/formats.md has them."""
    cells = []
    for text in encodings.LC0:
        origin, target = chess.parse_square(text[:2]), chess.parse_square(text[2:4])
        if len(text) == 4:
            cells.append(encodings.az_index(origin, target, None))
        else:
            direction = chess.square_file(target) - chess.square_file(origin) + 1
            cells.append(64 * (64 + 3 * direction + "rbq".index(text[4])) + origin)
    return np.array(cells)


# Networks

def run(*command, text=None):
    # One thread: on small networks more of them only wait for each other.
    done = subprocess.run([str(word) for word in command], input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def fill(path, seed):
    """Puts random numbers into a network file: means, variances and biases matter too."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    rng, content = np.random.default_rng(seed), bytearray(data[start:])
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        shape, (begin, end) = tensor["shape"], tensor["data_offsets"]
        if name.endswith("norm.variance"):
            numbers = np.exp(rng.normal(0, 0.7, shape))
        elif name.endswith("norm.weight"):
            numbers = rng.normal(1, 0.4, shape)
        elif name.endswith("weight"):
            numbers = rng.normal(0, (1.5 / np.prod(shape[1:])) ** 0.5, shape)
        else:
            numbers = rng.normal(0, 0.2, shape)
        content[begin:end] = numbers.astype("<f4").tobytes()
    path.write_bytes(data[:start] + content)


# Answers

def from_outputs(positions, policy, logits, values):
    answers = []
    for (game, _), row, value in zip(positions, logits, values):
        legal = list(indices(game, policy).values())
        if len(value) == 1:
            value = ((1 + value[0]) / 2, 0.0, (1 - value[0]) / 2)
        answers.append(Answer(dict(zip(legal, softmax(row[legal]))), tuple(value)))
    return answers


def by_numpy(positions, path, rounded=exact):
    logits, values = Lc0Network(path, rounded)(planes(positions, "lc0-112"), convolution_cells())
    return from_outputs(positions, "lc0-1858", logits, values)


def by_onnx(positions, path, input_name, policy):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    if names not in (["/output/policy", "/output/wdl"], ["/output/policy", "/output/value"]):
        sys.exit(f"{path} has the outputs {names}")
    found = [[], []]
    # The batch is dynamic: one position, then many.
    for part in np.split(planes(positions, input_name).astype(np.float32), [1, 40]):
        for rows, output in zip(found, session.run(names, {"/input/planes": part})):
            rows.extend(output)
    return from_outputs(positions, policy, *found)


def by_worker(options, positions, path, policy, precision="f32"):
    lines = "".join(line + "\n" for _, line in positions)
    output = run(options.worker, "evaluate", "--network", path, "--device", "cpu",
                 "--precision", precision, "--batch", text=lines)
    answers = []
    for (game, _), text in zip(positions, output.splitlines(), strict=True):
        found, legal = json.loads(text), indices(game, policy)
        priors = {legal[move["move"]]: move["prior"] for move in found["moves"]}
        answers.append(Answer(priors, tuple(found["value"][key] for key in "wdl")))
    return answers


def by_lc0(options, positions, path, backend=None):
    engine = Lc0Engine(options.lc0, path, backend or options.lc0_backend)
    answers = []
    for game, line in positions:
        priors, value = engine.ask(line)
        legal = indices(game, "lc0-1858", chess960=True)
        answers.append(Answer({legal[move]: prior for move, prior in priors.items()}, value))
    engine.close()
    return answers


class Comparison:
    """Prints how far apart answers are, and remembers whether that was too far."""

    def __init__(self, positions):
        self.positions, self.failed = positions, False

    def __call__(self, what, left, right, precision="f32"):
        apart = []
        for (_, line), a, b in zip(self.positions, left, right):
            if a.priors.keys() != b.priors.keys():
                sys.exit(f"{what}: other legal moves in {line}")
            prior = max(abs(a.priors[index] - b.priors[index]) for index in a.priors)
            apart.append((prior, max(abs(x - y) for x, y in zip(a.value, b.value))))
        most, mean = np.max(apart, axis=0), np.mean(apart, axis=0)
        allowed = TOLERANCE[precision]
        # What is no number is not near another.
        bad = not (most.max() <= allowed.most and mean.max() <= allowed.mean)
        self.failed |= bad
        figures = [f"{name} {a:.1e} (mean {b:.1e})" for name, a, b in zip(("prior", "value"), most, mean)]
        print(f"  {what:28} {', '.join(figures)}{'  TOO FAR' if bad else ''}", flush=True)


def check_network(options, compare, name, network, spec, original=None):
    """Compares a network's formats; `original` is Lc0's file from which it was imported."""
    positions, (input_name, policy) = compare.positions, spec
    onnx = network.with_suffix(".onnx")
    run(options.trainer, "export", network, "--format", "onnx", "--output", onnx)
    worker = by_worker(options, positions, network, policy)
    spread = np.mean([max(a.priors.values()) * len(a.priors) for a in worker if len(a.priors) > 1])
    print(f"{name} (the best move's prior is {spread:.1f} times the mean)")
    compare("worker and onnx", worker, by_onnx(positions, onnx, input_name, policy))
    some = positions[:options.positions_in_bf16]
    if some:
        compare("worker in bf16 and in f32", by_worker(options, some, network, policy, "bf16"), worker, "bf16")
    if policy != "lc0-1858":
        return
    exported, again = network.with_suffix(".pb.gz"), network.with_suffix(".again")
    run(options.trainer, "export", network, "--format", "lc0", "--output", exported)
    run(options.trainer, "import", exported, "--output", again)
    numpy = by_numpy(positions, exported)
    compare("worker and numpy", worker, numpy)
    some = positions[:options.positions_in_f16]
    compare("numpy in f16 and exact", by_numpy(some, exported, half), numpy, "f16")
    compare("import and numpy", by_worker(options, positions, again, policy), numpy)
    if options.lc0:
        compare("worker and lc0", worker, by_lc0(options, positions, exported))
    if original:
        compare("worker and numpy, original", worker, by_numpy(positions, original))
    if original and options.lc0:
        lc0 = by_lc0(options, positions, original)
        compare("worker and lc0, original", worker, lc0)
        if options.lc0_coarse:
            coarse = by_lc0(options, positions, original, options.lc0_coarse)
            compare("lc0 coarse and lc0", coarse, lc0, "lc0's")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = os.environ.get("ROOKERY_DATA", ROOT.parent / "shared" / "data")
    programs = ROOT / "target" / "debug"
    parser.add_argument("--worker", default=programs / "rookery-worker", type=pathlib.Path)
    parser.add_argument("--trainer", default=programs / "rookery-trainer", type=pathlib.Path)
    parser.add_argument("--lc0", help="Lc0's program")
    parser.add_argument("--lc0-backend", help="the backend that Lc0 is to use")
    parser.add_argument("--lc0-coarse", help="another of its backends, to compare Lc0 with itself")
    parser.add_argument("--data", default=data, type=pathlib.Path, help="folder with games/ and lc0/")
    parser.add_argument("--games", default=10, type=int, help="games from each file")
    parser.add_argument("--positions", default=200, type=int)
    parser.add_argument("--positions-in-bf16", default=0, type=int,
                        help="of these, the first so many, by a worker with libtorch")
    parser.add_argument("--positions-in-f16", default=40, type=int, help="likewise, by numpy")
    parser.add_argument("--seed", default=1, type=int)
    options = parser.parse_args()
    positions = cases(options)
    print(f"{len(positions)} positions: {describe(positions)}; largest differences:")
    compare = Comparison(positions)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, flags) in enumerate(NETWORKS.items()):
            network = pathlib.Path(folder) / f"{number}.safetensors"
            run(options.trainer, "init", *flags.split(), "--output", network)
            fill(network, options.seed + number)
            words = flags.split()
            spec = [words[words.index(flag) + 1] if flag in words else default
                    for flag, default in (("--input", "lc0-112"), ("--policy", "lc0-1858"))]
            check_network(options, compare, name, network, spec)
        for original in sorted((options.data / "lc0").glob("*.pb.gz")):
            network = pathlib.Path(folder) / f"{original.name}.safetensors"
            run(options.trainer, "import", original, "--output", network)
            check_network(options, compare, original.name, network, ("lc0-112", "lc0-1858"), original)
    sys.exit(int(compare.failed))


if __name__ == "__main__":
    main()
