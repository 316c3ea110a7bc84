// Search of one game with several leaves a batch (crates/engine/src/search/game).
//
//              gather                   Evaluator               apply
//   Searcher ------------> questions ------------> evaluations ------------> Searcher
//      ^  walks, counts visits under way              expands, backs up         |
//      '------------------------------------------------------------------------'

import type { NormalMove } from "chessops/types";
import { GameHistory } from "../chess/history";
import { findMate } from "../chess/mate";
import { legalMoves } from "../chess/moves";
import type { Evaluation, Evaluator, Question } from "./evaluator";
import { Node, OPEN, type Proof, proofByRule, proofOfMoves, proven } from "./node";
import { select } from "./puct";
import { softmax } from "./softmax";
import { flipped, q, WIN, type Wdl } from "./wdl";

/** Of every position, as in Rookery's UCI engine and in lc0: the search looks at more moves. */
const POLICY_TEMPERATURE = 1.36;

/** Walks of a batch that may meet a leaf under way before the batch is closed. */
const MOST_COLLISIONS = 8;

interface Leaf {
  readonly path: Node[];
  readonly question: Question;
}

interface Gathered {
  readonly leaves: Leaf[];
  /** Walks that met a leaf under way. */
  readonly collisions: Node[][];
}

export class Searcher {
  /** Stands at the root. */
  private game = GameHistory.fromFen();
  private tree: Node | undefined;
  /** What is proven of the root: a search of a root goes on although its own node counts as open. */
  private rootProof: Proof = OPEN;

  constructor(private readonly evaluator: Evaluator) {}

  get root(): Node | undefined {
    return this.tree;
  }

  get proof(): Proof {
    return this.rootProof;
  }

  /** Visits of the root's moves, kept ones included. */
  get visits(): number {
    return (this.tree?.edges ?? []).reduce((sum, { child }) => sum + (child?.visits ?? 0), 0);
  }

  /** Makes the position on the board the root and keeps what is known of it. */
  comeTo(game: GameHistory): void {
    if (game.continues(this.game)) {
      for (let back = game.plies - this.game.plies - 1; back >= 0; back--) {
        this.follow(game.lookBack(back)!.key);
      }
    } else {
      this.tree = undefined;
    }
    this.game = game.clone();
    // Play may go on after a draw that nobody claimed.
    if (this.tree && ["mated", "drawn", "repeated"].includes(this.tree.kind)) this.tree = undefined;
    this.tree ??= new Node(game.entry);
    this.tree.proof = OPEN;
    forgetRepetitions(this.tree);
    this.rootProof = proofOfMoves(this.tree.edges);
  }

  /**
   * Evaluates the root, then visits its moves until `visits` are made, `stopped` holds, or the result is proven. A mate in
   * one is seen without a visit.
   * `batch` says how many leaves the next batch may have.
   */
  async search(
    visits: number,
    batch: () => number,
    stopped: () => boolean,
    progress: () => Promise<void>,
  ): Promise<void> {
    const isDone = (): boolean =>
      this.tree?.terminal() !== undefined
      || (this.tree?.kind === "open" && (this.rootProof.result !== "open" || this.visits >= visits));
    while (!stopped() && !isDone()) {
      const before = this.tree?.visits ?? 0;
      const wanted = this.tree?.kind === "open" ? Math.min(batch(), visits - this.visits) : 1;
      const gathered = this.gather(wanted);
      try {
        const questions = gathered.leaves.map((leaf) => leaf.question);
        const answers = questions.length > 0 ? await this.evaluator.evaluate(questions) : [];
        this.apply(gathered, answers);
      } catch (error) {
        this.tree = undefined;
        throw error;
      }
      await progress();
      if (gathered.leaves.length === 0 && this.tree?.visits === before) return;
    }
  }

  /** Walks until `wanted` visits are done or under way. */
  private gather(wanted: number): Gathered {
    const gathered: Gathered = { leaves: [], collisions: [] };
    let known = 0;
    while (
      gathered.leaves.length + known < wanted
      && gathered.collisions.length < MOST_COLLISIONS
      && (this.rootProof.result === "open" || this.tree?.kind === "new")
    ) {
      const path = [this.tree!];
      const value = this.walk(path, gathered);
      for (let ply = 1; ply < path.length; ply++) this.game.pop();
      if (value === "nowhere") break;
      if (value === undefined) continue;
      known += 1;
      backUp(path, value);
      this.conclude(path);
    }
    return gathered;
  }

  /** Walks to a leaf; gives its value if no evaluation is needed, and puts it into the batch otherwise. */
  private walk(path: Node[], gathered: Gathered): Wdl | "nowhere" | undefined {
    for (;;) {
      const node = path[path.length - 1]!;
      const terminal = node.terminal();
      if (terminal) return terminal;
      if (node.kind === "asked") {
        depart(path);
        gathered.collisions.push(path);
        return path.length === 1 ? "nowhere" : undefined;
      }
      if (node.kind === "new") return this.look(path, gathered);
      const edge = select(node);
      if (!edge) return "nowhere";
      if (edge.child) {
        this.game.pushEntry(edge.child.entry);
      } else {
        this.game.push(edge.move);
        edge.child = new Node(this.game.entry);
      }
      path.push(edge.child);
    }
  }

