// What a search found, as the page shows it.

import { makeSanAndPlay } from "chessops/san";
import type { Chess } from "chessops/chess";
import type { NormalMove } from "chessops/types";
import { type Edge, type Node, type Proof, proven } from "./node";
import type { Searcher } from "./searcher";
import { flipped, wdlOf, type Wdl } from "./wdl";

/** Longest line that is written out. */
const LINE_PLIES = 12;

/** One of the root's moves and what is expected after it. */
export interface Line {
  readonly move: NormalMove;
  /** The moves, this one first. */
  readonly san: string[];
  readonly visits: number;
  readonly prior: number;
  /** For the root's mover. */
  readonly value: Wdl;
  /** Moves to a forced mate: negative if the root's mover is mated. */
  readonly mate: number | undefined;
}

export interface Report {
  readonly visits: number;
  /** For the root's mover. */
  readonly value: Wdl;
  readonly mate: number | undefined;
  /** The best first. */
  readonly lines: Line[];
  readonly evaluationsPerSecond: number;
}

/** The best lines, `count` of them; moves without visits follow by their priors. */
export function report(searcher: Searcher, count: number, evaluationsPerSecond: number): Report | undefined {
  const { root, proof } = searcher;
  if (root?.kind !== "open") return undefined;
  return {
    visits: searcher.visits,
    value: proven(proof) ?? wdlOf(root.q, root.draw),
    mate: movesToMate(proof),
    lines: ranked(root).slice(0, count).map((edge) => line(root, edge)),
    evaluationsPerSecond,
  };
}

/** A node's moves, the best first: mates, then by visits, value and prior, then those that lose. */
export function ranked(node: Node): Edge[] {
  return [...node.edges].sort((a, b) => {
    const [x, y] = [rank(a), rank(b)];
    const place = x.findIndex((number, index) => number !== y[index]);
    return place < 0 ? 0 : y[place]! - x[place]!;
  });
}

function rank({ child, prior }: Edge): number[] {
  if (child?.proof.result === "lost") return [1, -child.proof.plies];
  if (child?.proof.result === "won") return [-1, child.proof.plies];
  return child ? [0, child.visits, -child.q, prior] : [0, 0, -2, prior];
}

function line(root: Node, edge: Edge): Line {
  const { child, prior, move } = edge;
  const searched = child && child.visits > 0 ? flipped(wdlOf(child.q, child.draw)) : wdlOf(root.q, root.draw);
  const after = child && proven(child.proof);
  return {
    move,
    san: sanLine(root.entry.position.clone(), edge),
    visits: child?.visits ?? 0,
    prior,
    value: after ? flipped(after) : searched,
    mate: child && mateAfter(child.proof),
  };
}

function sanLine(position: Chess, first: Edge): string[] {
  const moves: string[] = [];
  let edge: Edge | undefined = first;
  while (edge && moves.length < LINE_PLIES) {
    moves.push(makeSanAndPlay(position, edge.move));
    const next: Edge | undefined = edge.child && ranked(edge.child)[0];
    edge = next?.child && next.child.visits > 0 ? next : undefined;
  }
  return moves;
}

function movesToMate(proof: Proof): number | undefined {
  if (proof.result === "won") return Math.ceil(proof.plies / 2);
  return proof.result === "lost" ? -Math.floor(proof.plies / 2) : undefined;
}

/** The same before a move that leads to such a position. */
function mateAfter(proof: Proof): number | undefined {
  if (proof.result === "lost") return movesToMate({ result: "won", plies: proof.plies + 1 });
  return proof.result === "won" ? movesToMate({ result: "lost", plies: proof.plies + 1 }) : undefined;
}
