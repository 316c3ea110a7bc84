// ONNX Runtime for the processor, in WebAssembly.

import mjs from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import * as ort from "onnxruntime-web/wasm";
import type { Runtime } from "./network";

/** More threads gain little with small networks. */
const MOST_THREADS = 4;

// Threads share memory, which browsers allow to pages that are isolated from other origins, over HTTPS only. Half of the
// processors are left to the rest of the machine.
ort.env.wasm.wasmPaths = { mjs, wasm };
ort.env.wasm.numThreads = crossOriginIsolated
  ? Math.min(Math.max(Math.floor(navigator.hardwareConcurrency / 2), 1), MOST_THREADS)
  : 1;

export const PROCESSOR: Runtime = { ort, provider: "wasm", batchSizes: [] };
