// Legal moves, and moves as text.

import { type Chess, castlingSide, normalizeMove } from "chessops/chess";
import { parseSan } from "chessops/san";
import type { NormalMove, Role } from "chessops/types";
import { isNormal } from "chessops/types";
import { kingCastlesTo, makeUci, parseUci, squareFile, squareRank } from "chessops/util";

const PROMOTIONS: readonly Role[] = ["knight", "bishop", "rook", "queen"];

/** Whether a move takes a pawn to its last rank. */
export function isPromotion(position: Chess, from: number, to: number): boolean {
  const rank = squareRank(to);
  return (rank === 0 || rank === 7) && position.board.getRole(from) === "pawn";
}

/** All legal moves by origin, target (castling: the rook's square) and promotion. */
export function legalMoves(position: Chess): NormalMove[] {
  const context = position.ctx();
  const moves: NormalMove[] = [];
  for (const from of position.board[position.turn]) {
    for (const to of position.dests(from, context)) {
      if (isPromotion(position, from, to)) {
        for (const promotion of PROMOTIONS) moves.push({ from, to, promotion });
      } else {
        moves.push({ from, to });
      }
    }
  }
  return moves;
}

/** A move in UCI: castling is the king's move of two squares where that is unambiguous. */
export function uci(position: Chess, move: NormalMove): string {
  return makeUci(kingByTwo(position, move));
}

/** Castling as the king's move of two squares where king and rook stand on their standard squares. */
export function kingByTwo(position: Chess, move: NormalMove): NormalMove {
  const side = castlingSide(position, move);
  const isStandard = squareFile(move.from) === 4 && [0, 7].includes(squareFile(move.to));
  return side && isStandard ? { from: move.from, to: kingCastlesTo(position.turn, side) } : move;
}

/** A legal move written in SAN or in UCI; undefined if the text is none. */
export function readMove(position: Chess, text: string): NormalMove | undefined {
  const trimmed = text.trim();
  const long = parseUci(trimmed.toLowerCase().replaceAll(/[-=]/g, ""));
  // UCI goes before SAN with a lower-case piece: b1d2 is a move from b1, not the bishop's "B1d2".
  const readings = [
    parseSan(position, trimmed),
    long && normalizeMove(position, long),
    parseSan(position, trimmed.replace(/^[nbrqk]/, (piece) => piece.toUpperCase())),
  ];
  return readings.find((move): move is NormalMove => move !== undefined && isNormal(move) && position.isLegal(move));
}
