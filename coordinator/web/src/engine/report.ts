// What a search found, as the page shows it.

import { makeSanAndPlay } from "chessops/san";
import type { Chess } from "chessops/chess";
import type { NormalMove } from "chessops/types";
import { type Branch, mostVisited } from "./branch";
import { type Edge, mateAfter, movesToMate, type Node, proven } from "./node";
import type { Searcher } from "./searcher";
import { flipped, type Valued, wdlOf } from "./wdl";

/** Longest line that is written out. */
const LINE_PLIES = 12;

/** One of the root's moves and what is expected after it. */
export interface Line extends Valued {
  readonly move: NormalMove;
  /** The moves, this one first. */
  readonly san: string[];
  readonly visits: number;
  readonly prior: number;
}

/** A move, and the policy's share of it. */
export interface Prior {
  readonly move: NormalMove;
  readonly prior: number;
}

export interface Report extends Valued {
  readonly visits: number;
  /** The best first. */
  readonly lines: Line[];
  /** The policy alone: the likeliest moves, the first the likeliest. */
  readonly policy: Prior[];
  /** The most visited part of the tree. */
  readonly tree: Branch[];
  readonly evaluationsPerSecond: number;
}

/**
 * The best lines and likeliest moves, `lines` of each, and the `nodes` most visited nodes. Lines without visits follow by
 * their priors.
 */
export function report(
  searcher: Searcher,
  { lines, nodes }: { lines: number; nodes: number },
  evaluationsPerSecond: number,
): Report | undefined {
  const { root, proof } = searcher;
  if (root?.kind !== "open") return undefined;
  return {
    visits: searcher.visits,
    value: proven(proof) ?? wdlOf(root.q, root.draw),
    mate: movesToMate(proof),
    lines: ranked(root).slice(0, lines).map((edge) => line(root, edge)),
    policy: likeliest(root).slice(0, lines),
    tree: mostVisited(root, nodes),
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

function likeliest(root: Node): Prior[] {
  return root.edges.map(({ move, prior }) => ({ move, prior })).sort((a, b) => b.prior - a.prior);
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
    edge = next?.child && (next.child.visits > 0 || next.child.kind === "mated") ? next : undefined;
  }
  return moves;
}
