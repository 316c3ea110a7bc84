import { INITIAL_FEN } from "chessops/fen";
import { beforeEach, expect, test, vi } from "vitest";
import { GameHistory } from "../src/chess/history";
import { readBudget } from "../src/engine/budget";
import type { NetworkFile, Reply, Request } from "../src/engine/protocol";
import { wdlOf } from "../src/engine/wdl";

const loadFile = vi.hoisted(() => vi.fn(async () => new Uint8Array()));
const release = vi.hoisted(() => vi.fn(async () => {}));
/** Milliseconds on a clock that each batch moves on. */
const clock = vi.hoisted(() => ({ now: 0, batches: [] as number[] }));
const BATCH_TIME = 25;

vi.mock("../src/engine/download", () => ({ loadFile }));
vi.mock("../src/engine/runtime", () => ({ PROCESSOR: {} }));
vi.mock("../src/engine/gpu", () => ({ gpuObstacle: async () => "there is none", loadGpuNetwork: vi.fn() }));
vi.mock("../src/engine/network", () => ({
  OnnxNetwork: {
    load: async () => ({
      encode: (_: GameHistory, moves: readonly unknown[]) =>
        ({ planes: new Float32Array(moves.length), indices: Uint16Array.from(moves.keys()) }),
      evaluate: async (batch: readonly { planes: Float32Array }[]) => {
        clock.now += BATCH_TIME;
        clock.batches.push(batch.length);
        return batch.map(({ planes }) => ({ logits: planes, value: wdlOf(0, 0.2) }));
      },
      release,
    }),
  },
}));

const network: NetworkFile = { address: "/file", sha256: "", bytes: 0, input: "lc0-112", policy: "lc0-1858" };

/** For machines that are busy. */
const WAIT = { timeout: 240_000 };

/** Kinds of replies; `last` is a search's last report. */
type Kind = Reply["kind"] | "last";
const kindsOf = (reply: Reply): Kind[] => [reply.kind, ...(reply.kind === "report" && reply.isLast ? ["last" as const] : [])];

/** Starts a worker. The function sends it a request and waits for a reply of one of `kinds`. */
async function startWorker() {
  const replies: Reply[] = [];
  let receive!: (event: { data: Request }) => void;
  vi.stubGlobal("postMessage", (reply: Reply) => replies.push(reply));
  vi.stubGlobal("addEventListener", (_: string, listener: typeof receive) => (receive = listener));
  await import("../src/engine/worker");
  return async (request: Request, ...kinds: Kind[]): Promise<Reply> => {
    const from = replies.length;
    receive({ data: request });
    return vi.waitUntil(() => replies.slice(from).find((reply) => kindsOf(reply).some((kind) => kinds.includes(kind))), WAIT);
  };
}

beforeEach(() => {
  vi.resetModules();
  release.mockClear();
  clock.batches.length = 0;
  vi.spyOn(performance, "now").mockImplementation(() => clock.now);
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
  await vi.waitFor(() => expect(release).toHaveBeenCalledOnce(), WAIT);
});

test("a search by time ends when its time is over, and takes larger batches the more it evaluates in that time", async () => {
  const ask = await startWorker();
  await ask({ kind: "load", network }, "loaded");
  const { visits, milliseconds: time = 0 } = readBudget("5s");
  const search = { id: 1, player: "opponent", start: INITIAL_FEN, moves: [], visits } as const;
  const batches = async (milliseconds: number) => {
    clock.batches.length = 0;
    await ask({ kind: "search", search: { ...search, milliseconds } }, "failed", "last");
    return [...clock.batches];
  };
  expect(time).toBe(5_000);
  expect(await batches(1)).toEqual([1]);
  const long = await batches(time);
  expect(long.length).toBe(time / BATCH_TIME);
  expect([long[0], long.at(-1)]).toEqual([1, 8]);
});

test("the visits of a search without a time are all made", async () => {
  const ask = await startWorker();
  await ask({ kind: "load", network }, "loaded");
  const search = { id: 1, player: "opponent", start: INITIAL_FEN, moves: [], ...readBudget("100") } as const;
  expect(await ask({ kind: "search", search }, "failed", "last")).toMatchObject({ report: { visits: 100 } });
});
