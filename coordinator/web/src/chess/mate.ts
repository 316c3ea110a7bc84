// Mates in one, as common/src/chess/mate finds them.

import { attacks, bishopAttacks, queenAttacks, rookAttacks } from "chessops/attacks";
import { type Chess, castlingSide } from "chessops/chess";
import type { NormalMove } from "chessops/types";
import { opposite } from "chessops/util";

/** The first of a position's legal moves that mates at once, if one does. */
export function findMate(position: Chess, legal: readonly NormalMove[]): NormalMove | undefined {
  const mayCheck = checks(position);
  return legal.find((move) => mayCheck(move) && mates(position, move));
}

function mates(position: Chess, move: NormalMove): boolean {
  const after = position.clone();
  after.play(move);
  return after.isCheckmate();
}

/** Whether a legal move may give check: true for all that do and for a few others, without playing them. */
function checks(position: Chess): (move: NormalMove) => boolean {
  const { board, turn, epSquare } = position;
  const king = board.kingOf(opposite(turn));
  if (king === undefined) return () => false;
  // Own pieces that the king sees along a line; those before a slider may open its line.
  const visible = queenAttacks(king, board.occupied).intersect(board[turn]);
  const behind = board.occupied.diff(visible);
  const sliders = rookAttacks(king, behind).intersect(board.rooksAndQueens())
    .union(bishopAttacks(king, behind).intersect(board.bishopsAndQueens()))
    .intersect(board[turn]).diff(visible);
  return (move) => {
    const { from, to, promotion } = move;
    const role = board.getRole(from)!;
    // The square of a double push opens lines of both pawns, the new piece may look back along the line of its pawn.
    return attacks({ role: promotion ?? role, color: opposite(turn) }, king, board.occupied).has(to)
      || visible.has(from) && (sliders.nonEmpty() || promotion !== undefined)
      || role === "pawn" && to === epSquare
      || castlingSide(position, move) !== undefined;
  };
}
