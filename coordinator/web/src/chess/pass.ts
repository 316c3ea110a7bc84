// A position after its mover has passed: what the opponent threatens is the best move in it.

import { Chess } from "chessops/chess";
import { opposite } from "chessops/util";

/** The same position with the other side to move; undefined if that side then has no move, or could take the king. */
export function afterPass(position: Chess): Chess | undefined {
  const setup = { ...position.toSetup(), turn: opposite(position.turn), epSquare: undefined };
  const passed = Chess.fromSetup(setup).unwrap((legal) => legal, () => undefined);
  return passed?.hasDests() ? passed : undefined;
}
