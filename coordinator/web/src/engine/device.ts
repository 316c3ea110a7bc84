// Which device computes the network: the processor at once, the graphics card once a trial speaks for it.
//
//   choose -> obstacle? -> load -> same numbers as the processor? -> faster (if the choice is automatic)? -> graphics card
//                |           |               |                              |                                  |
//                '-----------+---------------+-- processor -----------------+------------- a failure ----------'

import type { NormalMove } from "chessops/types";
import { GameHistory } from "../chess/history";
import { legalMoves, readMove } from "../chess/moves";
import { messageOf } from "../errors";
import type { Evaluation, Evaluator, Question } from "./evaluator";
import type { GpuNetwork } from "./gpu";
import { softmax } from "./softmax";

/** Whose choice: the page's by speed, or the visitor's. */
export type DeviceChoice = "auto" | "processor" | "gpu";

/** What computes the network. */
export interface DeviceStatus {
  readonly device: "processor" | "gpu";
  readonly text: string;
  /** The visitor wanted the graphics card, or had it, and does not get it. */
  readonly isProblem: boolean;
  /** What the graphics card said when it failed. */
  readonly detail?: string;
}

/** The graphics card as a source of networks. */
export interface GpuSource {
  obstacle(choice: DeviceChoice): Promise<string | undefined>;
  load(): Promise<GpuNetwork>;
}

/** Leaves a batch. */
const LEAVES = { processor: 8, gpu: 32 };
/** Priors and values of the two devices differ by no more. */
const MOST_DIFFERENCE = 1e-3;
/** The positions of the trial. */
const TRIAL_MOVES = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4"];

/** A network that moves between the devices, also in the middle of a search. */
export class DeviceNetwork implements Evaluator {
  /** Positions evaluated so far, and the milliseconds that they took. */
  evaluations = 0;
  milliseconds = 0;
  private gpu: GpuNetwork | undefined;
  /** From failures of `gpu`. */
  private unsubscribe: () => void = () => {};
  /** Counts choices: a trial that a later choice has overtaken is dropped. */
  private choices = 0;
  /** The end of the last evaluation or measurement. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly processor: Evaluator & { release(): Promise<void> },
    private readonly source: GpuSource,
    private readonly announce: (status: DeviceStatus) => void,
  ) {}

  /** Leaves a batch at most. */
  get leaves(): number {
    return LEAVES[this.gpu ? "gpu" : "processor"];
  }

  encode(game: GameHistory, moves: readonly NormalMove[]): Question {
    return this.processor.encode(game, moves);
  }

  evaluate(batch: readonly Question[]): Promise<Evaluation[]> {
    return this.alone(async () => {
      const begun = performance.now();
      const answers = await this.evaluateByGpu(batch) ?? await this.processor.evaluate(batch);
      this.evaluations += batch.length;
      this.milliseconds += performance.now() - begun;
      return answers;
    });
  }

  /** Takes a device. The processor computes until the graphics card has passed its trial. */
  async choose(choice: DeviceChoice): Promise<void> {
    this.choices += 1;
    const number = this.choices;
    this.drop(this.gpu);
    if (choice === "processor") return this.announce(byProcessor());
    this.announce(byProcessor("; the graphics card is tried"));
    let gpu: GpuNetwork | undefined;
    let obstacle: string | undefined;
    let detail: string | undefined;
    try {
      obstacle = await this.source.obstacle(choice);
      if (obstacle === undefined) {
        gpu = await this.source.load();
        obstacle = await this.trial(choice, gpu);
      }
    } catch (error) {
      obstacle = "the graphics card failed";
      detail = messageOf(error);
    }
    if (number !== this.choices) return gpu && discard(gpu);
    if (gpu && obstacle === undefined) return this.take(gpu);
    if (gpu) discard(gpu);
    this.announce(byProcessor(`: ${obstacle}`, choice === "gpu", detail));
  }

  async release(): Promise<void> {
    this.choices += 1;
    this.drop(this.gpu);
    await this.alone(() => this.processor.release());
  }

  /** Says what speaks against the graphics card. */
  private async trial(choice: DeviceChoice, gpu: GpuNetwork): Promise<string | undefined> {
    const questions = trialPositions().map((game) => this.encode(game, legalMoves(game.position)));
    // The first batch compiles the kernels.
    const answers = await gpu.evaluate(questions);
    return this.alone(async () => {
      const begun = performance.now();
      const expected = await this.processor.evaluate(questions);
      const milliseconds = performance.now() - begun;
      const difference = mostDifference(answers, expected);
      if (!(difference <= MOST_DIFFERENCE)) return `the graphics card's results differ from the processor's by ${difference.toPrecision(2)}`;
      if (choice === "gpu" || await isWithin(milliseconds, gpu.evaluate(questions))) return undefined;
      return "it is faster than the graphics card";
    });
  }

  private take(gpu: GpuNetwork): void {
    this.gpu = gpu;
    this.announce({ device: "gpu", text: "Your graphics card computes the network.", isProblem: false });
    this.unsubscribe = gpu.onFailure((error) => this.fallBack(gpu, error));
  }

  private async evaluateByGpu(batch: readonly Question[]): Promise<Evaluation[] | undefined> {
    const { gpu } = this;
    try {
      return await gpu?.evaluate(batch);
    } catch (error) {
      this.fallBack(gpu, error);
      return undefined;
    }
  }

  private fallBack(gpu: GpuNetwork | undefined, error: unknown): void {
    if (!gpu || this.gpu !== gpu) return;
    this.drop(gpu);
    this.announce(byProcessor(": the graphics card stopped", true, messageOf(error)));
  }

  private drop(gpu: GpuNetwork | undefined): void {
    this.gpu = undefined;
    this.unsubscribe();
    if (gpu) discard(gpu);
  }

  /** Runs one evaluation or measurement at a time. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work);
    this.last = result.catch(() => {});
    return result;
  }
}

const byProcessor = (more = "", isProblem = false, detail?: string): DeviceStatus =>
  ({ device: "processor", text: `Your processor computes the network${more}.`, isProblem, ...(detail && { detail }) });

/** A graphics card that fails may never answer. */
const discard = (gpu: GpuNetwork): void => void gpu.release().catch(() => {});

function trialPositions(): GameHistory[] {
  const game = GameHistory.fromFen();
  return [game.clone(), ...TRIAL_MOVES.map((text) => {
    game.push(readMove(game.position, text)!);
    return game.clone();
  })];
}

/** The largest difference of a prior or a value; NaN if one is no number. */
function mostDifference(some: readonly Evaluation[], others: readonly Evaluation[]): number {
  const numbers = (answers: readonly Evaluation[]): number[] =>
    answers.flatMap(({ logits, value }) => [...softmax(logits), value.win, value.draw, value.loss]);
  const expected = numbers(others);
  return Math.max(...numbers(some).map((number, index) => Math.abs(number - expected[index]!)));
}

async function isWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), milliseconds));
  return Promise.race([work.then(() => true), late]);
}
