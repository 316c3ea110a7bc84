#!/usr/bin/env python3
"""Compares what Rookery makes of Syzygy tables with python-chess, which probes them with code of its own.

Needs python-chess and tables of three and four men. See scripts/check-tables.
"""

import argparse
import collections
import io
import random
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import chess
import chess.engine
import chess.pgn
import chess.syzygy

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from local_run import RUN, LocalRun, Programs, fail, interrupted_by_signals, say  # noqa: E402

# Plies without capture or pawn move after which a game is drawn.
FIFTY_MOVES = 100
# A network of random weights: what is right here comes from the tables.
NETWORK = "2x16"
NODES = 16
# Material that wins, mostly: White's men against Black's.
WON = ["KQvK", "KRvK", "KPvK", "KBBvK", "KBNvK", "KQvKR", "KRPvK", "KQvKP", "KPPvK"]
# In which the game is over.
OVER = {"KBvK", "KNvK"}
# Where captures lead to king and rook against king.
CAPTURES = ["KRvKN", "KRvKB", "KRvKP", "KRvKR"]
PARAMS = """
[selfplay]
ply_limit = 60
book_share = 1.0
tables = { pieces = 3 }
[selfplay.search]
visits = 8
[scheduling]
puzzle_share = 0.0
rating_pairs = 0
selfplay_games = 64
job_seconds = 10
"""


def random_position(rng, material, won=False):
    """A legal position of this material in which the game goes on, colours swapped half of the time."""
    white, _, black = material.partition("v")
    while True:
        board = chess.Board(None)
        squares = rng.sample(chess.SQUARES, len(white) + len(black))
        for square, symbol in zip(squares, white + black.lower()):
            board.set_piece_at(square, chess.Piece.from_symbol(symbol))
        board.turn = won or rng.random() < 0.5
        if board.is_valid() and not board.is_game_over():
            return board if rng.random() < 0.5 else board.mirror()


def outcome(tables, board):
    """1, 0 or -1 for the mover, the fifty-move rule in force; None where rounding leaves it open."""
    dtz = tables.probe_dtz(board)
    plies = abs(dtz) + board.halfmove_clock
    if dtz == 0 or plies > FIFTY_MOVES + 1:
        return 0
    if plies >= FIFTY_MOVES - 1 and board.halfmove_clock:
        return None
    return 1 if dtz > 0 else -1


def after(board, move):
    board = board.copy(stack=False)
    board.push(move)
    return board


def progress(tables, board, move):
    """What a move that wins comes to: plies to the next capture, pawn move or mate."""
    following = after(board, move)
    if following.is_checkmate() or following.halfmove_clock == 0:
        return 1
    return 1 - tables.probe_dtz(following)


class Engine:
    """`rookery-worker uci` with the tables."""

    def __init__(self, programs, tables):
        command = [str(programs.path("worker")), "uci", "--network", NETWORK, "--device", "cpu"]
        self.engine = chess.engine.SimpleEngine.popen_uci(command, timeout=120)
        self.engine.configure({"SyzygyPath": str(tables), "UCI_ShowWDL": True, "Hash": 16})

    def ask(self, board):
        """Its move, and what it expects for the mover."""
        played = self.engine.play(board, chess.engine.Limit(nodes=NODES), info=chess.engine.INFO_ALL)
        assert played.info.get("tbhits"), f"the tables were not asked about {board.fen()}"
        wdl = played.info["wdl"].relative
        return played.move, {1000: 1}.get(wdl.wins, {1000: -1}.get(wdl.losses, 0))

    def quit(self):
        self.engine.quit()


def check_positions(engine, tables, rng, count):
    """What the engine says and plays in random positions. Gives how often it was won, drawn and lost."""
    materials = sorted({Path(name).stem for name in tables.names} - OVER)
    seen = collections.Counter()
    for _ in range(count):
        board = random_position(rng, rng.choice(materials))
        board.halfmove_clock = rng.choice([0, 0, rng.randrange(90)])
        expected = outcome(tables, board)
        if expected is None:
            continue
        move, said = engine.ask(board)
        assert said == expected, f"{board.fen()}: the engine says {said}, the tables {expected}"
        following = after(board, move)
        if following.is_game_over():
            kept = -1 if following.is_checkmate() else 0
        else:
            kept = outcome(tables, following)
        assert kept in (-expected, None), f"{board.fen()}: {move} gives the result away"
        if expected == 1:
            # Distances may be rounded by a ply.
            possible, made = tables.probe_dtz(board), progress(tables, board, move)
            assert made <= possible + 1, f"{board.fen()}: {move} is {made} plies from progress, {possible} is possible"
        seen[expected] += 1
    return seen