  /** Looks at a leaf for the first time. */
  private look(path: Node[], gathered: Gathered): Wdl | undefined {
    const leaf = path[path.length - 1]!;
    const moves = legalMoves(this.game.position);
    this.classify(path, leaf, moves);
    const terminal = leaf.terminal();
    if (terminal) return terminal;
    const isWon = this.addMate(leaf, moves);
    if (path.length === 1) {
      this.rootProof = proofOfMoves(leaf.edges);
    } else if (isWon) {
      // It has no priors, and is looked at again if it becomes the root.
      leaf.kind = "new";
      return WIN;
    }
    depart(path);
    gathered.leaves.push({ path, question: this.evaluator.encode(this.game, moves) });
    return undefined;
  }

  /** Adds the position after a mating move to the node on the board, without a visit, if there is such a move. */
  private addMate(node: Node, moves: NormalMove[]): boolean {
    const mate = findMate(this.game.position, moves);
    const edge = node.edges.find(({ move }) => move === mate);
    if (!edge) return false;
    this.game.push(edge.move);
    edge.child = Node.mated(this.game.entry);
    this.game.pop();
    return true;
  }

  /** Sets the kind of a leaf. The root is always evaluated; a repetition within the search counts as drawn. */
  private classify(path: Node[], leaf: Node, moves: NormalMove[]): void {
    const before = path.slice(0, -1);
    const cycle = this.game.entry.repetitions > 0
      ? before.reverse().findIndex((node) => node.entry.key === leaf.entry.key) + 1
      : 0;
    if (moves.length === 0) {
      leaf.kind = this.game.position.isCheck() ? "mated" : "drawn";
    } else if (path.length === 1) {
      leaf.ask(moves);
    } else if (this.game.drawByRule()) {
      leaf.kind = "drawn";
    } else if (cycle > 0) {
      leaf.kind = "repeated";
      leaf.cycle = cycle;
    } else {
      leaf.ask(moves);
    }
  }

  private apply(gathered: Gathered, answers: readonly Evaluation[]): void {
    gathered.leaves.forEach(({ path }, index) => {
      const { logits, value } = answers[index]!;
      arrive(path);
      path[path.length - 1]!.open(softmax(logits, POLICY_TEMPERATURE));
      backUp(path, value);
    });
    gathered.collisions.forEach(arrive);
  }

  /** Draws the conclusions from a leaf that ends the game, or has a mate in one. */
  private conclude(path: Node[]): void {
    const leaf = path[path.length - 1]!;
    const byRule = proofByRule(leaf.kind);
    const proof = byRule.result === "open" ? proofOfMoves(leaf.edges) : byRule;
    if (proof.result === "open" || leaf.proof.result !== "open") return;
    leaf.proof = proof;
    for (let place = path.length - 2; place > 0; place--) {
      const node = path[place]!;
      const value = node.proof.result === "open" ? proven(proofOfMoves(node.edges)) : undefined;
      if (!value) return;
      node.proof = proofOfMoves(node.edges);
      settle(path.slice(0, place + 1), value);
    }
    this.rootProof = proofOfMoves(path[0]!.edges);
  }

  /** Follows the move that led to the position with this key. */
  private follow(key: string): void {
    this.tree = this.tree?.edges.find(({ child }) => child?.entry.key === key)?.child;
  }
}

const depart = (path: Node[]): void => path.forEach((node) => { node.inFlight += 1; });
const arrive = (path: Node[]): void => path.forEach((node) => { node.inFlight -= 1; });

/** Counts a visit along a path, `value` being the leaf mover's. What is proven passes on what is proven. */
function backUp(path: readonly Node[], value: Wdl): void {
  let current = value;
  for (const node of [...path].reverse()) {
    current = proven(node.proof) ?? current;
    node.addVisit(current);
    current = flipped(current);
  }
}

/** Gives the last node of a path its proven value, and corrects the means before it. */
function settle(path: readonly Node[], value: Wdl): void {
  const settled = path[path.length - 1]!;
  const change = { q: q(value) - settled.q, draw: value.draw - settled.draw };
  [settled.q, settled.draw] = [q(value), value.draw];
  for (const node of path.slice(0, -1).reverse()) {
    if (node.proof.result !== "open") return;
    change.q = -change.q;
    const share = settled.visits / Math.max(node.visits, 1);
    node.q += change.q * share;
    node.draw += change.draw * share;
  }
}

/** What repeated a position that is now before the root is looked at again. */
function forgetRepetitions(node: Node, depth = 0): void {
  for (const edge of node.edges) {
    if (!edge.child) continue;
    if (edge.child.kind === "repeated" && edge.child.cycle > depth + 1) {
      edge.child = new Node(edge.child.entry);
    } else {
      forgetRepetitions(edge.child, depth + 1);
    }
  }
}
