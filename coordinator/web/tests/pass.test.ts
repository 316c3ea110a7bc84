import { makeFen } from "chessops/fen";
import { expect, test } from "vitest";
import { GameHistory } from "../src/chess/history";
import { afterPass } from "../src/chess/pass";

const passed = (fen: string) => {
  const position = afterPass(GameHistory.fromFen(fen).position);
  return position && makeFen(position.toSetup());
};

test("after a pass the other side is to move, and no pawn can be taken en passant", () => {
  expect(passed("rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3"))
    .toBe("rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 3");
});

test.each([
  ["who is in check", "4k3/8/8/8/8/8/4r3/4K3 w - - 0 1"],
  ["whose opponent then has no move", "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1"],
])("nobody passes %s", (_, fen) => {
  expect(passed(fen)).toBeUndefined();
});
