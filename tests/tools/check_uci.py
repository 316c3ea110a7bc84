#!/usr/bin/env python3
"""Plays games with `rookery-worker uci` and counts what an engine must never do.

A game is forfeited by an illegal move, by running out of time, by ending or by not answering. The
clock is this program's: it runs from the `go` to the `bestmove` as Python sees them, without any
margin but for the time in which the machine stood still. Needs python-chess.
"""

import argparse
import collections
import logging
import os
import random
import shutil
import sys
import threading
import time

import chess
import chess.engine

# Plies after which a game is called a draw: long enough to see a clock that lives on increments.
LONGEST = 400
# Plies played at random before the engines take over.
OPENING = 6
# Every so many games begins from a Chess960 position.
CHESS960_EVERY = 8
# Seconds beyond the clock after which an engine is said not to answer.
PATIENCE = 120
# Seconds of the sleeps whose lateness tells that the machine stands still.
NAP = 0.01


class Complaints(logging.Handler):
    """Collects what python-chess does not understand."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Stalls(threading.Thread):
    """Notes when the machine stood still, for which no engine is to blame: a short sleep took long."""

    def __init__(self):
        super().__init__(daemon=True)
        self.noted = []

    def run(self):
        while True:
            began = time.monotonic()
            time.sleep(NAP)
            ended = time.monotonic()
            if ended - began > 2 * NAP:
                self.noted.append((began + NAP, ended))

    def since(self, began):
        """For how many seconds it stood still since then."""
        # The last time may not be noted yet.
        time.sleep(3 * NAP)
        return sum(max(0, end - max(begin, began)) for begin, end in self.noted)


class Player:
    """An engine that is started again when it ends."""

    def __init__(self, name, command, options):
        self.name, self.command, self.options = name, command, options
        self.engine = None

    def ready(self):
        if self.engine is None:
            # What the engine logs belongs on the terminal.
            self.engine = chess.engine.SimpleEngine.popen_uci(self.command, timeout=120)
            known = {k: v for k, v in self.options.items() if k in self.engine.options}
            self.engine.configure(known)
            self.engine.ping()
        return self.engine

    def drop(self):
        engine, self.engine = self.engine, None
        if engine is not None:
            try:
                engine.quit()
            except (chess.engine.EngineError, chess.engine.EngineTerminatedError, TimeoutError):
                engine.close()


def opening(rng, number):
    """A position after random moves, neither side mated."""
    while True:
        if number % CHESS960_EVERY == CHESS960_EVERY - 1:
            board = chess.Board.from_chess960_pos(rng.randrange(960))
        else:
            board = chess.Board()
        for _ in range(OPENING):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(rng.choice(moves))
        if not board.is_game_over():
            return board


def play(players, board, seconds, increment, slowest, stalls):
    """Plays a game; returns how it ended and whose fault that was, if it was one's."""
    clocks = [seconds, seconds]
    token = object()
    while board.ply() < LONGEST:
        if board.is_game_over(claim_draw=True):
            return board.result(claim_draw=True), None
        side = 0 if board.turn == chess.WHITE else 1
        player = players[side]
        try:
            engine = player.ready()
            limit = chess.engine.Limit(
                white_clock=clocks[0], black_clock=clocks[1], white_inc=increment, black_inc=increment
            )
            engine.timeout = PATIENCE
            began = time.monotonic()
            answer = engine.play(board, limit, game=token, info=chess.engine.INFO_ALL)
            used = time.monotonic() - began
        except chess.engine.EngineTerminatedError as error:
            player.drop()
            return f"ended: {error}", player
        except chess.engine.EngineError as error:
            player.drop()
            return f"illegal: {error}", player
        except TimeoutError:
            player.drop()
            return "silent", player
        if answer.move is None:
            return "no move", player
        clocks[side] -= used
        slowest[player.name] = max(slowest[player.name], used)
        if clocks[side] < 0:
            clocks[side] += stalls.since(began)
        if clocks[side] < 0:
            return f"time: {-clocks[side] * 1000:.0f} ms late at ply {board.ply()}", player
        clocks[side] += increment
        board.push(answer.move)
    return "1/2-1/2", None


