import type { NormalMove } from "chessops/types";
import { expect, test } from "vitest";
import { GameHistory } from "../src/chess/history";
import { findMate } from "../src/chess/mate";
import { legalMoves } from "../src/chess/moves";
import { move } from "./games";

test.each([
  ["back rank", "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8"],
  ["by Black", "r3k3/8/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1"],
  ["smothered", "6rk/6pp/8/6N1/8/8/8/4K3 w - - 0 1", "g5f7"],
  ["by a promotion to a knight", "6br/5Ppk/6pp/8/8/8/8/6K1 w - - 0 1", "f7f8n"],
  ["by a promotion that looks back", "8/3P4/8/3k4/8/8/7K/2R1R3 w - - 0 1", "d7d8q"],
  ["by castling", "2rkr3/2p1p3/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1"],
  ["by a discovered check", "6rk/6p1/8/7N/8/8/8/6KR w - - 0 1", "h5f4"],
  ["en passant, by the line that the captured pawn held", "2B5/8/8/k2pP2Q/6R1/1R6/8/K7 w - d6 0 1", "e5d6"],
])("a mate in one is found: %s", (_, fen, mate) => {
  const game = GameHistory.fromFen(fen);
  expect(findMate(game.position, [move(game, mate)])).toBeDefined();
});

test("no mate in one is overlooked, and none is made up", () => {
  let found = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const game = GameHistory.fromFen("q2rk2r/P5P1/8/2Pp4/4p1n1/8/1p4Pp/R3K1RQ w Qk d6 0 1");
    const random = numbers(seed);
    for (let moves = legalMoves(game.position); moves.length > 0 && game.plies < 60; moves = legalMoves(game.position)) {
      const mate = moves.find((move) => mates(game, move));
      expect(findMate(game.position, moves)).toEqual(mate);
      found += mate ? 1 : 0;
      game.push(moves[random() % moves.length]!);
    }
  }
  expect(found).toBeGreaterThan(50);
});

function mates(game: GameHistory, move: NormalMove): boolean {
  game.push(move);
  const isMate = game.position.isCheckmate();
  game.pop();
  return isMate;
}

/** Numerical Recipes' linear congruential generator. */
function numbers(state: number): () => number {
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}
