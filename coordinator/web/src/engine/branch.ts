// A search tree's most visited part, to be drawn (crates/engine/src/branch.rs).

import { makeSan } from "chessops/san";
import { type Edge, mateAfter, type Node, proven } from "./node";
import { flipped, type Valued, wdlOf } from "./wdl";

/** A move that was searched; its value is for whoever makes it. */
export interface Branch extends Valued {
  readonly san: string;
  readonly visits: number;
  /** The moves after it that are shown, the most visited first. */
  readonly children: Branch[];
}

interface Visited {
  readonly edge: Edge;
  readonly child: Node;
}

/** The root's branches with the `count` most visited nodes below it. */
export function mostVisited(root: Node, count: number): Branch[] {
  const chosen = new Set<Node>();
  const queue = visited(root);
  // A node has no fewer visits than those below it, so the chosen ones hang together.
  while (chosen.size < count && queue.length > 0) {
    queue.sort((a, b) => b.child.visits - a.child.visits);
    const { child } = queue.shift()!;
    chosen.add(child);
    queue.push(...visited(child));
  }
  return branches(root, chosen);
}

function branches(node: Node, chosen: ReadonlySet<Node>): Branch[] {
  return visited(node).filter(({ child }) => chosen.has(child))
    .sort((a, b) => b.child.visits - a.child.visits)
    .map(({ edge, child }) => {
      const after = proven(child.proof) ?? wdlOf(child.q, child.draw);
      return {
        san: makeSan(node.entry.position, edge.move),
        visits: child.visits,
        value: flipped(after),
        mate: mateAfter(child.proof),
        children: branches(child, chosen),
      };
    });
}

function visited(node: Node): Visited[] {
  return node.edges.flatMap((edge) => (edge.child && edge.child.visits > 0 ? [{ edge, child: edge.child }] : []));
}
