// What evaluates positions for a search: a network, or a stand-in for tests.

import type { NormalMove } from "chessops/types";
import type { GameHistory } from "../chess/history";
import type { Wdl } from "./wdl";

/** A position as a network sees it. */
export interface Question {
  /** `[plane][rank][file]`. */
  readonly planes: Float32Array;
  /** The policy's outputs of the legal moves. */
  readonly indices: Uint16Array;
}

export interface Evaluation {
  /** Logits of the legal moves, in the question's order. */
  readonly logits: Float32Array;
  /** For the mover. */
  readonly value: Wdl;
}

export interface Evaluator {
  /** The position on the board with its legal moves. */
  encode(game: GameHistory, moves: readonly NormalMove[]): Question;
  evaluate(batch: readonly Question[]): Promise<Evaluation[]>;
}
