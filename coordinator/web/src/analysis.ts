// Analysis: what the network thinks of the position on the board, and of the whole game.

import type { Chess } from "chessops/chess";
import { GameHistory, type HistoryEntry } from "./chess/history";
import { afterPass } from "./chess/pass";
import { GameRecord } from "./chess/record";
import type { Engine } from "./engine/engine";
import type { Line, Report } from "./engine/report";
import { flipped, type Wdl } from "./engine/wdl";
import { AnalysisPanel } from "./ui/analysis";
import type { Arrow, Board } from "./ui/board";
import { element } from "./ui/elements";
import { GameGraph } from "./ui/graph";
import { TreeView } from "./ui/tree";

/** Analysis of a position ends after so many visits. */
const POSITION_VISITS = 10_000;
/** Visits of each position when the whole game is analysed. */
const GAME_VISITS = 50;
/** Visits for a threat. */
const THREAT_VISITS = 100;
/** Thickness of a threat's arrow, as that of a move with this share of the visits. */
const THREAT_SHARE = 0.5;
/** Lines that are drawn as arrows. */
const ARROWS = 3;
/** Moves with a smaller share of the visits get no arrow. */
const LEAST_SHARE = 0.05;
/** Moves with a smaller share of the policy get no arrow. */
const LEAST_PRIOR = 0.01;

/** What analysis asks of the page. */
export interface Page {
  step(ply: number): void;
  /** Shows the position again and starts what is to be searched in it. */
  refresh(): void;
}

export class Analysis {
  readonly panel = new AnalysisPanel();
  private readonly toggle = element("analyse", HTMLInputElement);
  private readonly tree = new TreeView(() => this.draw());
  private readonly policy = element("policy", HTMLInputElement);
  private readonly threats = element("threats", HTMLInputElement);
  private readonly graph: GameGraph;
  private isLoaded = false;
  private record = new GameRecord();
  private game: GameHistory = this.record.history();
  /** What was found in the positions of the game. */
  private reports = new WeakMap<HistoryEntry, Report>();
  /** What the opponent of the mover threatens. */
  private threatened = new WeakMap<HistoryEntry, Line>();
  /** Whether the whole game is analysed, before the position on the board is. */
  private isReviewing = false;

  constructor(private readonly engine: Engine, private readonly board: Board, page: Page) {
    this.graph = new GameGraph((ply) => page.step(ply), () => {
      this.isReviewing = !this.isReviewing;
      page.refresh();
    });
    this.toggle.addEventListener("change", () => {
      this.isReviewing = false;
      page.refresh();
    });
    this.policy.addEventListener("change", () => this.draw());
    this.threats.addEventListener("change", () => page.refresh());
  }

  get isOn(): boolean {
    return this.toggle.checked;
  }

  /** What is known of the position on the board. */
  private get shown(): Report | undefined {
    return this.isOn && this.isLoaded ? this.reports.get(this.game.entry) : undefined;
  }

  /** Forgets what another network found. */
  forget(): void {
    this.reports = new WeakMap();
    this.threatened = new WeakMap();
  }

  /** Shows what is known of the position on the board. */
  show(record: GameRecord, game: GameHistory, isLoaded: boolean): void {
    if (record !== this.record) this.isReviewing = false;
    [this.record, this.game, this.isLoaded] = [record, game, isLoaded];
    this.panel.setVisible(this.isOn);
    const end = game.end();
    const known = this.shown;
    if (end && !game.position.hasDests()) this.panel.showEnd(end);
    else if (known) this.panel.show(known, game.position.turn);
    else this.panel.clear(isLoaded ? "Thinking …" : "No network is loaded.");
    this.draw();
    this.graph.showReview(this.isReviewing);
  }

  /** Searches the game, if that is wanted, and the position on the board, until something else is searched. */
  async run(): Promise<void> {
    if (this.isReviewing && !(await this.review())) return;
    if (!this.game.position.hasDests()) return;
    if (this.threats.checked && !(await this.searchThreat())) return;
    await this.search(this.record.ply, POSITION_VISITS);
  }

  /** Keeps what was found in a position of the game, and shows it. */
  keep(entry: HistoryEntry, report: Report): void {
    const known = this.reports.get(entry);
    if (known && known.visits > report.visits && !isProven(report)) return;
    this.reports.set(entry, report);
    if (!this.isOn) return;
    if (entry === this.game.entry) this.panel.show(report, this.game.position.turn);
    this.draw();
  }

