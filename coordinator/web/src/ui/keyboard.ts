// Keys that step through the game, as in the game viewer, and the field for typed moves.

import type { NormalMove } from "chessops/types";
import type { GameHistory } from "../chess/history";
import { readMove } from "../chess/moves";
import { element } from "./elements";

/** Calls what a key stands for, unless the visitor is typing. */
export function bindKeys(actions: Readonly<Record<string, () => void>>): void {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.closest("input:not([type=checkbox]), textarea, select") !== null;
    const action = actions[event.key];
    if (!action || isTyping || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    action();
  });
}

/** Plays a move that is typed in SAN or UCI. */
export class MoveField {
  private readonly form = element("typing", HTMLFormElement);
  private readonly field = element("typed", HTMLInputElement);

  constructor(game: () => GameHistory, played: (move: NormalMove) => void) {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.field.readOnly) return;
      const move = readMove(game().position, this.field.value);
      this.field.setCustomValidity(move ? "" : "This is not a legal move here. Write Nf3, exd5, O-O or e2e4.");
      if (!move) {
        this.field.reportValidity();
        return;
      }
      this.field.value = "";
      played(move);
    });
    this.field.addEventListener("input", () => this.field.setCustomValidity(""));
  }

  /** A disabled field would lose the focus. */
  enable(isEnabled: boolean): void {
    this.field.readOnly = !isEnabled;
  }
}
