// Input encodings: positions as planes, as docs/formats.md defines them and common/src/encoding/input/mod.rs fills them.

import type { Board } from "chessops/board";
import { type Chess } from "chessops/chess";
import type { SquareSet } from "chessops/squareSet";
import { ROLES, type CastlingSide, type Color } from "chessops/types";
import { opposite } from "chessops/util";
import { GameHistory } from "../chess/history";

export const INPUT_ENCODINGS = ["lc0-112", "az-119", "classic-19"] as const;
export type InputEncoding = (typeof INPUT_ENCODINGS)[number];

const SQUARES = 64;
/** Boards that `lc0-112` and `az-119` show: the position and the seven before it. */
const BOARDS = 8;
/** Counts in a FEN may be absurd; a network sees at most this. */
const MOST = 1000;

export function planes(encoding: InputEncoding): number {
  return { "lc0-112": 112, "az-119": 119, "classic-19": 19 }[encoding];
}

/** The position on the board as `[plane][rank][file]`, as its mover sees it; counts are not divided. */
export function encodeInput(encoding: InputEncoding, game: GameHistory): Float32Array {
  const writer = new PlaneWriter(planes(encoding), game.position.turn);
  switch (encoding) {
    case "lc0-112":
      writeBoards(writer, game, 13);
      writeScalars(writer, 104, lc0Scalars(game.position));
      break;
    case "az-119":
      writeBoards(writer, game, 14);
      writeScalars(writer, 112, azScalars(game.position));
      break;
    case "classic-19":
      writeClassic(writer, game.position);
  }
  return writer.values;
}

class PlaneWriter {
  readonly values: Float32Array;
  /** For Black, ranks are mirrored. */
  private readonly flip: number;

  constructor(count: number, readonly mover: Color) {
    this.values = new Float32Array(count * SQUARES);
    this.flip = mover === "white" ? 0 : 56;
  }

  squares(plane: number, squares: SquareSet): void {
    for (const square of squares) this.set(plane, square, 1);
  }

  set(plane: number, square: number, value: number): void {
    this.values[plane * SQUARES + (square ^ this.flip)] = value;
  }

  fill(plane: number, value: number): void {
    if (value !== 0) this.values.fill(value, plane * SQUARES, (plane + 1) * SQUARES);
  }

  /** Own pawns, knights, bishops, rooks, queens, king, then theirs. */
  pieces(first: number, board: Board): void {
    for (const [side, color] of [this.mover, opposite(this.mover)].entries()) {
      for (const [index, role] of ROLES.entries()) {
        this.squares(first + 6 * side + index, board.pieces(color, role));
      }
    }
  }

  copy(from: number, to: number, count: number): void {
    this.values.copyWithin(to * SQUARES, from * SQUARES, (from + count) * SQUARES);
  }
}

/** Eight boards, the newest first: twelve piece planes and one for each earlier occurrence that is counted. */
function writeBoards(writer: PlaneWriter, game: GameHistory, size: number): void {
  const known = Math.min(game.plies + 1, BOARDS);
  for (let back = 0; back < known; back++) {
    const { position, repetitions } = game.lookBack(back)!;
    writer.pieces(back * size, position.board);
    for (let occurrence = 0; occurrence < size - 12; occurrence++) {
      writer.fill(back * size + 12 + occurrence, repetitions > occurrence ? 1 : 0);
    }
  }
  if (known < BOARDS && !isStandardStart(game.start)) {
    for (let board = known; board < BOARDS; board++) {
      writer.copy((known - 1) * size, board * size, size);
      undoDoublePush(writer, board * size, game.start);
    }
  }
}

/** Whether the boards before the start stay empty, as Lc0 leaves them. */
function isStandardStart(start: Chess): boolean {
  return START.key === GameHistory.at(start).entry.key;
}
const START = GameHistory.fromFen().entry;

/** Takes back the double pawn push that the start's en passant square tells of, whether a capture is possible or not. */
function undoDoublePush(writer: PlaneWriter, first: number, start: Chess): void {
  if (start.epSquare === undefined) return;
  const pusher = opposite(start.turn);
  const back = pusher === "white" ? -8 : 8;
  const plane = first + (pusher === writer.mover ? 0 : 6);
  writer.set(plane, start.epSquare - back, 0);
  writer.set(plane, start.epSquare + back, 1);
}

function writeScalars(writer: PlaneWriter, first: number, scalars: number[]): void {
  scalars.forEach((value, index) => writer.fill(first + index, value));
}

/** Castling rights in the order `sides` of the mover, then of the opponent. */
function castlingFlags(position: Chess, sides: readonly CastlingSide[]): number[] {
  const colors = [position.turn, opposite(position.turn)];
  return colors.flatMap((color) =>
    sides.map((side) => Number(position.castles.rook[color][side] !== undefined)));
}

const count = (n: number): number => Math.min(n, MOST);
const isBlack = (position: Chess): number => Number(position.turn === "black");

function lc0Scalars(position: Chess): number[] {
  return [...castlingFlags(position, ["a", "h"]), isBlack(position), count(position.halfmoves), 0, 1];
}

function azScalars(position: Chess): number[] {
  const castling = castlingFlags(position, ["h", "a"]);
  return [isBlack(position), count(position.fullmoves), ...castling, count(position.halfmoves)];
}

function writeClassic(writer: PlaneWriter, position: Chess): void {
  writer.pieces(0, position.board);
  writeScalars(writer, 12, castlingFlags(position, ["h", "a"]));
  const capture = position.toSetup().epSquare;
  if (capture !== undefined) writer.set(16, capture, 1);
  writeScalars(writer, 17, [count(position.halfmoves), isBlack(position)]);
}
