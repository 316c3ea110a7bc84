// A game so far: every position since the start, with repetitions, as common/src/chess/history.rs keeps it.

import { Chess } from "chessops/chess";
import { INITIAL_FEN, makeFen, parseFen } from "chessops/fen";
import type { Color, NormalMove } from "chessops/types";

/** One position of a game. */
export interface HistoryEntry {
  readonly position: Chess;
  /** Equal for positions that count as repetitions. */
  readonly key: string;
  /** How often this position stood on the board before. */
  readonly repetitions: number;
}

/** The draw that the rules give although there are legal moves. */
export type RuleDraw = "insufficient material" | "threefold repetition" | "fifty-move rule";

/** How a game ended. */
export interface GameEnd {
  readonly winner: Color | undefined;
  readonly reason: RuleDraw | "checkmate" | "stalemate";
}

export class GameHistory {
  private constructor(private readonly entries: HistoryEntry[]) {}

  /** A game that begins at a FEN; throws an `Error` that names what is wrong with it. */
  static fromFen(fen: string = INITIAL_FEN): GameHistory {
    const position = parseFen(fen.trim()).chain((setup) => Chess.fromSetup(setup)).unwrap(
      (position) => position,
      (error) => {
        throw new Error(`This is not a legal position: ${explain(error.message)}.`);
      },
    );
    return GameHistory.at(position);
  }

  static at(start: Chess): GameHistory {
    return new GameHistory([{ position: start, key: repetitionKey(start), repetitions: 0 }]);
  }

  clone(): GameHistory {
    return this.upTo(this.plies);
  }

  /** The first plies of this game. */
  upTo(plies: number): GameHistory {
    return new GameHistory(this.entries.slice(0, plies + 1));
  }

  get entry(): HistoryEntry {
    return this.entries[this.entries.length - 1]!;
  }

  get position(): Chess {
    return this.entry.position;
  }

  get start(): Chess {
    return this.entries[0]!.position;
  }

  /** Plies played since the start. */
  get plies(): number {
    return this.entries.length - 1;
  }

  /** The position `back` plies ago; 0 is the one on the board. */
  lookBack(back: number): HistoryEntry | undefined {
    return this.entries[this.plies - back];
  }

  /** Plays a legal move. */
  push(move: NormalMove): void {
    const position = this.position.clone();
    position.play(move);
    const key = repetitionKey(position);
    this.entries.push({ position, key, repetitions: this.countEarlier(key, position.halfmoves) });
  }

  /** Goes to a position that a move led to before, from the same position of the same game. */
  pushEntry(entry: HistoryEntry): void {
    this.entries.push(entry);
  }

  pop(): void {
    if (this.entries.length > 1) this.entries.pop();
  }

  /** Whether this game is `earlier` with no, one or more moves played. */
  continues(earlier: GameHistory): boolean {
    return this.plies >= earlier.plies
      && earlier.entries.every((entry, ply) => isSame(entry, this.entries[ply]!));
  }

  drawByRule(): RuleDraw | undefined {
    if (this.position.isInsufficientMaterial()) return "insufficient material";
    if (this.entry.repetitions >= 2) return "threefold repetition";
    if (this.position.halfmoves >= 100) return "fifty-move rule";
    return undefined;
  }

  /** How the rules have ended the game; mate and stalemate go before the counted rules. */
  end(): GameEnd | undefined {
    const { position } = this;
    if (!position.hasDests()) {
      return position.isCheck()
        ? { winner: position.turn === "white" ? "black" : "white", reason: "checkmate" }
        : { winner: undefined, reason: "stalemate" };
    }
    const reason = this.drawByRule();
    return reason && { winner: undefined, reason };
  }

  private countEarlier(key: string, reversible: number): number {
    // The new position is not in `entries` yet, so the same side was to move at every second entry from the end.
    const oldest = Math.max(0, this.entries.length - reversible);
    for (let at = this.entries.length - 4; at >= oldest; at -= 2) {
      const entry = this.entries[at]!;
      if (entry.key === key) return entry.repetitions + 1;
    }
    return 0;
  }
}

/** Side to move, pieces, castling rights and legal en passant captures. */
function repetitionKey(position: Chess): string {
  return makeFen(position.toSetup(), { epd: true });
}

function isSame(a: HistoryEntry, b: HistoryEntry): boolean {
  return a.key === b.key && a.position.halfmoves === b.position.halfmoves;
}

/** What chessops' codes mean. */
function explain(code: string): string {
  const reasons: Record<string, string> = {
    ERR_FEN: "it is not a FEN",
    ERR_BOARD: "the FEN's board is not eight ranks of eight squares",
    ERR_TURN: "the FEN does not say whose move it is",
    ERR_CASTLING: "the castling rights cannot be read",
    ERR_EP_SQUARE: "the en passant square cannot be read",
    ERR_HALFMOVES: "the halfmove clock is not a number",
    ERR_FULLMOVES: "the move number is not a number",
    ERR_EMPTY: "the board is empty",
    ERR_KINGS: "each side needs one king",
    ERR_OPPOSITE_CHECK: "the side that is not to move is in check",
    ERR_PAWNS_ON_BACKRANK: "a pawn stands on the first or last rank",
  };
  return reasons[code] ?? code;
}
