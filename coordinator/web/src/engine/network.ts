// A network as an ONNX model, evaluated by ONNX Runtime.

import type * as ort from "onnxruntime-web/wasm";
import type { NormalMove } from "chessops/types";
import type { GameHistory } from "../chess/history";
import { encodeInput, type InputEncoding, planes } from "../encoding/input";
import { type PolicyEncoding, policyIndex, policySize } from "../encoding/policy";
import type { Evaluation, Evaluator, Question } from "./evaluator";
import { wdlOf, type Wdl } from "./wdl";

export interface Encodings {
  readonly input: InputEncoding;
  readonly policy: PolicyEncoding;
}

/** Names as in Lc0's own ONNX files. */
const INPUT = "/input/planes";
const POLICY = "/output/policy";
const WDL = "/output/wdl";
const VALUE = "/output/value";

/** ONNX Runtime for a device. */
export interface Runtime {
  readonly ort: typeof ort;
  readonly provider: "wasm" | "webgpu";
  /** Smaller batches are padded to the next of these sizes. */
  readonly batchSizes: readonly number[];
}

export class OnnxNetwork implements Evaluator {
  private constructor(
    private readonly runtime: Runtime,
    private readonly session: ort.InferenceSession,
    private readonly encodings: Encodings,
  ) {}

  static async load(runtime: Runtime, model: Uint8Array, encodings: Encodings): Promise<OnnxNetwork> {
    const session = await runtime.ort.InferenceSession.create(model, {
      executionProviders: [runtime.provider],
      graphOptimizationLevel: "all",
      // Warnings would stand in the console of every visitor.
      logSeverityLevel: 3,
    });
    return new OnnxNetwork(runtime, session, encodings);
  }

  release(): Promise<void> {
    return this.session.release();
  }

  encode(game: GameHistory, moves: readonly NormalMove[]): Question {
    const { input, policy } = this.encodings;
    const { position } = game;
    return {
      planes: encodeInput(input, game),
      indices: Uint16Array.from(moves, (move) => policyIndex(policy, position, move)),
    };
  }

  async evaluate(batch: readonly Question[]): Promise<Evaluation[]> {
    const outputs = await this.session.run({ [INPUT]: this.tensor(batch) });
    const logits = numbers(outputs[POLICY]);
    const size = policySize(this.encodings.policy);
    return batch.map(({ indices }, position) => ({
      logits: Float32Array.from(indices, (index) => logits[position * size + index]!),
      value: valueOf(outputs, position),
    }));
  }

  private tensor(batch: readonly Question[]): ort.Tensor {
    const channels = planes(this.encodings.input);
    const size = this.runtime.batchSizes.find((padded) => padded >= batch.length) ?? batch.length;
    const data = new Float32Array(size * channels * 64);
    batch.forEach((question, index) => data.set(question.planes, index * channels * 64));
    return new this.runtime.ort.Tensor("float32", data, [size, channels, 8, 8]);
  }
}

function valueOf(outputs: ort.InferenceSession.OnnxValueMapType, position: number): Wdl {
  if (outputs[WDL]) {
    const [win, draw, loss] = numbers(outputs[WDL]).subarray(3 * position, 3 * position + 3);
    return { win: win!, draw: draw!, loss: loss! };
  }
  return wdlOf(numbers(outputs[VALUE])[position]!, 0);
}

function numbers(value: ort.OnnxValue | undefined): Float32Array {
  if (value && "data" in value && value.data instanceof Float32Array) return value.data;
  throw new Error("The network's file lacks an output that docs/formats.md names.");
}