  /** Searches all positions of the game; false if something else is searched before all are. */
  private async review(): Promise<boolean> {
    const { length } = this.record;
    for (let ply = 0; ply <= length; ply++) {
      this.graph.showReview(true, `${ply} of ${length + 1} positions.`);
      if (this.record.history(ply).position.hasDests() && !(await this.search(ply, GAME_VISITS))) return false;
    }
    this.isReviewing = false;
    this.graph.showReview(false);
    return true;
  }

  /** Searches a position of the game unless that was done; false if something else is searched before it ends. */
  private async search(ply: number, visits: number): Promise<boolean> {
    const { entry } = this.record.history(ply);
    const known = this.reports.get(entry);
    if (known && (known.visits >= visits || isProven(known))) return true;
    const moves = this.record.all.slice(0, ply).map(({ move }) => move);
    const keep = (report: Report): void => this.keep(entry, report);
    const found = await this.engine.search(this.record.start, moves, { player: "analyst", visits }, keep);
    if (found) keep(found);
    return found !== undefined;
  }

  /** Searches what is threatened unless that was done; false if something else is searched before it ends. */
  private async searchThreat(): Promise<boolean> {
    const { entry, position } = this.game;
    const passed = this.threatened.has(entry) ? undefined : afterPass(position);
    if (!passed) return true;
    const budget = { player: "threat", visits: THREAT_VISITS } as const;
    const found = await this.engine.search(GameHistory.at(passed), [], budget, () => {});
    const line = found?.lines[0];
    if (!line) return found !== undefined;
    this.threatened.set(entry, line);
    this.draw();
    return true;
  }

  /** Draws the arrows and the graph. */
  private draw(): void {
    this.tree.show(this.shown?.tree ?? [], this.game.position.turn);
    const drawn = this.policy.checked ? policy : bestLines;
    const threat = this.showThreat();
    this.board.arrows([...(this.shown ? drawn(this.shown) : []), ...(threat ? [threat] : [])]);
    if (!this.isOn || this.record.length === 0) return this.graph.hide();
    const plies = Array.from({ length: this.record.length + 1 }, (_, ply) => ply);
    this.graph.show({ scores: plies.map((ply) => this.whiteScore(ply)), shown: this.record.ply });
  }

  /** Shows what is threatened, and gives its arrow. */
  private showThreat(): Arrow | undefined {
    const { entry, position } = this.game;
    const isShown = this.isOn && this.isLoaded && this.threats.checked && position.hasDests();
    const line = isShown ? this.threatened.get(entry) : undefined;
    if (line) this.panel.showThreat("Threat: ", line.san[0]);
    else this.panel.showThreat(isShown ? whyNoThreat(position) : "");
    return line && { move: line.move, share: THREAT_SHARE, brush: "red" };
  }

  /** White's expected score in a position of the game. */
  private whiteScore(ply: number): number | undefined {
    const game = this.record.history(ply);
    const end = ply === this.record.length ? game.end() : undefined;
    if (end) return { white: 1, black: 0, none: 0.5 }[end.winner ?? "none"];
    const report = this.reports.get(game.entry);
    return report && score(game.position.turn === "white" ? report.value : flipped(report.value));
  }
}

const score = ({ win, draw }: Wdl): number => win + draw / 2;

const isProven = ({ mate }: Report): boolean => mate !== undefined;

/** Why no threat is known. */
function whyNoThreat(position: Chess): string {
  if (position.isCheck()) return "No threat is shown in check.";
  return afterPass(position) ? "Threat: …" : "No threat is shown where the opponent would have no move.";
}

/** The best lines' first moves, thicker the more of the visits they have. */
function bestLines(report: Report): Arrow[] {
  return report.lines.slice(0, ARROWS)
    .map(({ move, visits }, rank): Arrow => ({ move, share: visits / Math.max(report.visits, 1), brush: rank === 0 ? "green" : "blue" }))
    .filter(({ share }) => share > LEAST_SHARE);
}

/** The likeliest moves by the policy alone, thicker the likelier. */
function policy(report: Report): Arrow[] {
  return report.policy
    .map(({ move, prior }): Arrow => ({ move, share: prior, brush: "purple" }))
    .filter(({ share }) => share > LEAST_PRIOR);
}
