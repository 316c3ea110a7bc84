import { describe, expect, test } from "vitest";
import { readGame, readPly } from "../src/chess/pgn";
import { GameRecord } from "../src/chess/record";
import { move } from "./games";

const sans = (record: GameRecord) => record.all.map(({ san }) => san);

function played(...moves: string[]): GameRecord {
  const record = new GameRecord();
  for (const text of moves) record.play(move(record.history(), text));
  return record;
}

describe("a record", () => {
  test("steps between its start and its end", () => {
    const record = played("e2e4", "e7e5", "g1f3");
    record.show(-1);
    expect([record.ply, record.last, record.isAtEnd]).toEqual([0, undefined, false]);
    record.show(99);
    expect([record.ply, record.isAtEnd]).toEqual([3, true]);
    record.show(1);
    expect(record.fen).toBe("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
  });

  test("goes on from an earlier ply with another move", () => {
    const record = played("e2e4", "e7e5", "g1f3");
    record.show(1);
    record.play(move(record.history(), "c7c5"));
    expect(sans(record)).toEqual(["e4", "c5"]);
    record.show(1);
    record.truncate();
    expect(sans(record)).toEqual(["e4"]);
  });
});

describe("taking back", () => {
  test.each([
    ["white", ["e4", "e5"]],
    ["black", ["e4", "e5", "Nf3"]],
    ["both", ["e4", "e5", "Nf3"]],
  ] as const)("ends with %s to move", (side, expected) => {
    const record = played("e2e4", "e7e5", "g1f3", "b8c6");
    record.takeBack(side);
    expect(sans(record)).toEqual(expected);
  });

  test("while an earlier ply is shown keeps the game and shows its end", () => {
    const record = played("e2e4", "e7e5", "g1f3");
    record.show(0);
    record.takeBack("white");
    expect([record.length, record.isAtEnd]).toEqual([3, true]);
  });
});

describe("text is read", () => {
  test("as a FEN, also without counters", () => {
    const fen = "8/5k2/8/8/3R4/2K5/8/8 b - - 97 120";
    expect(readGame(`  ${fen}\n`).fen).toBe(fen);
    expect(readGame("8/5k2/8/8/3R4/2K5/8/8 b - -").length).toBe(0);
  });

  test("as a PGN with comments, variations and marks", () => {
    const record = readGame('[Event "?"]\n[Result "*"]\n\n1. e4! {the king\'s pawn} (1. d4 d5) e5 $1 2. Nf3 Nc6 1/2-1/2\n');
    expect(sans(record)).toEqual(["e4", "e5", "Nf3", "Nc6"]);
  });

  test("as a PGN from a position", () => {
    const record = readGame('[SetUp "1"]\n[FEN "4k3/P7/8/8/8/8/8/4K3 w - - 0 1"]\n\n1. a8=Q+ Kd7 *');
    expect(sans(record)).toEqual(["a8=Q+", "Kd7"]);
  });

  test("as a game of Chess960", () => {
    const record = readGame('[Variant "Chess960"]\n[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/8/1R2K2R w HB - 0 1"]\n\n1. O-O-O *');
    expect(record.fen).toBe("4k3/8/8/8/8/8/8/2KR3R b - - 1 1");
  });

  test.each([
    ["hello", /neither a FEN nor a PGN/],
    ["1. e4 e5 2. Ke3", /Move 2 of the PGN, Ke3, is not legal/],
    ['[SetUp "1"]\n[FEN "4k3/P7/8/8/8/8/8/4K3 b - - 0 40"]\n\n40... Kd7 41. Kd3', /Move 41 of the PGN, Kd3, is not legal/],
    ['[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n\n1. e4', /FEN tag is not a legal position/],
    ['[Variant "Atomic"]\n\n1. e4', /another variant/],
    ["8/8/8/8/8/8/8/4K3 w - - 0 1", /each side needs one king/],
  ])("%s is refused", (text, reason) => {
    expect(() => readGame(text)).toThrow(reason);
  });
});

test.each([["0", 0], ["3", 3], ["8", 8], ["9", 8], ["abc", 8], ["1.5", 8], ["-1", 8], ["", 8], [null, 8]])(
  "ply %j of a game with 8 plies is ply %i", (text, expected) => {
    expect(readPly(text, 8)).toBe(expected);
  });
