// Policy encodings: moves as indices of a network's policy output, as docs/formats.md lists them.

import { attacks } from "chessops/attacks";
import type { Chess } from "chessops/chess";
import { SquareSet } from "chessops/squareSet";
import type { Color, NormalMove, Role } from "chessops/types";
import { makeUci, squareFile, squareRank } from "chessops/util";
import { kingByTwo } from "../chess/moves";

export const POLICY_ENCODINGS = ["lc0-1858", "az-73", "flat-1968"] as const;
export type PolicyEncoding = (typeof POLICY_ENCODINGS)[number];

/** The number of a policy's outputs. */
export function policySize(encoding: PolicyEncoding): number {
  return { "lc0-1858": 1858, "az-73": 73 * 64, "flat-1968": 1968 }[encoding];
}

/** The index of a legal move in the policy's output. */
export function policyIndex(encoding: PolicyEncoding, position: Chess, move: NormalMove): number {
  switch (encoding) {
    case "lc0-1858":
      return lc0Index(seenByMover(position, move));
    case "az-73":
      return azIndex(seenByMover(position, kingByTwo(position, move)));
    case "flat-1968":
      return flatIndex(seenByMover(position, kingByTwo(position, move)));
  }
}

/** For Black, ranks are mirrored, so that own pawns always go up. */
function seenByMover({ turn }: Chess, move: NormalMove): NormalMove {
  const flip = turn === "white" ? 0 : 56;
  return { ...move, from: move.from ^ flip, to: move.to ^ flip };
}

/** Every queen's and knight's move on an empty board, by origin and target. */
function plainMoves(): NormalMove[] {
  return [...SquareSet.full()].flatMap((from) => {
    const reach = (role: "queen" | "knight") =>
      attacks({ role, color: "white" }, from, SquareSet.empty());
    return [...reach("queen").union(reach("knight"))].map((to) => ({ from, to }));
  });
}

/** Promotions of a colour by origin, target and, in the order given, role. */
function promotions(color: Color, roles: readonly Role[]): NormalMove[] {
  const [rank, step] = color === "white" ? [6, 8] : [1, -8];
  return [...SquareSet.fromRank(rank)].flatMap((from) => {
    const targets = attacks({ role: "pawn", color }, from, SquareSet.empty()).with(from + step);
    return [...targets].flatMap((to) => roles.map((promotion) => ({ from, to, promotion })));
  });
}

const LC0 = table([...plainMoves(), ...promotions("white", ["queen", "rook", "bishop"])]);

function lc0Index(move: NormalMove): number {
  // A promotion to a knight is the plain move.
  const { promotion } = move;
  return lookUp(LC0, promotion === "knight" ? { from: move.from, to: move.to } : move);
}

const ALL_ROLES: readonly Role[] = ["queen", "rook", "bishop", "knight"];
const FLAT = table([
  ...plainMoves(), ...promotions("white", ALL_ROLES), ...promotions("black", ALL_ROLES),
].sort((a, b) => (makeUci(a) < makeUci(b) ? -1 : 1)));

function flatIndex(move: NormalMove): number {
  return lookUp(FLAT, move);
}

function table(moves: NormalMove[]): Map<string, number> {
  return new Map(moves.map((move, index) => [makeUci(move), index]));
}

function lookUp(moves: Map<string, number>, move: NormalMove): number {
  const index = moves.get(makeUci(move));
  if (index === undefined) throw new Error(`${makeUci(move)} is in no policy`);
  return index;
}

/** N, NE, E, SE, S, SW, W, NW as files and ranks. */
const DIRECTIONS = [[0, 1], [1, 1], [1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0], [-1, 1]] as const;
const JUMPS = [[1, 2], [2, 1], [2, -1], [1, -2], [-1, -2], [-2, -1], [-2, 1], [-1, 2]] as const;
const UNDERPROMOTIONS: readonly Role[] = ["knight", "bishop", "rook"];

function azIndex({ from, to, promotion }: NormalMove): number {
  const files = squareFile(to) - squareFile(from);
  const ranks = squareRank(to) - squareRank(from);
  const role = promotion ? UNDERPROMOTIONS.indexOf(promotion) : -1;
  const plane = role >= 0 ? 64 + 3 * (files + 1) + role : plainPlane(files, ranks);
  return 64 * plane + from;
}

function plainPlane(files: number, ranks: number): number {
  const place = (list: readonly (readonly [number, number])[], x: number, y: number) =>
    list.findIndex(([file, rank]) => file === x && rank === y);
  if (files !== 0 && ranks !== 0 && Math.abs(files) !== Math.abs(ranks)) {
    return 56 + place(JUMPS, files, ranks);
  }
  const distance = Math.max(Math.abs(files), Math.abs(ranks));
  return 7 * place(DIRECTIONS, Math.sign(files), Math.sign(ranks)) + distance - 1;
}
