import { beforeEach, describe, expect, test, vi } from "vitest";
import { GameHistory } from "../src/chess/history";
import { Engine } from "../src/engine/engine";

class FakeWorker extends EventTarget {
  postMessage(): void {}
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
