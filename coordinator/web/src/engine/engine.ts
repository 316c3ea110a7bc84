// The page's end of the web worker.

import { makeFen } from "chessops/fen";
import type { NormalMove } from "chessops/types";
import type { GameHistory } from "../chess/history";
import type { Budget } from "./budget";
import type { DeviceChoice, DeviceStatus } from "./device";
import type { NetworkFile, Player, Reply, Request } from "./protocol";
import type { Report } from "./report";

interface Running {
  readonly id: number;
  readonly update: (report: Report) => void;
  readonly resolve: (report: Report | undefined) => void;
  readonly reject: (error: Error) => void;
}

interface Loading {
  readonly progress: (received: number) => void;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Engine {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private loading: Loading | undefined;
  private running: Running | undefined;
  private lastId = 0;
  /** The worker's failure, which may come before anything is asked of it. */
  private failure: Error | undefined;

  /** `announce` gets what computes the network, each time that changes. */
  constructor(private readonly announce: (status: DeviceStatus) => void) {
    this.worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => this.receive(data));
    this.worker.addEventListener("error", () => {
      this.failure = new Error("The engine stopped. Reload the page to start it again.");
      this.loading?.reject(this.failure);
      this.running?.reject(this.failure);
    });
  }

  choose(choice: DeviceChoice): void {
    this.send({ kind: "device", choice });
  }

  load(network: NetworkFile, progress: (received: number) => void): Promise<void> {
    this.stop();
    return new Promise((resolve, reject) => {
      if (this.failure) return reject(this.failure);
      this.loading = { progress, resolve, reject };
      this.send({ kind: "load", network });
    });
  }

  /**
   * Searches the position on the board. `update` gets what is known so far. A search that another one or `stop` ends
   * gives nothing.
   */
  search(
    game: GameHistory,
    moves: readonly NormalMove[],
    budget: Budget & { readonly player: Player },
    update: (report: Report) => void,
  ): Promise<Report | undefined> {
    this.running?.resolve(undefined);
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve, reject) => {
      if (this.failure) return reject(this.failure);
      this.running = { id, update, resolve, reject };
      // The setup has the en passant square only if a capture is possible there; the network sees it in either case.
      const start = makeFen({ ...game.start.toSetup(), epSquare: game.start.epSquare });
      this.send({ kind: "search", search: { id, start, moves, ...budget } });
    });
  }

  stop(): void {
    this.running?.resolve(undefined);
    this.running = undefined;
    this.send({ kind: "stop" });
  }

  private send(request: Request): void {
    this.worker.postMessage(request);
  }

  private receive(reply: Reply): void {
    switch (reply.kind) {
      case "device":
        return this.announce(reply.status);
      case "progress":
        return this.loading?.progress(reply.received);
      case "loaded":
        return this.loading?.resolve();
      case "not-loaded":
        return this.loading?.reject(new Error(reply.message));
      case "report":
        if (reply.id !== this.running?.id) return;
        if (reply.isLast) this.running.resolve(reply.report);
        else if (reply.report) this.running.update(reply.report);
        return;
      case "failed":
        if (reply.id === this.running?.id) this.running.reject(new Error(reply.message));
    }
  }
}
