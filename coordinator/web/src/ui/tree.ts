// The most visited part of the search tree, as a picture that opens and folds.

import type { Color } from "chessops/types";
import { opposite } from "chessops/util";
import type { Branch } from "../engine/branch";
import { valueText } from "./analysis";
import { create, createSvg, element } from "./elements";

/** A branch on the page. It stays when the search goes on, so that what is open stays open and the focus where it is. */
interface Twig {
  readonly item: HTMLLIElement;
  readonly row: Row;
  readonly below: Twigs;
}

/** Its elements stay, too: one that goes between a press and a release of the mouse is not clicked. */
interface Row {
  readonly whole: HTMLElement;
  readonly san: HTMLElement;
  readonly value: HTMLElement;
  readonly visits: HTMLElement;
  readonly bar: SVGElement;
}

type Twigs = Map<string, Twig>;

export class TreeView {
  private readonly outer = element("tree", HTMLDetailsElement);
  private readonly top = element("branches", HTMLUListElement);
  private readonly twigs: Twigs = new Map();

  /** `opened` is called when the visitor opens the picture. */
  constructor(opened: () => void) {
    this.outer.addEventListener("toggle", () => {
      if (this.outer.open) opened();
    });
  }

  /** Shows the branches of a position with `turn` to move. A folded picture is not drawn. */
  show(branches: readonly Branch[], turn: Color): void {
    if (!this.outer.open) return;
    grow(this.top, this.twigs, branches, { turn, most: Math.max(...branches.map(({ visits }) => visits)) });
  }
}

interface Scale {
  readonly turn: Color;
  /** Visits of the widest bar. */
  readonly most: number;
}

/** Brings a list up to date. */
function grow(list: HTMLUListElement, twigs: Twigs, branches: readonly Branch[], scale: Scale): void {
  const wanted = new Set(branches.map(({ san }) => san));
  for (const [san, { item }] of twigs) {
    if (wanted.has(san)) continue;
    item.remove();
    twigs.delete(san);
  }
  branches.forEach((branch, place) => {
    const twig = twigs.get(branch.san) ?? sprout();
    twigs.set(branch.san, twig);
    fill(twig, branch, scale, place === 0);
    const there = list.children[place] ?? null;
    if (there !== twig.item) keepingFocus(() => list.insertBefore(twig.item, there));
  });
}

function sprout(): Twig {
  const [san, value, visits] = [create("b"), create("span", { class: "n" }), create("span", { class: "n" })];
  const bar = createSvg("rect", { class: "fill", height: 6 });
  const chart = createSvg("svg", { class: "bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  chart.append(bar);
  const whole = create("div", { class: "row" }, san, chart, value, visits);
  return { item: create("li", {}, whole), row: { whole, san, value, visits, bar }, below: new Map() };
}

function fill({ item, row, below }: Twig, branch: Branch, { turn, most }: Scale, isBest: boolean): void {
  row.san.textContent = branch.san;
  row.value.textContent = valueText(branch, turn);
  row.visits.textContent = branch.visits.toLocaleString("en");
  row.bar.setAttribute("width", String(100 * branch.visits / most));
  const details = item.querySelector(":scope > details");
  if (branch.children.length === 0) {
    if (details) item.replaceChildren(row.whole);
    return;
  }
  const list = details?.querySelector<HTMLUListElement>(":scope > ul") ?? create("ul");
  if (!details) {
    const made = create("details", {}, create("summary", {}, row.whole), list);
    made.open = isBest;
    item.replaceChildren(made);
  }
  grow(list, below, branch.children, { turn: opposite(turn), most });
}

/** An element that is moved loses the focus. */
function keepingFocus(move: () => void): void {
  const focused = document.activeElement;
  move();
  if (focused instanceof HTMLElement && focused !== document.activeElement) focused.focus({ preventScroll: true });
}
