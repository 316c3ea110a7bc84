import { beforeEach, expect, test, vi } from "vitest";
import { GameHistory } from "../src/chess/history";
import type { NetworkFile, Reply, Request } from "../src/engine/protocol";
import { wdlOf } from "../src/engine/wdl";

const loadFile = vi.hoisted(() => vi.fn(async () => new Uint8Array()));
const release = vi.hoisted(() => vi.fn(async () => {}));

vi.mock("../src/engine/download", () => ({ loadFile }));
vi.mock("../src/engine/runtime", () => ({ PROCESSOR: {} }));
vi.mock("../src/engine/gpu", () => ({ gpuObstacle: async () => "there is none", loadGpuNetwork: vi.fn() }));
vi.mock("../src/engine/network", () => ({
  OnnxNetwork: {
    load: async () => ({
      encode: (_: GameHistory, moves: readonly unknown[]) =>
        ({ planes: new Float32Array(moves.length), indices: Uint16Array.from(moves.keys()) }),
      evaluate: async (batch: readonly { planes: Float32Array }[]) =>
        batch.map(({ planes }) => ({ logits: planes, value: wdlOf(0, 0.2) })),
      release,
    }),
  },
}));

const network: NetworkFile = { address: "/file", sha256: "", bytes: 0, input: "lc0-112", policy: "lc0-1858" };

/** Starts a worker. The function sends it a request and waits for a reply of one of `kinds`. */
async function startWorker() {
  const replies: Reply[] = [];
  let receive!: (event: { data: Request }) => void;
  vi.stubGlobal("postMessage", (reply: Reply) => replies.push(reply));
  vi.stubGlobal("addEventListener", (_: string, listener: typeof receive) => (receive = listener));
  await import("../src/engine/worker");
  return async (request: Request, ...kinds: Reply["kind"][]): Promise<Reply> => {
    const from = replies.length;
    receive({ data: request });
    return vi.waitUntil(() => replies.slice(from).find(({ kind }) => kinds.includes(kind)));
  };
}

beforeEach(() => {
  vi.resetModules();
  release.mockClear();
});

test("a network that cannot be loaded leaves the last one in place", async () => {
  const ask = await startWorker();
  const load = () => ask({ kind: "load", network }, "loaded", "not-loaded");
  const start = "4k3/8/8/8/8/8/8/4K2R w K - 0 1";
  expect(await load()).toEqual({ kind: "loaded" });
  loadFile.mockRejectedValueOnce(new Error("no connection"));
  expect(await load()).toEqual({ kind: "not-loaded", message: "no connection" });
  expect(release).not.toHaveBeenCalled();
  const search = { id: 1, player: "opponent", start, moves: [], visits: 1 } as const;
  expect(await ask({ kind: "search", search }, "report", "failed")).toMatchObject({ kind: "report", isLast: true });
});

test("a network that is loaded releases the last one", async () => {
  const ask = await startWorker();
  await ask({ kind: "load", network }, "loaded");
  await ask({ kind: "load", network }, "loaded");
  await vi.waitFor(() => expect(release).toHaveBeenCalledOnce());
});
