import type { NormalMove } from "chessops/types";
import { describe, expect, test } from "vitest";
import { GameHistory } from "../src/chess/history";
import { uci } from "../src/chess/moves";
import type { Branch } from "../src/engine/branch";
import type { Evaluation, Evaluator, Question } from "../src/engine/evaluator";
import { explorationFactor } from "../src/engine/puct";
import { report } from "../src/engine/report";
import { Searcher } from "../src/engine/searcher";
import { wdlOf } from "../src/engine/wdl";
import { game, move } from "./games";

/** Uniform priors and equal positions, but for moves whose logit is given. */
class Uniform implements Evaluator {
  readonly batches: number[] = [];

  constructor(private readonly logits: Record<string, number> = {}) {}

  encode({ position }: GameHistory, moves: readonly NormalMove[]): Question {
    const logits = moves.map((move) => this.logits[uci(position, move)] ?? 0);
    return { planes: Float32Array.from(logits), indices: Uint16Array.from(moves.keys()) };
  }

  async evaluate(batch: readonly Question[]): Promise<Evaluation[]> {
    this.batches.push(batch.length);
    return batch.map(({ planes }) => ({ logits: planes, value: wdlOf(0, 0.2) }));
  }
}

interface Options {
  visits: number;
  batch?: number;
  evaluator?: Evaluator;
}

async function search(at: GameHistory, { visits, batch = 1, evaluator = new Uniform() }: Options) {
  const searcher = new Searcher(evaluator);
  searcher.comeTo(at);
  await searcher.search(visits, () => batch, () => false, async () => {});
  const found = report(searcher, { lines: 3, nodes: 12 }, 0)!;
  return { searcher, found, moves: found?.lines.map(({ move }) => uci(at.position, move)) };
}

const position = (fen: string) => GameHistory.fromFen(fen);

test("the exploration factor is that of AlphaZero's pseudocode", () => {
  expect(explorationFactor(3)).toBeCloseTo(Math.sqrt(3) * (1.25 + Math.log(19_656 / 19_652)), 12);
});

