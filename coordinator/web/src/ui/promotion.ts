// The choice of what a pawn becomes.

import type { Color, Role } from "chessops/types";
import { squareFile } from "chessops/util";
import { create } from "./elements";

const ROLES: readonly Role[] = ["queen", "knight", "rook", "bishop"];

/** Asks on the promotion square's file; undefined if the visitor thinks better of it, or `signal` closes the menu. */
export function choosePromotion(
  frame: HTMLElement,
  square: number,
  color: Color,
  orientation: Color,
  signal: AbortSignal,
): Promise<Role | undefined> {
  const file = orientation === "white" ? squareFile(square) : 7 - squareFile(square);
  return new Promise((resolve) => {
    const closed = new AbortController();
    const close = (role?: Role): void => {
      closed.abort();
      menu.close();
      menu.remove();
      resolve(role);
    };
    const buttons = ROLES.map((role) => {
      const button = create("button", { type: "button", "aria-label": role, title: role, class: `${color} ${role}` });
      button.addEventListener("click", () => close(role));
      return button;
    });
    const choices = create("div", { class: "choices" }, ...buttons);
    choices.classList.toggle("from-below", color !== orientation);
    choices.style.left = `${12.5 * file}%`;
    const menu = create("dialog", { class: "promotion", "aria-label": "Promote to" }, choices);
    menu.addEventListener("click", (event) => {
      if (event.target === menu) close();
    });
    // The focus may be anywhere: the rest of the page stays usable.
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    }, { signal: closed.signal });
    signal.addEventListener("abort", () => close(), { signal: closed.signal });
    frame.append(menu);
    // Not modal: it stands over the board.
    menu.show();
    buttons[0]!.focus();
  });
}
