// The web worker: loads a network and searches, one position at a time. A new search ends the one before.

import { makeFen } from "chessops/fen";
import { GameHistory } from "../chess/history";
import { messageOf } from "../errors";
import { leavesFor } from "./budget";
import { type DeviceChoice, DeviceNetwork } from "./device";
import { loadFile } from "./download";
import { gpuObstacle, loadGpuNetwork } from "./gpu";
import { OnnxNetwork } from "./network";
import type { NetworkFile, Player, Reply, Request, SearchRequest } from "./protocol";
import { report } from "./report";
import { PROCESSOR } from "./runtime";
import { Searcher } from "./searcher";

/** Milliseconds between two reports. */
const REPORT_INTERVAL = 100;
/** Lines of a report, and nodes of its tree. */
const SHOWN = { lines: 5, nodes: 40 };

let network: DeviceNetwork | undefined;
let choice: DeviceChoice = "auto";
let searchers = new Map<Player, Searcher>();
/** The search that may go on. */
let current: number | undefined;
/** The end of what was asked for last. */
let queue: Promise<void> = Promise.resolve();

const reply = (message: Reply): void => postMessage(message);

addEventListener("message", ({ data }: MessageEvent<Request>) => {
  if (data.kind === "device") {
    choice = data.choice;
    void network?.choose(choice);
    return;
  }
  current = data.kind === "search" ? data.search.id : undefined;
  if (data.kind === "load") queue = queue.then(() => load(data.network));
  if (data.kind === "search") queue = queue.then(() => search(data.search));
});

/** Loads a network in place of the last one, which stays if that fails. */
async function load(file: NetworkFile): Promise<void> {
  try {
    const bytes = await loadFile(file, (received) => reply({ kind: "progress", received }));
    const source = { obstacle: gpuObstacle, load: () => loadGpuNetwork(bytes, file) };
    const processor = await OnnxNetwork.load(PROCESSOR, bytes, file);
    const previous = network;
    network = new DeviceNetwork(processor, source, (status) => reply({ kind: "device", status }));
    searchers = new Map();
    reply({ kind: "loaded" });
    void network.choose(choice);
    await previous?.release().catch(() => {});
  } catch (error) {
    reply({ kind: "not-loaded", message: messageOf(error) });
  }
}

async function search(request: SearchRequest): Promise<void> {
  const { id, player, visits, milliseconds = Infinity } = request;
  const deadline = performance.now() + milliseconds;
  try {
    if (!network) throw new Error("No network is loaded.");
    const evaluator = network;
    const searcher = searchers.get(player) ?? new Searcher(evaluator);
    searchers.set(player, searcher);
    searcher.comeTo(gameOf(request));
    const speed = speedometer(evaluator);
    const send = (isLast: boolean): void =>
      reply({ kind: "report", id, report: report(searcher, SHOWN, speed()), isLast });
    let reported = performance.now();
    const leaves = (): number => Math.min(leavesFor(request, speed()), evaluator.leaves);
    const isLate = (): boolean => searcher.root?.kind === "open" && performance.now() >= deadline;
    await searcher.search(visits, leaves, () => current !== id || isLate(), async () => {
      if (performance.now() - reported > REPORT_INTERVAL) {
        reported = performance.now();
        send(false);
      }
      await messagesArrived();
    });
    send(true);
  } catch (error) {
    reply({ kind: "failed", id, message: messageOf(error) });
  }
}

function gameOf({ start, moves }: SearchRequest): GameHistory {
  const game = GameHistory.fromFen(start);
  for (const move of moves) {
    if (!game.position.isLegal(move)) throw new Error(`An illegal move in ${makeFen(game.position.toSetup())}.`);
    game.push(move);
  }
  return game;
}

/** Evaluations a second from now on. */
function speedometer(network: DeviceNetwork): () => number {
  const { evaluations, milliseconds } = network;
  return () => (1000 * (network.evaluations - evaluations)) / Math.max(network.milliseconds - milliseconds, 1);
}

/** ONNX Runtime does not let go of the thread between evaluations: this lets a message through. */
function messagesArrived(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
