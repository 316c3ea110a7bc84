// ONNX Runtime for the graphics card, by WebGPU. The visitor fetches it only if the browser offers a graphics card.

import mjs from "onnxruntime-web/ort-wasm-simd-threaded.jspi.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.jspi.wasm?url";
import type { DeviceChoice } from "./device";
import type { Evaluator } from "./evaluator";
import { Failure } from "./failure";
import { type Encodings, OnnxNetwork, type Runtime } from "./network";

/** What the page needs of WebGPU, which TypeScript's library does not describe yet. */
interface Gpu {
  requestAdapter(): Promise<{ readonly info: { readonly isFallbackAdapter?: boolean } } | null>;
}

interface GpuDevice extends EventTarget {
  readonly lost: Promise<{ readonly message: string }>;
}

/** Batches are padded to these sizes: each further size has kernels of its own, which take time to compile. */
const BATCH_SIZES = [8, 32];

/** The runtime, loaded once. Its WebGPU device lasts as long as it: a lost one comes back with a new page. */
let runtime: Promise<Runtime> | undefined;
/** The device is lost or out of memory. */
const failure = new Failure();
/** Whether the device tells `failure`. */
let isWatched = false;
/** The end of the last call: the runtime takes one at a time. */
let last: Promise<unknown> = Promise.resolve();

/** Why the graphics card cannot compute networks here; nothing if it can. */
export async function gpuObstacle(choice: DeviceChoice): Promise<string | undefined> {
  if (!isSecureContext) return "browsers offer the graphics card to pages over HTTPS only";
  const gpu = (navigator as Navigator & { readonly gpu?: Gpu }).gpu;
  if (!gpu || !("Suspending" in WebAssembly)) return "this browser cannot compute networks on a graphics card";
  const adapter = await gpu.requestAdapter();
  if (!adapter) return "the browser offers no graphics card";
  const isSoftware = adapter.info.isFallbackAdapter === true;
  return isSoftware && choice === "auto" ? "the browser only imitates a graphics card" : undefined;
}

export interface GpuNetwork extends Evaluator {
  /** Calls `hear` when the graphics card fails, at once if it has failed. Returns the function that unsubscribes. */
  onFailure(hear: (error: Error) => void): () => void;
  release(): Promise<void>;
}

/** Loads a network onto the graphics card. */
export async function loadGpuNetwork(model: Uint8Array, encodings: Encodings): Promise<GpuNetwork> {
  runtime ??= loadRuntime();
  const loaded = await runtime;
  const network = await failure.race(() => inTurn(() => OnnxNetwork.load(loaded, model, encodings)));
  if (!isWatched) watch((await loaded.ort.env.webgpu.device) as GpuDevice);
  return {
    onFailure: (hear) => failure.subscribe(hear),
    encode: (game, moves) => network.encode(game, moves),
    evaluate: (batch) => failure.race(() => inTurn(() => network.evaluate(batch))),
    release: () => inTurn(() => network.release()),
  };
}

/** Fetches the runtime. If that fails, the next network tries again. */
function loadRuntime(): Promise<Runtime> {
  return fetchRuntime().catch((error: unknown) => {
    runtime = undefined;
    throw error;
  });
}

async function fetchRuntime(): Promise<Runtime> {
  const ort = await import("onnxruntime-web/jspi");
  ort.env.wasm.wasmPaths = { mjs, wasm };
  ort.env.wasm.numThreads = 1;
  return { ort, provider: "webgpu", batchSizes: BATCH_SIZES };
}

function watch(device: GpuDevice): void {
  isWatched = true;
  void device.lost.then(({ message }) => failure.set(new Error(message || "the device was lost")));
  device.addEventListener("uncapturederror", (event) => {
    const { error } = event as Event & { readonly error: { readonly message: string } };
    failure.set(new Error(error.message));
  });
}

function inTurn<T>(call: () => Promise<T>): Promise<T> {
  const result = last.then(call);
  last = result.catch(() => {});
  return result;
}
