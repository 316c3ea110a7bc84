// PUCT selection with the defaults of Rookery's own search (crates/engine/src/search/puct.rs).

import type { Edge, Node } from "./node";

const C_INIT = 1.25;
const C_BASE = 19_652;
/** An unvisited move is worth its parent's value less this times the root of the visited policy. */
const FPU_REDUCTION = 0.33;

interface Candidate {
  readonly edge: Edge;
  readonly score: number;
}

/** `(c_init + ln((N + c_base + 1) / c_base)) * sqrt(N)`. */
export function explorationFactor(visits: number): number {
  return (C_INIT + Math.log((visits + C_BASE + 1) / C_BASE)) * Math.sqrt(visits);
}

/**
 * The edge with the highest `Q + U`; none if all moves lose. A visit under way counts as a visit without a value, so
 * that the next walk of the batch goes elsewhere (virtual visits).
 */
export function select(node: Node): Edge | undefined {
  const factor = explorationFactor(node.visits + node.inFlight);
  let best: Candidate | undefined;
  let unvisited: Candidate | undefined;
  let seen = 0;
  for (const edge of node.edges) {
    const { child, prior } = edge;
    if (child === undefined) {
      unvisited = better(unvisited, { edge, score: factor * prior });
      // Edges are in order of their priors.
      break;
    }
    const explore = (factor * prior) / (1 + child.visits + child.inFlight);
    if (child.visits === 0) {
      unvisited = better(unvisited, { edge, score: explore });
      continue;
    }
    seen += prior;
    // The opponent can win after this move.
    if (child.proof.result !== "won") best = better(best, { edge, score: explore - child.q });
  }
  const firstPlay = node.q - FPU_REDUCTION * Math.sqrt(seen);
  if (best && unvisited && firstPlay + unvisited.score > best.score) return unvisited.edge;
  return (best ?? unvisited)?.edge;
}

function better(best: Candidate | undefined, other: Candidate): Candidate {
  return best === undefined || other.score > best.score ? other : best;
}
