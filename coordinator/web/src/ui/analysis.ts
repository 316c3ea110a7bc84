// What the network thinks of the position: evaluation bar, win, draw and loss, best lines.

import type { Color } from "chessops/types";
import type { GameEnd } from "../chess/history";
import type { Line, Report } from "../engine/report";
import { DRAW, flipped, LOSS, q, type Valued, WIN, type Wdl } from "../engine/wdl";
import { create, createSvg, element } from "./elements";

export class AnalysisPanel {
  private readonly bar = element("evaluation", HTMLElement);
  private readonly fill = element("evaluation-white", HTMLElement);
  private readonly found = element("found", HTMLElement);
  private readonly summary = element("summary", HTMLElement);
  private readonly lines = element("lines", HTMLTableSectionElement);
  private readonly threat = element("threat", HTMLElement);
  private readonly wdl = element("wdl", HTMLElement);

  /** Shows what was found for the side to move; all values are written as White sees them. */
  show(report: Report, turn: Color): void {
    const white = turn === "white" ? report.value : flipped(report.value);
    this.showBar(white, `evaluation: ${percent(white.win)} White wins, ${percent(white.draw)} draw`);
    this.wdl.replaceChildren(tally(white));
    const mate = report.mate === undefined ? "" : `, ${mateText(report.mate, turn)}`;
    this.summary.textContent = `White wins ${percent(white.win)}, draw ${percent(white.draw)}, Black wins `
      + `${percent(white.loss)}${mate}; ${report.visits.toLocaleString("en")} visits`
      + (report.evaluationsPerSecond > 0 ? `, ${Math.round(report.evaluationsPerSecond)} evaluations/s` : "");
    this.lines.replaceChildren(...report.lines.map((line) => row(line, turn)));
  }

  /** Says what is threatened; nothing if there is no text. */
  showThreat(text: string, move = ""): void {
    this.threat.hidden = text === "";
    this.threat.replaceChildren(text, create("b", {}, move));
  }

  setVisible(isVisible: boolean): void {
    this.found.hidden = !isVisible;
    this.bar.hidden = !isVisible;
  }

  /** Shows how a game ended. */
  showEnd({ winner }: GameEnd): void {
    this.clear("The game is over.");
    if (winner === "white") this.showBar(WIN, "result: White wins");
    else if (winner === "black") this.showBar(LOSS, "result: Black wins");
    else this.showBar(DRAW, "result: draw");
  }

  /** Says why there is nothing to show. */
  clear(reason: string): void {
    this.bar.setAttribute("aria-label", "evaluation");
    this.summary.textContent = reason;
    this.wdl.replaceChildren();
    this.lines.replaceChildren();
  }

  orient(orientation: Color): void {
    this.bar.classList.toggle("flipped", orientation === "black");
  }

  private showBar(white: Wdl, label: string): void {
    this.fill.style.height = `${100 * (white.win + white.draw / 2)}%`;
    this.bar.setAttribute("aria-label", label);
  }
}

function row(line: Line, turn: Color): HTMLTableRowElement {
  const [first, ...rest] = line.san;
  return create("tr", {},
    create("td", {}, create("b", {}, first ?? ""), rest.length > 0 ? ` ${rest.join(" ")}` : ""),
    create("td", { class: "n" }, valueText(line, turn)),
    create("td", { class: "n" }, line.visits.toLocaleString("en")),
    create("td", { class: "n" }, percent(line.prior)));
}

/** A value as White sees it: of a move that `turn` makes. */
export function valueText({ value, mate }: Valued, turn: Color): string {
  if (mate !== undefined) return mateText(mate, turn);
  return signed(turn === "white" ? q(value) : -q(value));
}

function tally({ win, draw, loss }: Wdl): SVGElement {
  const chart = createSvg("svg", {
    class: "tally", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": "expected result",
  });
  chart.append(
    createSvg("rect", { class: "side-white", width: 100 * win, height: 6 }),
    createSvg("rect", { class: "draw", x: 100 * win, width: 100 * draw, height: 6 }),
    createSvg("rect", { class: "side-black", x: 100 * (win + draw), width: 100 * loss, height: 6 }),
  );
  return chart;
}

const percent = (share: number): string => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

function signed(value: number): string {
  const digits = Math.abs(value).toFixed(2);
  return digits === "0.00" ? digits : `${value < 0 ? "−" : "+"}${digits}`;
}

/** `#3`: White mates in three moves, `#−3`: Black does. */
function mateText(mate: number, turn: Color): string {
  const white = turn === "white" ? mate : -mate;
  return `#${white < 0 ? "−" : ""}${Math.abs(white)}`;
}
