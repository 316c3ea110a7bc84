// Games for tests, as a start and moves.

import { normalizeMove } from "chessops/chess";
import { isNormal, type NormalMove } from "chessops/types";
import { parseUci } from "chessops/util";
import { GameHistory } from "../src/chess/history";

export interface MoveList {
  /** `startpos` or a FEN. */
  readonly start: string;
  /** In UCI. */
  readonly moves: readonly string[];
}

export function game({ start, moves }: MoveList): GameHistory {
  const game = GameHistory.fromFen(start === "startpos" ? undefined : start);
  for (const text of moves) game.push(move(game, text));
  return game;
}

export function move(game: GameHistory, text: string): NormalMove {
  const parsed = parseUci(text);
  const normal = parsed && normalizeMove(game.position, parsed);
  if (!normal || !isNormal(normal) || !game.position.isLegal(normal)) throw new Error(`${text} is not legal`);
  return normal;
}
