// The best moves of the worker's search, which crates/backend-cpu/tests/browser_searches.rs writes, as the network's file.

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import type { NormalMove } from "chessops/types";
import { makeUci } from "chessops/util";
import * as ort from "onnxruntime-web/wasm";
import { expect, test } from "vitest";
import type { GameHistory } from "../src/chess/history";
import { leavesFor } from "../src/engine/budget";
import type { Evaluation, Evaluator, Question } from "../src/engine/evaluator";
import { OnnxNetwork } from "../src/engine/network";
import { report } from "../src/engine/report";
import { Searcher } from "../src/engine/searcher";
import { game, type MoveList } from "./games";

interface Fixture {
  readonly visits: number;
  /** Castling is king takes rook. */
  readonly positions: (MoveList & { readonly best: string })[];
}

const file = (name: string): URL => new URL(`../${name}`, import.meta.url);
const { visits, positions } = JSON.parse(readFileSync(file("fixtures/best-moves.json"), "utf8")) as Fixture;
const model = file("generated/small.onnx");
/** Leaves a batch, and how often the best move is the worker's: in larger batches than the page's, and in the page's. */
const SEARCHES = [
  { batch: 8, least: 80 },
  { batch: leavesFor({ visits }, Infinity), least: 95 },
];
const MINUTES = 60_000;

/** Evaluates each position once. */
class Remembering implements Evaluator {
  private readonly known = new Map<string, Evaluation>();

  constructor(private readonly network: Evaluator) {}

  encode(at: GameHistory, moves: readonly NormalMove[]): Question {
    return this.network.encode(at, moves);
  }

  async evaluate(batch: readonly Question[]): Promise<Evaluation[]> {
    const keys = batch.map(({ planes }) => createHash("sha1").update(planes).digest("base64"));
    const isNew = (key: string): boolean => !this.known.has(key);
    const asked = keys.filter(isNew);
    const answers = asked.length > 0 ? await this.network.evaluate(batch.filter((_, at) => isNew(keys[at]!))) : [];
    asked.forEach((key, at) => this.known.set(key, answers[at]!));
    return keys.map((key) => this.known.get(key)!);
  }
}

async function bestMove(at: GameHistory, evaluator: Evaluator, batch: number): Promise<string> {
  const searcher = new Searcher(evaluator);
  searcher.comeTo(at);
  await searcher.search(visits, () => batch, () => false, async () => {});
  return makeUci(report(searcher, { lines: 1, nodes: 0 }, 0)!.lines[0]!.move);
}

test.skipIf(!existsSync(model))("the page plays the worker's moves; skipped before the Rust tests have run", async () => {
  ort.env.wasm.numThreads = 1;
  const runtime = { ort, provider: "wasm", batchSizes: [] } as const;
  const network = await OnnxNetwork.load(runtime, readFileSync(model), { input: "lc0-112", policy: "lc0-1858" });
  const equal = SEARCHES.map(() => 0);
  for (const position of positions) {
    const evaluator = new Remembering(network);
    for (const [at, { batch }] of SEARCHES.entries()) {
      if (await bestMove(game(position), evaluator, batch) === position.best) equal[at]! += 1;
    }
  }
  for (const [at, { batch, least }] of SEARCHES.entries()) {
    expect(equal[at], `of ${positions.length} in batches of ${batch}`).toBeGreaterThanOrEqual(least);
  }
}, 20 * MINUTES);
