// The game on the page: its moves, and the ply that is shown.

import { makeFen } from "chessops/fen";
import { makeSan } from "chessops/san";
import type { Color, NormalMove } from "chessops/types";
import { GameHistory } from "./history";

/** Whose moves the visitor plays. */
export type Side = Color | "both";

export interface Played {
  readonly move: NormalMove;
  readonly san: string;
}

export class GameRecord {
  private readonly played: Played[] = [];
  private shown = 0;
  /** The game with all moves that were played. */
  private whole: GameHistory;

  constructor(start: GameHistory = GameHistory.fromFen()) {
    this.whole = start;
  }

  /** Number of moves. */
  get length(): number {
    return this.played.length;
  }

  /** The ply that is shown. */
  get ply(): number {
    return this.shown;
  }

  get isAtEnd(): boolean {
    return this.shown === this.played.length;
  }

  get start(): GameHistory {
    return this.whole.upTo(0);
  }

  get all(): readonly Played[] {
    return this.played;
  }

  /** The moves up to the ply that is shown. */
  get moves(): NormalMove[] {
    return this.played.slice(0, this.shown).map(({ move }) => move);
  }

  /** The move that led to the ply that is shown. */
  get last(): NormalMove | undefined {
    return this.played[this.shown - 1]?.move;
  }

  /** The game up to a ply, the one that is shown if none is given. */
  history(ply = this.shown): GameHistory {
    return this.whole.upTo(ply);
  }

  /** The FEN of the position that is shown. */
  get fen(): string {
    return makeFen(this.history().position.toSetup());
  }

  /** Plays a move from the ply that is shown; what was played after it is gone. */
  play(move: NormalMove): void {
    this.truncate();
    this.played.push({ move, san: makeSan(this.whole.position, move) });
    this.whole.push(move);
    this.shown += 1;
  }

  show(ply: number): void {
    this.shown = Math.min(Math.max(ply, 0), this.played.length);
  }

  /** Takes back to the last position with `side` to move. From an earlier ply it only steps to the end. */
  takeBack(side: Side): void {
    if (!this.isAtEnd) return this.show(this.length);
    do {
      this.show(this.shown - 1);
    } while (side !== "both" && this.history().position.turn !== side && this.shown > 0);
    this.truncate();
  }

  /** Drops the moves after the ply that is shown. */
  truncate(): void {
    this.played.length = this.shown;
    this.whole = this.history();
  }
}
