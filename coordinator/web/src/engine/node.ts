// Nodes of a search tree, and what is proven of them (crates/engine/src/tree, crates/engine/src/tree/proof.rs).

import type { NormalMove } from "chessops/types";
import type { HistoryEntry } from "../chess/history";
import { DRAW, LOSS, q, WIN, type Wdl } from "./wdl";

/** What is known of a node's position. */
export type NodeKind = "new" | "asked" | "open" | "mated" | "drawn" | "repeated";

/** What is proven of a position, for its mover. `plies` to the mate at most; 0: is mated. */
export type Proof =
  | { readonly result: "open" }
  | { readonly result: "drawn" }
  | { readonly result: "won" | "lost"; readonly plies: number };

export const OPEN: Proof = { result: "open" };

export interface Edge {
  readonly move: NormalMove;
  prior: number;
  child: Node | undefined;
}

export class Node {
  kind: NodeKind = "new";
  visits = 0;
  /** Mean of win minus loss over the visits, for this node's mover. */
  q = 0;
  /** Mean probability of a draw over the visits. */
  draw = 0;
  /** Walks through this node whose leaves are not evaluated yet. */
  inFlight = 0;
  proof: Proof = OPEN;
  /** For a repetition: plies back to the earlier occurrence. */
  cycle = 0;
  /** The legal moves; once open, the highest prior first. */
  edges: Edge[] = [];

  constructor(readonly entry: HistoryEntry) {}

  /** A position in which the mover is mated, and that was not visited. */
  static mated(entry: HistoryEntry): Node {
    const node = new Node(entry);
    [node.kind, node.proof, node.q] = ["mated", { result: "lost", plies: 0 }, q(LOSS)];
    return node;
  }

  addVisit(value: Wdl): void {
    this.visits += 1;
    this.q += (q(value) - this.q) / this.visits;
    this.draw += (value.draw - this.draw) / this.visits;
  }

  /** Makes a leaf one that waits for its evaluation. */
  ask(moves: readonly NormalMove[]): void {
    this.kind = "asked";
    this.edges = moves.map((move) => ({ move, prior: 0, child: undefined }));
  }

  /** Gives the legal moves their priors. */
  open(priors: Float32Array): void {
    this.kind = "open";
    this.edges.forEach((edge, index) => {
      edge.prior = priors[index]!;
    });
    this.edges.sort((a, b) => b.prior - a.prior);
  }

  /** The mover's value if no evaluation is needed. */
  terminal(): Wdl | undefined {
    return proven(this.proof) ?? valueByRule(this.kind);
  }
}

/** The mover's value, if something is proven. */
export function proven(proof: Proof): Wdl | undefined {
  return { won: WIN, drawn: DRAW, lost: LOSS, open: undefined }[proof.result];
}

function valueByRule(kind: NodeKind): Wdl | undefined {
  if (kind === "mated") return LOSS;
  return kind === "drawn" || kind === "repeated" ? DRAW : undefined;
}

/** What the rules prove of a node. A repetition within the search is a good guess, and proves nothing. */
export function proofByRule(kind: NodeKind): Proof {
  if (kind === "mated") return { result: "lost", plies: 0 };
  return kind === "drawn" ? { result: "drawn" } : OPEN;
}

/** What follows for a node from its moves (MCTS-solver: Winands, Björnsson and Saito, 2008). */
export function proofOfMoves(edges: readonly Edge[]): Proof {
  let [fastest, slowest, drawn, all] = [Infinity, -1, false, edges.length > 0];
  for (const { child } of edges) {
    const after = child?.proof ?? OPEN;
    if (after.result === "open") all = false;
    else if (after.result === "drawn") drawn = true;
    else if (after.result === "lost") fastest = Math.min(fastest, after.plies);
    else slowest = Math.max(slowest, after.plies);
  }
  if (fastest < Infinity) return { result: "won", plies: fastest + 1 };
  if (!all) return OPEN;
  return drawn ? { result: "drawn" } : { result: "lost", plies: slowest + 1 };
}

/** Moves to the mate that is proven of a position: negative if its mover is mated. */
export function movesToMate(proof: Proof): number | undefined {
  if (proof.result === "won") return Math.ceil(proof.plies / 2);
  return proof.result === "lost" ? -Math.floor(proof.plies / 2) : undefined;
}

/** The same before a move that leads to such a position, for whoever makes it. */
export function mateAfter(proof: Proof): number | undefined {
  if (proof.result === "lost") return movesToMate({ result: "won", plies: proof.plies + 1 });
  return proof.result === "won" ? movesToMate({ result: "lost", plies: proof.plies + 1 }) : undefined;
}