def find_stockfish():
    return shutil.which("stockfish") or next(
        (path for path in ["/usr/games/stockfish"] if os.path.exists(path)), None
    )


def opponents(args, rookery):
    """The programs to play against, in turn."""
    itself = Player("itself", rookery.command, rookery.options)
    stockfish = find_stockfish()
    if args.opponent == "stockfish" and stockfish is None:
        sys.exit("check-uci: Stockfish is not installed")
    weak = {"Skill Level": 0, "Threads": 1, "Hash": 16, "Move Overhead": 30}
    known = {"stockfish": ["stockfish"], "self": ["self"], "both": ["stockfish", "self"]}
    chosen = []
    for name in known.get(args.opponent, [args.opponent]):
        if name == "self":
            chosen.append(itself)
        elif name != "stockfish":
            chosen.append(Player(os.path.basename(name), [name], {}))
        elif stockfish:
            chosen.append(Player("stockfish", [stockfish], weak))
        else:
            print("Stockfish is not installed: only games against itself")
    return chosen


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", required=True)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--network", default="4x32")
    parser.add_argument("--clock", default="1+0.01")
    parser.add_argument("--opponent", default="both")
    parser.add_argument("--overhead", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", help="write the conversations into this file")
    return parser.parse_args()


def main():
    args = arguments()
    seconds, _, increment = args.clock.partition("+")
    seconds, increment = float(seconds), float(increment or 0)
    complaints = Complaints()
    logger = logging.getLogger("chess.engine")
    logger.addHandler(complaints)
    logger.propagate = False
    if args.log:
        logger.setLevel(logging.DEBUG)
        handler = logging.FileHandler(args.log, mode="w")
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
    options = {"Hash": 64, "Network": args.network}
    if args.overhead is not None:
        options["Move Overhead"] = args.overhead
    rookery = Player("rookery", [args.worker, "uci", "--network", args.network], options)
    others = opponents(args, rookery)
    stalls = Stalls()
    stalls.start()
    rng, slowest = random.Random(args.seed), collections.Counter()
    scores, faults, plies, began = collections.Counter(), [], 0, time.monotonic()
    for number in range(args.games):
        other = others[number // 2 % len(others)]
        players = [rookery, other] if number % 2 == 0 else [other, rookery]
        board = opening(rng, number)
        ended, culprit = play(players, board, seconds, increment, slowest, stalls)
        plies += board.ply()
        scores[other.name, ended if culprit is None else f"fault of {culprit.name}"] += 1
        if culprit is not None:
            side = "White" if culprit is players[0] else "Black"
            line = f"game {number + 1}, {culprit.name} as {side} against {other.name}: {ended}"
            print(f"{line}; {board.fen()}", flush=True)
            if culprit.name in ("rookery", "itself"):
                faults.append(line)
        if (number + 1) % 20 == 0:
            print(f"{number + 1} games, {time.monotonic() - began:.0f} s", flush=True)
    for player in [rookery, *others]:
        player.drop()
    kinds = collections.Counter(fault.split(": ")[1].split(" ")[0] for fault in faults)
    print(f"{args.games} games, {plies} plies at {args.clock} in {time.monotonic() - began:.0f} s")
    for (name, result), count in sorted(scores.items()):
        print(f"  against {name}: {result} {count}")
    print("  longest thought: " + ", ".join(f"{n} {s * 1000:.0f} ms" for n, s in sorted(slowest.items())))
    print(f"  forfeits {len(faults)} {dict(kinds) or ''}; not understood {len(complaints.lines)}")
    for line in complaints.lines[:10]:
        print(f"  not understood: {line}")
    sys.exit(1 if faults or complaints.lines else 0)


if __name__ == "__main__":
    main()
