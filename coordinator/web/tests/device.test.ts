import type { NormalMove } from "chessops/types";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { GameHistory } from "../src/chess/history";
import { type DeviceChoice, DeviceNetwork, type DeviceStatus } from "../src/engine/device";
import type { Evaluation, Question } from "../src/engine/evaluator";
import type { GpuNetwork } from "../src/engine/gpu";
import { Searcher } from "../src/engine/searcher";
import { wdlOf } from "../src/engine/wdl";

/** A device that takes some milliseconds a batch. */
class Fake implements GpuNetwork {
  readonly batches: number[] = [];
  isReleased = false;
  readonly listeners = new Set<(error: Error) => void>();
  private reject: (error: Error) => void = () => {};

  constructor(private readonly milliseconds: number, private readonly value = 0) {}

  fail(error: Error): void {
    this.reject(error);
    for (const hear of this.listeners) hear(error);
  }

  onFailure(hear: (error: Error) => void): () => void {
    this.listeners.add(hear);
    return () => this.listeners.delete(hear);
  }

  encode(_: GameHistory, moves: readonly NormalMove[]): Question {
    return { planes: new Float32Array(moves.length), indices: Uint16Array.from(moves.keys()) };
  }

  async evaluate(batch: readonly Question[]): Promise<Evaluation[]> {
    this.batches.push(batch.length);
    await new Promise((resolve, reject) => {
      this.reject = reject;
      setTimeout(resolve, this.milliseconds);
    });
    return batch.map(({ planes }) => ({ logits: planes, value: wdlOf(this.value, 0.2) }));
  }

  async release(): Promise<void> {
    this.isReleased = true;
  }
}

const positions = (network: DeviceNetwork, count: number): Question[] =>
  Array.from({ length: count }, () => network.encode(GameHistory.fromFen(), []));

function setUp({ gpu = new Fake(5), obstacle }: { gpu?: Fake; obstacle?: string } = {}) {
  const processor = new Fake(100);
  const said: DeviceStatus[] = [];
  const load = vi.fn(async (): Promise<GpuNetwork> => gpu);
  const network = new DeviceNetwork(processor, { obstacle: async () => obstacle, load }, (status) => said.push(status));
  const choose = async (choice: DeviceChoice): Promise<DeviceStatus> => {
    const chosen = network.choose(choice);
    await vi.runAllTimersAsync();
    await chosen;
    return said.at(-1)!;
  };
  const evaluate = async (count: number): Promise<void> => {
    const evaluated = network.evaluate(positions(network, count));
    await vi.runAllTimersAsync();
    await evaluated;
  };
  return { processor, gpu, network, said, load, choose, evaluate };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the graphics card computes", () => {
  test("if it is faster, in larger batches", async () => {
    const { processor, gpu, network, said, choose, evaluate } = setUp();
    expect(await choose("auto")).toEqual({ device: "gpu", text: "Your graphics card computes the network.", isProblem: false });
    expect(said[0]).toMatchObject({ device: "processor", text: expect.stringContaining("is tried") });
    const before = processor.batches.length;
    await evaluate(32);
    expect([network.leaves, gpu.batches.at(-1), processor.batches.length]).toEqual([32, 32, before]);
    expect([network.evaluations, network.milliseconds]).toEqual([32, 5]);
  });

  test("although it is slower, if the visitor wants it", async () => {
    const { choose } = setUp({ gpu: new Fake(500) });
    expect(await choose("gpu")).toMatchObject({ device: "gpu", isProblem: false });
  });
});

