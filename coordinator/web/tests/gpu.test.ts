import { runInNewContext } from "node:vm";
import { setFlagsFromString } from "node:v8";
import type { NormalMove } from "chessops/types";
import { beforeEach, expect, test, vi } from "vitest";
import type { Evaluation, Question } from "../src/engine/evaluator";
import type { GpuNetwork } from "../src/engine/gpu";
import { wdlOf } from "../src/engine/wdl";

class FakeDevice extends EventTarget {
  lose!: (reason: { message: string }) => void;
  readonly lost = new Promise<{ message: string }>((resolve) => (this.lose = resolve));
}

const card = vi.hoisted(() => ({ device: undefined as unknown, hangs: false, isOffline: false }));

vi.mock("onnxruntime-web/ort-wasm-simd-threaded.jspi.mjs?url", () => ({ default: "" }));
vi.mock("onnxruntime-web/ort-wasm-simd-threaded.jspi.wasm?url", () => ({ default: "" }));
vi.mock("onnxruntime-web/jspi", () => ({
  get env() {
    if (card.isOffline) throw new Error("offline");
    return { wasm: {}, webgpu: { device: Promise.resolve(card.device) } };
  },
}));
vi.mock("../src/engine/network", () => ({
  OnnxNetwork: {
    load: async () => ({
      encode: (_: unknown, moves: readonly NormalMove[]) =>
        ({ planes: new Float32Array(moves.length), indices: Uint16Array.from(moves.keys()) }),
      evaluate: (batch: readonly Question[]): Promise<Evaluation[]> =>
        new Promise((resolve) => {
          if (!card.hangs) resolve(batch.map(({ planes }) => ({ logits: planes, value: wdlOf(0, 0.2) })));
        }),
      release: async () => {},
    }),
  },
}));

let device: FakeDevice;
let load: () => Promise<GpuNetwork>;

beforeEach(async () => {
  vi.resetModules();
  device = new FakeDevice();
  Object.assign(card, { device, hangs: false, isOffline: false });
  const { loadGpuNetwork } = await import("../src/engine/gpu");
  load = () => loadGpuNetwork(new Uint8Array(), { input: "lc0-112", policy: "lc0-1858" });
});

const question = (): Question => ({ planes: new Float32Array(1), indices: new Uint16Array(1) });

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

test("batches are kept no longer than who asked for them keeps them", async () => {
  const gpu = await load();
  const answers: WeakRef<Evaluation[]>[] = [];
  for (let batch = 0; batch < 20; batch++) answers.push(new WeakRef(await gpu.evaluate([question()])));
  await new Promise((resolve) => setTimeout(resolve));
  collectGarbage();
  // The last one may still be held.
  const kept = answers.filter((answer) => answer.deref() !== undefined).length;
  expect(kept).toBeLessThanOrEqual(2);
});

test.each(["lost", "uncaptured"])("a device that fails (%s) ends what waits for it, and is told", async (way) => {
  const gpu = await load();
  const heard = vi.fn();
  const deaf = vi.fn();
  gpu.onFailure(heard);
  gpu.onFailure(deaf)();
  card.hangs = true;
  const asked = gpu.evaluate([question()]);
  if (way === "lost") device.lose({ message: "gone" });
  else device.dispatchEvent(Object.assign(new Event("uncapturederror"), { error: new Error("gone") }));
  await expect(asked).rejects.toThrow("gone");
  expect([heard.mock.calls.length, deaf.mock.calls.length]).toEqual([1, 0]);
  const late = vi.fn();
  gpu.onFailure(late);
  expect(late).toHaveBeenCalledOnce();
  await expect(gpu.evaluate([question()])).rejects.toThrow("gone");
  await expect(load(), "another network on the same device").rejects.toThrow("gone");
});

test("a runtime that could not be fetched is fetched again for the next network", async () => {
  card.isOffline = true;
  await expect(load()).rejects.toThrow("offline");
  card.isOffline = false;
  expect(await (await load()).evaluate([question()])).toHaveLength(1);
});
