// Expected results, for a position's mover.

export interface Wdl {
  readonly win: number;
  readonly draw: number;
  readonly loss: number;
}

/** What is expected after a move, or in a position. */
export interface Valued {
  /** For whoever moves. */
  readonly value: Wdl;
  /** Moves to a forced mate: negative if whoever moves is mated. */
  readonly mate: number | undefined;
}

export const WIN: Wdl = { win: 1, draw: 0, loss: 0 };
export const DRAW: Wdl = { win: 0, draw: 1, loss: 0 };
export const LOSS: Wdl = { win: 0, draw: 0, loss: 1 };

/** Win minus loss. */
export const q = (value: Wdl): number => value.win - value.loss;

/** The same as the opponent sees it. */
export const flipped = ({ win, draw, loss }: Wdl): Wdl => ({ win: loss, draw, loss: win });

/** Of win minus loss and the probability of a draw. */
export function wdlOf(value: number, draw: number): Wdl {
  const decided = Math.max(0, 1 - draw);
  const win = Math.min(Math.max((decided + value) / 2, 0), 1);
  const loss = Math.min(Math.max((decided - value) / 2, 0), 1);
  return { win, draw, loss };
}