describe("the processor computes", () => {
  test("if the visitor wants it, and the graphics card is not asked for", async () => {
    const { load, choose, network, evaluate, processor } = setUp();
    expect(await choose("processor")).toMatchObject({ device: "processor", isProblem: false });
    await evaluate(3);
    expect([load.mock.calls.length, network.leaves, processor.batches]).toEqual([0, 8, [3]]);
  });

  test("if it is faster", async () => {
    const { gpu, choose } = setUp({ gpu: new Fake(101) });
    const text = "Your processor computes the network: it is faster than the graphics card.";
    expect(await choose("auto")).toEqual({ device: "processor", text, isProblem: false });
    expect(gpu.isReleased).toBe(true);
  });

  test.each(["auto", "gpu"] as const)("if there is no graphics card, choice %s", async (choice) => {
    const { load, choose } = setUp({ obstacle: "the browser offers no graphics card" });
    const text = "Your processor computes the network: the browser offers no graphics card.";
    expect(await choose(choice)).toEqual({ device: "processor", text, isProblem: choice === "gpu" });
    expect(load).not.toHaveBeenCalled();
  });

  test.each([0.01, NaN])("if the graphics card is off by %d", async (error) => {
    const { gpu, choose } = setUp({ gpu: new Fake(5, error) });
    const status = await choose("gpu");
    expect(status).toMatchObject({ device: "processor", isProblem: true });
    expect(status.text).toContain("the graphics card's results differ from the processor's by");
    expect(gpu.isReleased).toBe(true);
  });

  test("if the network does not fit on the graphics card", async () => {
    const { load, choose } = setUp();
    load.mockRejectedValueOnce(new Error("out of memory."));
    const text = "Your processor computes the network: the graphics card failed.";
    expect(await choose("gpu")).toEqual({ device: "processor", text, isProblem: true, detail: "out of memory." });
    expect((await choose("gpu")).device, "it may be tried again").toBe("gpu");
  });

  test("if the graphics card fails in its trial", async () => {
    const { gpu, choose } = setUp({ gpu: new Fake(500) });
    setTimeout(() => gpu.fail(new Error("lost")), 100);
    expect(await choose("gpu")).toMatchObject({ device: "processor", isProblem: true, detail: "lost" });
    expect(gpu.isReleased).toBe(true);
  });

  test("before the graphics card has passed its trial", async () => {
    const { processor, network } = setUp();
    const chosen = network.choose("auto");
    await Promise.all([network.evaluate(positions(network, 3)), vi.runAllTimersAsync()]);
    expect(processor.batches).toContain(3);
    await chosen;
  });
});

describe("a graphics card that is lost", () => {
  const lost: DeviceStatus = {
    device: "processor",
    text: "Your processor computes the network: the graphics card stopped.",
    isProblem: true,
    detail: "lost",
  };

  test("in a search is replaced by the processor, and the search goes on", async () => {
    const { processor, gpu, network, said, choose } = setUp();
    await choose("auto");
    const searcher = new Searcher(network);
    searcher.comeTo(GameHistory.fromFen());
    const asked = processor.batches.length;
    let batches = 0;
    const searched = searcher.search(200, () => network.leaves, () => false, async () => {
      batches += 1;
      if (batches === 3) setTimeout(() => gpu.fail(new Error("lost")), 2);
    });
    await vi.runAllTimersAsync();
    await searched;
    expect(searcher.visits).toBe(200);
    expect(searcher.root!.inFlight).toBe(0);
    expect(said.slice(2)).toEqual([lost]);
    expect(processor.batches[asked], "the batch that was lost").toBeGreaterThan(8);
    expect(Math.max(...processor.batches.slice(asked + 1))).toBe(8);
    expect(network.evaluations).toBe(searcher.root!.visits);
  });

  test("between two moves is noticed at once", async () => {
    const { gpu, said, choose } = setUp();
    await choose("auto");
    gpu.fail(new Error("lost"));
    await vi.runAllTimersAsync();
    expect(said.at(-1)).toEqual(lost);
  });

  test("is not missed once the visitor has chosen the processor", async () => {
    const { gpu, said, choose } = setUp();
    await choose("gpu");
    const status = await choose("processor");
    gpu.fail(new Error("lost"));
    await vi.runAllTimersAsync();
    expect([said.at(-1), gpu.isReleased]).toEqual([status, true]);
  });
});

test.each(["choose", "release"] as const)("a network that leaves the graphics card by %s no longer waits for its failure", async (way) => {
  const { gpu, network, choose } = setUp();
  await choose("gpu");
  expect(gpu.listeners.size).toBe(1);
  await (way === "choose" ? choose("processor") : network.release());
  expect(gpu.listeners.size).toBe(0);
});

test("a later choice overtakes a trial", async () => {
  const { gpu, network, said, choose } = setUp();
  const first = network.choose("gpu");
  await choose("processor");
  await first;
  expect(said.map(({ device }) => device)).toEqual(["processor", "processor"]);
  expect([network.leaves, gpu.isReleased]).toEqual([8, true]);
});
