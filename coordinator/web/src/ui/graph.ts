// The graph over the game: what White may expect, ply by ply.

import { createSvg, element } from "./elements";

/** What is known of a game. */
export interface GameValues {
  /** White's expected score in each position, 0 to 1; undefined where nothing is known. */
  readonly scores: readonly (number | undefined)[];
  /** The ply that is shown. */
  readonly shown: number;
}

const HEIGHT = 100;

export class GameGraph {
  private readonly figure = element("graph", HTMLElement);
  private readonly button = element("review", HTMLButtonElement);
  private readonly progress = element("reviewed", HTMLElement);
  private readonly known = createSvg("path", { class: "black" });
  private readonly white = createSvg("path", { class: "white" });
  private readonly middle = createSvg("path", { class: "middle" });
  private readonly cursor = createSvg("path", { class: "cursor" });
  private readonly curve = createSvg("svg", { class: "curve", preserveAspectRatio: "none", role: "img" });
  private plies = 1;

  /** `chosen` gets the ply that is clicked; `toggled` is called by the button that starts and stops the game's analysis. */
  constructor(chosen: (ply: number) => void, toggled: () => void) {
    this.curve.append(this.known, this.white, this.middle, this.cursor);
    this.figure.prepend(this.curve);
    this.button.addEventListener("click", toggled);
    this.curve.addEventListener("click", (event) => {
      const box = this.curve.getBoundingClientRect();
      chosen(Math.floor((this.plies * (event.clientX - box.left)) / box.width));
    });
  }

  hide(): void {
    this.figure.hidden = true;
  }

  show({ scores, shown }: GameValues): void {
    this.figure.hidden = false;
    this.plies = scores.length;
    const bars = scores.flatMap((score, ply) => (score === undefined ? [] : [{ ply, height: (HEIGHT * score).toFixed(1) }]));
    this.curve.setAttribute("viewBox", `0 0 ${scores.length} ${HEIGHT}`);
    this.curve.setAttribute("aria-label",
      `White's expected score, ply by ply: ${bars.length} of ${scores.length} positions are evaluated`);
    this.known.setAttribute("d", bars.map(({ ply }) => `M${ply} 0h1v${HEIGHT}h-1z`).join(""));
    this.white.setAttribute("d", bars.map(({ ply, height }) => `M${ply} ${HEIGHT}v-${height}h1v${height}z`).join(""));
    this.middle.setAttribute("d", `M0 ${HEIGHT / 2}H${scores.length}`);
    this.cursor.setAttribute("d", `M${shown + 0.5} 0V${HEIGHT}`);
  }

  /** Shows whether the game is being analysed, and how far that is. */
  showReview(isRunning: boolean, progress = ""): void {
    this.button.textContent = isRunning ? "Stop" : "Analyse the game";
    this.progress.textContent = progress;
  }
}
