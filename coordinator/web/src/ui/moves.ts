// The score sheet.

import type { GameRecord } from "../chess/record";
import { create, element } from "./elements";

export class MoveSheet {
  private readonly sheet = element("moves", HTMLElement);
  private readonly body = element("sheet", HTMLTableSectionElement);

  constructor(private readonly chosen: (ply: number) => void) {}

  show(record: GameRecord): void {
    const { fullmoves, turn } = record.start.position;
    const first = turn === "white" ? 0 : 1;
    const rows: HTMLTableRowElement[] = [];
    record.all.forEach(({ san }, index) => {
      const half = index + first;
      if (half % 2 === 0 || index === 0) {
        rows.push(create("tr", {}, create("th", { scope: "row" }, String(fullmoves + Math.floor(half / 2)))));
        if (half % 2 === 1) rows[0]!.append(create("td"));
      }
      rows[rows.length - 1]!.append(create("td", {}, this.link(san, index + 1, record.ply)));
    });
    const hadFocus = this.body.contains(document.activeElement);
    this.body.replaceChildren(...rows);
    this.sheet.hidden = rows.length === 0;
    const current = this.body.querySelector<HTMLElement>("[aria-current]");
    if (hadFocus) (current ?? this.sheet).focus({ preventScroll: true });
    if (current) this.scrollTo(current);
  }

  private link(san: string, ply: number, shown: number): HTMLButtonElement {
    const link = create("button", { type: "button", ...(ply === shown && { "aria-current": "true" }) }, san);
    link.addEventListener("click", () => this.chosen(ply));
    return link;
  }

  private scrollTo(current: HTMLElement): void {
    const [move, sheet] = [current.getBoundingClientRect(), this.sheet.getBoundingClientRect()];
    const isVisible = move.top >= sheet.top && move.bottom <= sheet.bottom;
    if (!isVisible) this.sheet.scrollTop += move.top - sheet.top - sheet.height / 2;
  }
}