describe("a search", () => {
  test.each([1, 8])("makes the visits that were asked for, %i a batch", async (batch) => {
    const { searcher, found } = await search(GameHistory.fromFen(), { visits: 100, batch });
    expect(found.visits).toBe(100);
    expect(searcher.root!.visits).toBe(101);
    expect(searcher.root!.inFlight).toBe(0);
  });

  test("fills batches with different leaves", async () => {
    const evaluator = new Uniform();
    await search(GameHistory.fromFen(), { visits: 80, batch: 8, evaluator });
    expect(evaluator.batches.reduce((sum, size) => sum + size, 0)).toBe(81);
    expect(evaluator.batches.filter((size) => size === 8).length).toBeGreaterThan(5);
  });

  test("without visits follows the policy", async () => {
    const evaluator = new Uniform({ g1f3: 2 });
    const { found, moves } = await search(GameHistory.fromFen(), { visits: 0, evaluator });
    expect(moves[0]).toBe("g1f3");
    expect(found.lines[0]).toMatchObject({ san: ["Nf3"], visits: 0 });
    expect(found.lines[0]!.prior).toBeCloseTo(Math.exp(2 / 1.36) / (Math.exp(2 / 1.36) + 19), 6);
  });

  test("visits moves with a high prior more", async () => {
    const evaluator = new Uniform({ d2d4: 3 });
    const { found, moves } = await search(GameHistory.fromFen(), { visits: 200, batch: 4, evaluator });
    expect(moves[0]).toBe("d2d4");
    expect(found.lines[0]!.visits).toBeGreaterThan(found.lines[1]!.visits);
  });

  test("tells the policy alone, also of moves that were found to be worse", async () => {
    const evaluator = new Uniform({ g1b1: 2, f6e5: 1 });
    const { found, moves } = await search(position("7k/8/5K2/8/8/8/8/6Q1 w - - 0 1"), { visits: 100, evaluator });
    expect(moves[0]).toBe("g1g7");
    expect(found.policy.map(({ move }) => move)).toEqual([{ from: 6, to: 1 }, { from: 45, to: 36 }, expect.anything()]);
    expect(found.policy[0]!.prior / found.policy[1]!.prior).toBeCloseTo(Math.exp(1 / 1.36), 5);
  });

  test("tells the most visited nodes, which hang together", async () => {
    const evaluator = new Uniform({ e4d5: 2 });
    const start = position("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
    const { found, moves } = await search(start, { visits: 300, batch: 4, evaluator });
    const count = (branches: readonly Branch[]): number =>
      branches.reduce((sum, { children }) => sum + 1 + count(children), 0);
    const check = (branches: readonly Branch[], most: number): void => {
      expect(branches.reduce((sum, { visits }) => sum + visits, 0)).toBeLessThanOrEqual(most);
      expect(branches.map(({ visits }) => visits)).toEqual(branches.map(({ visits }) => visits).sort((a, b) => b - a));
      branches.forEach(({ children, visits }) => check(children, visits - 1));
    };
    check(found.tree, 300);
    expect(count(found.tree)).toBe(12);
    expect(moves[0]).toBe("e4d5");
    expect(found.tree[0]).toMatchObject({ san: "exd5", visits: found.lines[0]!.visits, mate: undefined });
  });

  test("ends when it is told to", async () => {
    const searcher = new Searcher(new Uniform());
    searcher.comeTo(GameHistory.fromFen());
    let looks = 0;
    await searcher.search(1_000, () => 1, () => (looks += 1) > 10, async () => {});
    expect(searcher.visits).toBeLessThan(20);
  });

  test("keeps what it knows of the position that is reached", async () => {
    const { searcher } = await search(GameHistory.fromFen(), { visits: 300, batch: 4 });
    const next = GameHistory.fromFen();
    next.push(move(next, "e2e4"));
    const kept = searcher.root!.edges.find(({ child }) => child?.entry.key === next.entry.key)!.child!.visits;
    searcher.comeTo(next);
    expect(searcher.visits).toBe(kept - 1);
    searcher.comeTo(position("8/8/8/4k3/8/8/4K2P/8 w - - 0 1"));
    expect(searcher.visits).toBe(0);
  });
});

describe("the end of a game is exact", () => {
  test.each([0, 10, 800])("mate in one is proven without a visit, of %i", async (visits) => {
    const evaluator = new Uniform({ g1g7: -5 });
    const { searcher, found, moves } = await search(position("7k/8/5K2/8/8/8/8/6Q1 w - - 0 1"), { visits, batch: 8, evaluator });
    expect(found.visits).toBe(0);
    expect(evaluator.batches).toEqual([1]);
    expect(searcher.proof).toEqual({ result: "won", plies: 1 });
    expect(moves[0]).toBe("g1g7");
    expect(found.lines[0]).toMatchObject({ mate: 1, value: { win: 1, draw: 0, loss: 0 } });
    expect(found.mate).toBe(1);
  });

  test("mate in two is found and proven", async () => {
    const { found, moves } = await search(position("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"), { visits: 20_000, batch: 8 });
    expect(moves[0]).toBe("a1a6");
    expect(found.mate).toBe(2);
  });

  test("a move that allows a mate in one is refuted by its first visit", async () => {
    // 1. g4 would allow Qh4 mate.
    const start = game({ start: "startpos", moves: ["f2f3", "e7e5"] });
    const { searcher, found, moves } = await search(start, { visits: 10, evaluator: new Uniform({ g2g4: 3 }) });
    expect(moves[0]).not.toBe("g2g4");
    const child = searcher.root!.edges.find(({ move }) => uci(start.position, move) === "g2g4")!.child!;
    expect([child.visits, child.proof]).toEqual([1, { result: "won", plies: 1 }]);
    const all = report(searcher, { lines: 30, nodes: 0 }, 0)!.lines;
    expect(all.at(-1)).toMatchObject({ san: ["g4", "Qh4#"], mate: -1, value: { win: 0, draw: 0, loss: 1 } });
    expect(found.mate).toBeUndefined();
  });

  test("a position whose mate in one the search had seen is evaluated when it is reached", async () => {
    const evaluator = new Uniform({ g2g4: 3 });
    const start = game({ start: "startpos", moves: ["f2f3", "e7e5"] });
    const { searcher } = await search(start, { visits: 10, evaluator });
    start.push(move(start, "g2g4"));
    searcher.comeTo(start);
    await searcher.search(10, () => 8, () => false, async () => {});
    const found = report(searcher, { lines: 3, nodes: 0 }, 0)!;
    expect(found).toMatchObject({ visits: 0, mate: 1, lines: [{ san: ["Qh4#"] }, {}, {}] });
    expect(found.lines[0]!.prior).toBeCloseTo(1 / 30, 6);
  });

  test("stalemate and bare kings are draws", async () => {
    const { found, moves } = await search(position("8/8/8/3k4/8/8/3rK3/8 w - - 0 1"), { visits: 200 });
    expect(found.lines[moves.indexOf("e2d2")]!.value).toEqual({ win: 0, draw: 1, loss: 0 });
  });

  test("the third occurrence is a draw, the second within the search counts as one", async () => {
    const shuffle = ["g1f3", "g8f6", "f3g1"];
    const evaluator = new Uniform({ f6g8: 6 });
    const { searcher } = await search(game({ start: "startpos", moves: shuffle }), { visits: 30, evaluator });
    const kind = (at: Searcher, text: string) =>
      at.root!.edges.find((edge) => uci(at.root!.entry.position, edge.move) === text)!.child!.kind;
    expect(kind(searcher, "f6g8"), "it repeats only what stood before the root").toBe("open");
    const twice = game({ start: "startpos", moves: [...shuffle, "f6g8", ...shuffle] });
    expect(kind((await search(twice, { visits: 30, evaluator })).searcher, "f6g8")).toBe("drawn");
  });

  test("a position without moves is not searched", async () => {
    const { searcher, found } = await search(position("7k/6Q1/5K2/8/8/8/8/8 b - - 0 1"), { visits: 100 });
    expect([searcher.visits, found]).toEqual([0, undefined]);
  });

  test("a root that is drawn by the rules is still searched", async () => {
    const { found } = await search(position("8/5k2/8/8/3R4/2K5/8/8 w - - 100 120"), { visits: 20 });
    expect(found.lines.length).toBe(3);
  });
});
