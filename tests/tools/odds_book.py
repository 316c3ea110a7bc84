"""Openings in which pieces are missing. `scripts/odds-book --help` says more."""

import argparse
import random
import sys

import chess

# Fewest men of a position: with fewer, most games are drawn at once.
FEWEST_MEN = 6


def remove(board, pieces, colors, draw):
    """Takes a piece of a kind drawn by these weights from each of the colours that has one."""
    kind = draw.choices(list(pieces), list(pieces.values()))[0]
    for color in colors:
        squares = list(board.pieces(kind, color))
        if squares:
            board.remove_piece_at(draw.choice(squares))


def with_odds(opening, draw):
    """The opening less some pieces; nothing where that is no position to play from."""
    board = chess.Board(opening)
    # Of both sides alike, none in every fifth position.
    for _ in range(draw.choice([0, 0, 1, 2, 3, 4, 5, 6, 7, 8])):
        weights = {chess.PAWN: 4, chess.KNIGHT: 2, chess.BISHOP: 2, chess.ROOK: 2, chess.QUEEN: 1.5}
        remove(board, weights, chess.COLORS, draw)
    # More of one side in two positions of three, and something of the other for it in a quarter.
    odds = draw.random()
    color = draw.random() < 0.5
    if odds < 0.65:
        weights = {chess.PAWN: 5, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 2, chess.QUEEN: 1}
        remove(board, weights, [color], draw)
    if odds < 0.25:
        remove(board, {chess.PAWN: 4, chess.KNIGHT: 1, chess.BISHOP: 1}, [not color], draw)
    return playable(board)


def with_one_missing(opening, plies, draw):
    """The opening a few random moves on, less one piece, and in a fifth something smaller of the other side."""
    board = chess.Board(opening)
    for _ in range(draw.randint(0, plies)):
        moves = list(board.legal_moves)
        if moves:
            board.push(draw.choice(moves))
    color = draw.random() < 0.5
    weights = {chess.PAWN: 3, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 3, chess.QUEEN: 2}
    remove(board, weights, [color], draw)
    if draw.random() < 0.2:
        remove(board, {chess.PAWN: 1, chess.KNIGHT: 1, chess.BISHOP: 1}, [not color], draw)
    return playable(board)


def playable(board):
    """The position as EPD; nothing where that is no position to play from."""
    board.castling_rights = board.clean_castling_rights()
    board.ep_square = None
    unplayable = not board.is_valid() or board.is_check() or board.is_game_over()
    return None if unplayable or len(board.piece_map()) < FEWEST_MEN else board.epd()


def fill(book, count, make):
    """Adds this many new positions to the book, fewer where there are not so many."""
    full = len(book) + count
    for _ in range(100 * count):
        if len(book) == full:
            break
        position = make()
        if position:
            book.setdefault(position)


def main():
    parser = argparse.ArgumentParser(prog="scripts/odds-book")
    parser.add_argument("openings", metavar="OPENINGS.epd")
    parser.add_argument("--whole", type=int, default=400)
    parser.add_argument("--odds", type=int, default=2000)
    parser.add_argument("--one-missing", type=int, default=0)
    parser.add_argument("--plies", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with open(options.openings, encoding="utf-8") as file:
        openings = [" ".join(line.split()[:4]) + " 0 1" for line in file if line.strip()]
    if not openings:
        sys.exit(f"odds-book: {options.openings} has no positions")
    draw.shuffle(openings)
    book = dict.fromkeys(chess.Board(opening).epd() for opening in openings[:options.whole])
    fill(book, options.odds, lambda: with_odds(draw.choice(openings), draw))
    fill(book, options.one_missing, lambda: with_one_missing(draw.choice(openings), options.plies, draw))
    lines = list(book)
    draw.shuffle(lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