def check_mates(engine, tables, rng, count):
    """Plays won positions out against the longest defence; gives the plies of each kind's longest."""
    longest = {}
    for number in range(count):
        material = WON[number % len(WON)]
        board = random_position(rng, material, won=True)
        while outcome(tables, board) != 1:
            board = random_position(rng, material, won=True)
        start, winner, plies = board.fen(), board.turn, 0
        while not board.is_game_over(claim_draw=True):
            if board.turn == winner:
                board.push(engine.ask(board)[0])
            else:
                board.push(max(board.legal_moves, key=lambda move: resistance(tables, board, move)))
            plies += 1
        assert board.is_checkmate(), f"{start} was not won: {board.fen()}"
        longest[material] = max(longest.get(material, 0), plies)
    return longest


def resistance(tables, board, move):
    """How long a lost side lives after a move, in plies to the winner's next progress."""
    following = after(board, move)
    if following.is_game_over():
        return 1000
    return tables.probe_dtz(following) if following.halfmove_clock else -1


def liars_tables(folder):
    """Tables of king and rook against king that call everything a draw: the format's header, the order of pieces, and for
    each side to move one value, a win or loss that the fifty-move rule takes back."""
    pieces = bytes([0x66, 0xEE, 0x44])
    header = bytes([0x71, 0xE8, 0x23, 0x5D, 0x01, 0x00]) + pieces + bytes([0, 0x80, 3, 0x80, 1])
    (folder / "KRvK.rtbw").write_bytes(header.ljust(80, b"\0"))
    return folder


def check_run(folder, programs, tables, tables_folder, rng, count):
    """A run that wants tables: what they ended must have their result. Gives how many games they ended."""
    (folder / "params.toml").write_text(PARAMS)
    book = [random_position(rng, rng.choice(CAPTURES)).epd() for _ in range(500)]
    (folder / "book.epd").write_text("\n".join(book) + "\n")
    run = LocalRun(folder / "run", programs, folder / "params.toml")
    run.prepare()
    try:
        run.start_coordinator("--openings", folder / "book.epd", "--syzygy", tables_folder)
        network = folder / "first.safetensors"
        run.trainer("init", NETWORK, "-o", network)
        run.trainer("submit", network, "--server", run.url, "--run", RUN)
        run.start_worker("--threads", "1", "--games", "32", "--device", "cpu", "--syzygy", tables_folder)
        judged = wait_for(run, lambda: games_by_tables(run, count), "games that tables ended")
        for game in judged:
            board = game.end().board()
            assert len(board.piece_map()) == 3 and board.halfmove_clock == 0, f"ended at {board.fen()}"
            mover = outcome(tables, board)
            expected = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}[mover if board.turn else -mover]
            assert game.headers["Result"] == expected, f"{board.fen()} ended {game.headers['Result']}"
        run.stop_players()
        # The same again, by somebody whose tables lie.
        (folder / "lies").mkdir()
        lies = liars_tables(folder / "lies")
        run.start_worker("--threads", "1", "--games", "32", "--device", "cpu", "--syzygy", lies)
        log = run.dir / "worker.log"
        wait_for(run, lambda: "false-result" in log.read_text(errors="replace"), "a refusal of false results")
    finally:
        run.stop_players()
        run.stop_coordinator()
    return collections.Counter(game.headers["Result"] for game in judged)


def games_by_tables(run, count):
    """The games that tables ended, once there are so many."""
    with urllib.request.urlopen(f"{run.url}/api/v1/games/pgn?run={RUN}&limit=1000", timeout=30) as answer:
        text = io.StringIO(answer.read().decode())
    games = iter(lambda: chess.pgn.read_game(text), None)
    judged = [game for game in games if game.headers.get("Termination") == "adjudication"]
    return judged if len(judged) >= count else None


def wait_for(run, wanted, what):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        run.check_alive()
        found = wanted()
        if found:
            return found
        time.sleep(1)
    fail(f"no {what} within five minutes; see {run.dir}")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=Path)
    parser.add_argument("--tables", required=True, type=Path)
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--mates", type=int, default=27)
    parser.add_argument("--games", type=int, default=40, help="games that tables must have ended")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = arguments()
    interrupted_by_signals()
    rng, programs, folder = random.Random(args.seed), Programs(args.programs), args.tables.resolve()
    tables = chess.syzygy.open_tablebase(str(folder))
    tables.names = sorted(path.name for path in folder.glob("*.rtbw") if len(path.stem) <= 5)
    if len(tables.names) < 35:
        fail(f"{folder} lacks tables of three and four men: it has {len(tables.names)}")
    engine = Engine(programs, folder)
    seen = check_positions(engine, tables, rng, args.positions)
    say(f"{sum(seen.values())} positions: {seen[1]} won, {seen[0]} drawn, {seen[-1]} lost, all as the tables say")
    longest = check_mates(engine, tables, rng, args.mates)
    engine.quit()
    say("mates, the longest in plies: " + ", ".join(f"{name} {plies}" for name, plies in longest.items()))
    with tempfile.TemporaryDirectory(prefix="rookery-tables-") as temporary:
        results = check_run(Path(temporary), programs, tables, folder, rng, args.games)
    say(f"{sum(results.values())} games that tables ended, all with their result: {dict(results)}; a liar's were refused")


if __name__ == "__main__":
    main()
