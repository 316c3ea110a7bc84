#!/usr/bin/env python3
"""Compares `rookery-worker encode` with an implementation of docs/formats.md on python-chess.

Nothing is shared with the Rust code: planes are made from python-chess's boards, move lists from
its attack tables. Positions come from real games (castling, en passant, promotions, repetitions,
Chess960, both colours), with their history, and from positions without history.

Needs python-chess. Games are read from the folder ROOKERY_DATA (default: ../shared/data beside the
repository); without it only the built-in positions are compared.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

import chess
import chess.pgn

ROOT = pathlib.Path(__file__).resolve().parents[2]
INPUTS = ("lc0-112", "az-119", "classic-19")
POLICIES = ("lc0-1858", "az-73", "flat-1968")
ALL = (1 << 64) - 1
ROLES = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING)

# Positions that games seldom have.
BUILT_IN = [
    "startpos",
    "startpos moves g1f3 g8f6 f3g1 f6g8",
    "startpos moves g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQk - 0 1",
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
    "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3",
    "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3 moves d4e3 d2e3",
    "8/8/8/8/R2pP2k/8/8/4K3 b - e3 0 1",
    "8/8/8/8/k2pP2R/8/8/4K3 b - e3 0 1",
    "r3k2r/1P4P1/8/8/8/8/1p4p1/R3K2R w KQkq - 12 34",
    "r3k2r/1P4P1/8/8/8/8/1p4p1/R3K2R b KQkq - 99 3000",
    "1r2k2r/8/8/8/8/8/8/1R2K2R w HBhb - 0 1",
    "8/4k3/8/8/8/8/8/R4K1R w HA - 3 9",
    "5rkr/8/8/8/8/8/8/5RKR b HFhf - 0 1",
    "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
]


class Game:
    """A game so far: its boards, with how often each stood there before."""

    def __init__(self, board):
        self.boards = [board.copy(stack=False)]
        self.counts = collections.Counter()
        self.earlier = []
        self.count(self.boards[0])

    def count(self, board):
        ep = board.ep_square if board.has_legal_en_passant() else None
        key = (board.board_fen(), board.turn, board.clean_castling_rights(), ep)
        self.earlier.append(self.counts[key])
        self.counts[key] += 1

    def push(self, move):
        board = self.boards[-1].copy(stack=False)
        board.push(move)
        self.boards.append(board)
        self.count(board)

    def truncated(self, length):
        """The same game `length` boards long."""
        copy = Game.__new__(Game)
        copy.boards, copy.earlier = self.boards[:length], self.earlier[:length]
        return copy


def seen(mask, mover):
    """A set of squares as the mover sees it."""
    return mask if mover == chess.WHITE else int.from_bytes(mask.to_bytes(8, "little"), "big")


def pieces(board, mover):
    return [seen(int(board.pieces_mask(role, side)), mover)
            for side in (mover, not mover) for role in ROLES]


def is_standard(board):
    ours, fresh = pieces(board, board.turn), chess.Board()
    corners = chess.BB_A1 | chess.BB_H1 | chess.BB_A8 | chess.BB_H8
    same = ours == pieces(fresh, chess.WHITE) and board.clean_castling_rights() == corners
    return same and board.turn == chess.WHITE


def history(game, planes_each):
    """Eight boards of planes, the newest first."""
    mover = game.boards[-1].turn
    boards = []
    for board, earlier in list(zip(game.boards, game.earlier))[::-1][:8]:
        repeats = [ALL if earlier > n else 0 for n in range(planes_each - 12)]
        boards.append(pieces(board, mover) + repeats)
    start = game.boards[0]
    if is_standard(start):
        filler = [0] * planes_each
    else:
        filler = list(boards[-1])
        if start.ep_square is not None:
            # The pawn that made the double step stands where it came from.
            side = 0 if start.turn != mover else 6
            step = 8 if start.turn == chess.BLACK else -8
            filler[side] ^= seen(chess.BB_SQUARES[start.ep_square + step], mover)
            filler[side] ^= seen(chess.BB_SQUARES[start.ep_square - step], mover)
    while len(boards) < 8:
        boards.append(filler)
    return [plane for board in boards for plane in board]


def castling(board, order):
    """Whether mover, then opponent, may castle to each side of `order`."""
    flags = []
    for color in (board.turn, not board.turn):
        for side in order:
            has = board.has_kingside_castling_rights if side == "k" else board.has_queenside_castling_rights
            flags.append(1 if has(color) else 0)
    return flags


def encode(game, name):
    """Binary planes and the numbers that fill the others."""
    board = game.boards[-1]
    black = 0 if board.turn else 1
    rule50 = min(board.halfmove_clock, 1000)
    if name == "lc0-112":
        return history(game, 13), castling(board, "qk") + [black, rule50, 0, 1]
    if name == "az-119":
        moves = min(board.fullmove_number, 1000)
        return history(game, 14), [black, moves] + castling(board, "kq") + [rule50]
    ep = seen(chess.BB_SQUARES[board.ep_square], board.turn) if board.has_legal_en_passant() else 0
    rights = [ALL * flag for flag in castling(board, "kq")]
    return pieces(board, board.turn) + rights + [ep], [rule50, black]


def plain_moves():
    for origin in chess.SQUARES:
        empty = chess.Board(None)
        empty.set_piece_at(origin, chess.Piece(chess.QUEEN, True))
        targets = set(empty.attacks(origin))
        empty.set_piece_at(origin, chess.Piece(chess.KNIGHT, True))
        for target in sorted(targets | set(empty.attacks(origin))):
            yield chess.square_name(origin) + chess.square_name(target)


def promotions(from_rank, to_rank, letters):
    for file in range(8):
        for other in range(max(0, file - 1), min(7, file + 1) + 1):
            for letter in letters:
                yield (chess.square_name(chess.square(file, from_rank))
                       + chess.square_name(chess.square(other, to_rank)) + letter)


LC0 = {move: index for index, move in enumerate([*plain_moves(), *promotions(6, 7, "qrb")])}
FLAT = {move: index for index, move in enumerate(sorted(
    [*plain_moves(), *promotions(6, 7, "qrbn"), *promotions(1, 0, "qrbn")]))}
DIRECTIONS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
JUMPS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]


def az_index(origin, target, promotion):
    files = chess.square_file(target) - chess.square_file(origin)
    ranks = chess.square_rank(target) - chess.square_rank(origin)
    if promotion in (chess.KNIGHT, chess.BISHOP, chess.ROOK):
        plane = 64 + 3 * (files + 1) + (promotion - chess.KNIGHT)
    elif (files, ranks) in JUMPS:
        plane = 56 + JUMPS.index((files, ranks))
    else:
        distance = max(abs(files), abs(ranks))
        plane = 7 * DIRECTIONS.index((files // distance, ranks // distance)) + distance - 1
    return 64 * plane + origin


def index_of(board, move, name):
    """The policy index of a move in Chess960 form (castling takes the rook)."""
    origin, target = move.from_square, move.to_square
    if board.is_castling(move) and name != "lc0-1858" and chess.square_file(origin) == 4:
        if chess.square_file(target) in (0, 7):
            target = chess.square(2 if chess.square_file(target) == 0 else 6, chess.square_rank(target))
    if board.turn == chess.BLACK:
        origin, target = chess.square_mirror(origin), chess.square_mirror(target)
    if name == "az-73":
        return az_index(origin, target, move.promotion)
    text = chess.square_name(origin) + chess.square_name(target)
    if move.promotion and not (name == "lc0-1858" and move.promotion == chess.KNIGHT):
        text += chess.piece_symbol(move.promotion)
    return (LC0 if name == "lc0-1858" else FLAT)[text]


def expected(game, input_name, policy_name):
    binary, scalars = encode(game, input_name)
    first = len(binary)
    filled = [ALL if value == 1 else 0 for value in scalars]
    board = game.boards[-1]
    chess960 = needs_chess960(game.boards[0])
    moves = {}
    for move in board.legal_moves:
        text = board.uci(move, chess960=chess960)
        moves[text] = index_of(board, move, policy_name)
    return {
        "planes": [f"{plane:016x}" for plane in binary + filled],
        "scalars": {str(first + n): value for n, value in enumerate(scalars)},
        "moves": moves,
    }


def needs_chess960(board):
    """Whether a castling right belongs to a king or rook off its standard square."""
    rights = board.clean_castling_rights()
    corners = chess.BB_A1 | chess.BB_H1 | chess.BB_A8 | chess.BB_H8
    if rights & ~corners:
        return True
    homes = ((chess.WHITE, chess.BB_RANK_1, chess.E1), (chess.BLACK, chess.BB_RANK_8, chess.E8))
    return any(rights & rank and board.king(color) != home for color, rank, home in homes)


def from_line(line):
    start, _, moves = line.partition(" moves ")
    board = chess.Board(chess960=True) if start == "startpos" else chess.Board(start, chess960=True)
    game = Game(board)
    for text in moves.split():
        game.push(game.boards[-1].parse_uci(text))
    return game, line


def from_pgn(path, games, rng):
    """Positions of games spread over a file, each with its line."""
    offsets = []
    with open(path, encoding="utf-8", errors="replace") as file:
        while (offset := file.tell(), chess.pgn.skip_game(file))[1]:
            offsets.append(offset)
        for offset in rng.sample(offsets, min(games, len(offsets))):
            file.seek(offset)
            pgn = chess.pgn.read_game(file)
            yield from from_game(pgn, rng)


def from_game(pgn, rng):
    board = pgn.board()
    start = board.copy()
    # python-chess writes and reads castling as king takes rook on such boards.
    start.chess960 = True
    game, texts = Game(start), []
    for move in pgn.mainline_moves():
        move = game.boards[-1].parse_uci(board.uci(move, chess960=True))
        texts.append(move.uci())
        board.push(board.parse_uci(board.uci(move, chess960=board.chess960)))
        game.push(move)
    first = "startpos" if start.fen() == chess.STARTING_FEN else start.fen(shredder=True, en_passant="fen")
    interesting = [n for n in range(len(game.boards)) if is_interesting(game, n)]
    chosen = {0, len(texts), *rng.sample(interesting, min(4, len(interesting)))}
    chosen.update(rng.randrange(len(texts) + 1) for _ in range(4))
    for length in sorted(chosen):
        line = first + (" moves " + " ".join(texts[:length]) if length else "")
        yield game.truncated(length + 1), line
    # The same position without history.
    length = rng.randrange(len(texts) + 1)
    bare = game.boards[length]
    yield Game(bare), bare.fen(shredder=True, en_passant="fen")


def is_interesting(game, n):
    board = game.boards[n]
    return (game.earlier[n] > 0 or board.has_legal_en_passant()
            or any(move.promotion or board.is_castling(move) for move in board.legal_moves))


def cases(options):
    rng = random.Random(options.seed)
    found = [from_line(line) for line in BUILT_IN]
    folder = options.data / "games"
    for path in sorted(folder.glob("*.pgn")) if folder.is_dir() else []:
        found.extend(from_pgn(path, options.games, rng))
    return found


def answers(options, lines, input_name, policy_name):
    command = [options.worker, "encode", "--input", input_name, "--policy", policy_name]
    text = "".join(line + "\n" for line in lines)
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if len(found) != len(lines):
        sys.exit(f"{len(lines)} lines went in, {len(found)} came out (status {done.returncode})")
    return found


def differences(want, got):
    if "error" in got:
        return [got["error"]]
    planes = [f"plane {n}: {b}, expected {a}"
              for n, (a, b) in enumerate(zip(want["planes"], got["planes"])) if a != b]
    if len(want["planes"]) != len(got["planes"]):
        planes.append(f"{len(got['planes'])} planes, expected {len(want['planes'])}")
    if want["scalars"] != got["scalars"]:
        planes.append(f"scalars {got['scalars']}, expected {want['scalars']}")
    if want["moves"] != got["moves"]:
        odd = set(want["moves"].items()) ^ set(got["moves"].items())
        planes.append(f"moves differ in {sorted(odd)}")
    return planes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = os.environ.get("ROOKERY_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--worker", default=ROOT / "target" / "debug" / "rookery-worker", type=pathlib.Path)
    parser.add_argument("--data", default=data, type=pathlib.Path, help="folder with games/*.pgn")
    parser.add_argument("--games", default=60, type=int, help="games from each file")
    parser.add_argument("--seed", default=1, type=int)
    options = parser.parse_args()
    positions = cases(options)
    lines = [line for _, line in positions]
    kinds = collections.Counter()
    for game, _ in positions:
        board = game.boards[-1]
        kinds["black to move" if not board.turn else "white to move"] += 1
        kinds["repeated"] += game.earlier[-1] > 0
        kinds["en passant"] += board.has_legal_en_passant()
        kinds["castling"] += any(map(board.is_castling, board.legal_moves))
        kinds["promotion"] += any(move.promotion for move in board.legal_moves)
        kinds["chess960"] += needs_chess960(game.boards[0])
    wrong = 0
    for input_name, policy_name in [(a, b) for a in INPUTS for b in POLICIES]:
        for (game, line), got in zip(positions, answers(options, lines, input_name, policy_name)):
            found = differences(expected(game, input_name, policy_name), got)
            wrong += bool(found)
            if found and wrong <= 10:
                print(f"{input_name} {policy_name}: {line}\n  " + "\n  ".join(found[:5]))
    print(f"{len(positions)} positions ({dict(kinds)}), {wrong} answers of {9 * len(positions)} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
