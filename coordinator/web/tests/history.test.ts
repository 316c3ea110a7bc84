import { describe, expect, test } from "vitest";
import { GameHistory } from "../src/chess/history";
import { readMove, uci } from "../src/chess/moves";
import { game } from "./games";

const after = (start: string, ...moves: string[]) => game({ start, moves });

describe("the rules end a game", () => {
  test("by mate, before the counted rules", () => {
    const end = after("7k/8/5K2/8/8/8/8/6Q1 w - - 99 80", "g1g7").end();
    expect(end).toEqual({ winner: "white", reason: "checkmate" });
  });

  test("by stalemate, bare kings, fifty moves and repetition", () => {
    const shuffle = ["g1f3", "g8f6", "f3g1", "f6g8"];
    expect(after("7k/8/8/6Q1/8/8/8/K7 w - - 0 1", "g5g6").end()?.reason).toBe("stalemate");
    expect(after("8/8/8/3k4/8/8/3rK3/8 w - - 0 1", "e2d2").end()?.reason).toBe("insufficient material");
    expect(after("7k/8/5K2/8/8/8/8/6Q1 w - - 99 80", "g1g2").end()?.reason).toBe("fifty-move rule");
    expect(after("startpos", ...shuffle).end()).toBeUndefined();
    expect(after("startpos", ...shuffle, ...shuffle).end()?.reason).toBe("threefold repetition");
  });

  test("lost castling rights make another position", () => {
    const shuffle = ["e1e2", "e8e7", "e2e1", "e7e8"];
    expect(after("4k3/8/8/8/8/8/8/4K2R w K - 0 1", ...shuffle, ...shuffle).entry.repetitions).toBe(1);
  });
});

test("a FEN that cannot be played says why", () => {
  expect(() => GameHistory.fromFen("hello")).toThrow(/not a legal position/);
  expect(() => GameHistory.fromFen("8/8/8/8/8/8/8/4K3 w - - 0 1")).toThrow(/each side needs one king/);
});

describe("moves as text", () => {
  const castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
  const queensPawn = "rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq - 0 2";
  const afterKnight = "rnbqkbnr/ppp1pppp/8/3p4/3P4/5N2/PPP1PPPP/RNBQKB1R b KQkq - 1 2";
  test.each([
    ["startpos", "Nf3", "g1f3"],
    ["startpos", "nf3", "g1f3"],
    ["startpos", "e2-e4", "e2e4"],
    [queensPawn, "b1d2", "b1d2"],
    [queensPawn, "B1d2", "c1d2"],
    [queensPawn, "bd2", "c1d2"],
    [afterKnight, "b8d7", "b8d7"],
    [castling, "O-O", "e1g1"],
    [castling, "e1c1", "e1c1"],
    [castling, "e1a1", "e1c1"],
    ["8/P6k/8/8/8/8/8/K7 w - - 0 1", "a8=N", "a7a8n"],
    ["8/P6k/8/8/8/8/8/K7 w - - 0 1", "a7a8q", "a7a8q"],
  ])("%s: %s is %s", (start, text, expected) => {
    const { position } = after(start);
    expect(uci(position, readMove(position, text)!)).toBe(expected);
  });

  test.each(["e2e5", "Nf6", "hello", "a7a8", ""])("%s is no legal move", (text) => {
    expect(readMove(GameHistory.fromFen().position, text)).toBeUndefined();
  });
});
