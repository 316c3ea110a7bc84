// Games and positions from text.

import { parsePgn, startingPosition } from "chessops/pgn";
import { parseSan } from "chessops/san";
import { Chess } from "chessops/chess";
import { isNormal } from "chessops/types";
import { GameHistory } from "./history";
import { GameRecord } from "./record";

/** Reads a FEN or the first game of a PGN; throws an `Error` that says what is wrong. */
export function readGame(text: string): GameRecord {
  return isFen(text) ? new GameRecord(GameHistory.fromFen(text)) : readPgn(text);
}

/** A ply of a game with `length` plies; its end if the text is no whole number up to that. */
export function readPly(text: string | null, length: number): number {
  return text !== null && /^\d+$/.test(text) ? Math.min(Number(text), length) : length;
}

function isFen(text: string): boolean {
  return /^\s*[pnbrqk1-8]+(\/[pnbrqk1-8]+){7}\s/i.test(`${text} `);
}

function readPgn(text: string): GameRecord {
  const [game] = parsePgn(text);
  const nodes = [...(game?.moves.mainline() ?? [])];
  if (!game || (nodes.length === 0 && !game.headers.has("FEN"))) {
    throw new Error("This is neither a FEN nor a PGN: there is no move and no position in it.");
  }
  const start = startingPosition(game.headers).unwrap(
    (position) => position,
    () => {
      throw new Error("The PGN's FEN tag is not a legal position.");
    },
  );
  if (!(start instanceof Chess)) throw new Error("The PGN is a game of another variant of chess.");
  const record = new GameRecord(GameHistory.at(start));
  for (const { san } of nodes) {
    const { position } = record.history();
    const move = parseSan(position, san);
    if (!move || !isNormal(move)) throw new Error(`Move ${position.fullmoves} of the PGN, ${san}, is not legal.`);
    record.play(move);
  }
  return record;
}
