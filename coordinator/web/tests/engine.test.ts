import { beforeEach, describe, expect, test, vi } from "vitest";
import { GameHistory } from "../src/chess/history";
import { INPUT_ENCODINGS, encodeInput } from "../src/encoding/input";
import { Engine } from "../src/engine/engine";
import type { Request } from "../src/engine/protocol";

class FakeWorker extends EventTarget {
  readonly requests: Request[] = [];

  postMessage(request: Request): void {
    this.requests.push(request);
  }
}

let worker: FakeWorker;
let engine: Engine;

beforeEach(() => {
  vi.stubGlobal("Worker", class extends FakeWorker {
    constructor() {
      super();
      worker = this;
    }
  });
  engine = new Engine(() => {});
});

describe("a worker that stops is said", () => {
  const load = () => engine.load({ address: "/file", sha256: "", bytes: 0, input: "lc0-112", policy: "lc0-1858" }, () => {});
  const search = () => engine.search(GameHistory.fromFen(), [], { player: "opponent", visits: 1 }, () => {});

  test.each([["load", load], ["search", search]])("before a %s", async (_, ask) => {
    worker.dispatchEvent(new Event("error"));
    await expect(ask()).rejects.toThrow("The engine stopped.");
  });

  test.each([["load", load], ["search", search]])("during a %s", async (_, ask) => {
    const asked = ask();
    worker.dispatchEvent(new Event("error"));
    await expect(asked).rejects.toThrow("The engine stopped.");
  });
});

test.each([
  ["no capture is possible", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"],
  ["a capture is possible", "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3"],
])("the worker sees the double push before a set-up position, where %s", (_, fen) => {
  const game = GameHistory.fromFen(fen);
  void engine.search(game, [], { player: "opponent", visits: 1 }, () => {});
  const request = worker.requests.at(-1)!;
  if (request.kind !== "search") throw new Error(request.kind);
  const received = GameHistory.fromFen(request.search.start);
  expect(received.start.epSquare).toBe(20);
  for (const encoding of INPUT_ENCODINGS) expect(encodeInput(encoding, received)).toEqual(encodeInput(encoding, game));
});
