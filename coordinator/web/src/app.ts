// The page: a game between the visitor and a network.

import type { Color, NormalMove } from "chessops/types";
import { opposite } from "chessops/util";
import { Analysis } from "./analysis";
import type { GameHistory } from "./chess/history";
import { GameRecord, type Side } from "./chess/record";
import { readBudget } from "./engine/budget";
import { Engine } from "./engine/engine";
import { messageOf } from "./errors";
import { Board } from "./ui/board";
import { DeviceField } from "./ui/device";
import { create, element } from "./ui/elements";
import { bindKeys, MoveField } from "./ui/keyboard";
import { MoveSheet } from "./ui/moves";
import { chosenNetwork, opponentName } from "./ui/networks";

export class App {
  private readonly run = element("play", HTMLElement).dataset["run"]!;
  private readonly status = element("status", HTMLElement);
  private readonly network = element("network", HTMLSelectElement);
  private readonly strength = element("strength", HTMLSelectElement);
  private readonly side = element("side", HTMLSelectElement);
  private readonly fen = element("fen", HTMLElement);
  private readonly engine = new Engine((status) => this.device.show(status));
  private readonly device = new DeviceField((choice) => this.engine.choose(choice));
  private readonly sheet = new MoveSheet((ply) => this.step(ply));
  private readonly board = new Board(element("frame", HTMLElement), element("board", HTMLElement), (move) => this.play(move));
  private readonly analysis = new Analysis(this.engine, this.board, {
    step: (ply) => this.step(ply),
    refresh: () => this.refresh(),
  });
  private readonly field = new MoveField(() => this.game, (move) => this.play(move));
  private record = new GameRecord();
  /** The game up to the ply that is shown. */
  private game: GameHistory = this.record.history();
  /** The option of the network that is loaded. */
  private loaded: HTMLOptionElement | undefined;

  constructor() {
    const bind = (id: string, action: () => void): void => element(id, HTMLElement).addEventListener("click", action);
    const steps = {
      first: () => this.step(0),
      back: () => this.step(this.record.ply - 1),
      next: () => this.step(this.record.ply + 1),
      last: () => this.step(this.record.length),
      flip: () => this.turn(opposite(this.board.orientation)),
      takeback: () => this.takeBack(),
      new: () => this.begin(new GameRecord(), this.chosenSide),
    };
    for (const [id, action] of Object.entries(steps)) bind(id, action);
    bindKeys({
      Home: steps.first, ArrowLeft: steps.back, ArrowRight: steps.next, End: steps.last, f: steps.flip, u: steps.takeback,
    });
    this.network.addEventListener("change", () => void this.load());
    this.strength.addEventListener("change", () => this.refresh());
    this.side.addEventListener("change", () => {
      if (this.chosenSide !== "both") this.turn(this.chosenSide);
      this.refresh();
    });
  }

  /** Loads the chosen network and lets it move if it is its turn. If that fails the last one plays on. */
  async load(): Promise<void> {
    const previous = this.loaded;
    const chosen = this.network.selectedOptions[0]!;
    const hadFocus = document.activeElement === this.network;
    this.loaded = undefined;
    this.network.disabled = true;
    this.refresh();
    try {
      const { name, file } = await chosenNetwork(this.run, chosen);
      await this.engine.load(file, this.sayLoading(`Loading ${name} …`, file.bytes));
      this.loaded = chosen;
      this.analysis.forget();
      this.refresh();
    } catch (error) {
      this.loaded = previous;
      // With no option selected, each can be chosen again.
      this.network.selectedIndex = previous?.index ?? -1;
      this.fail(error);
      this.refresh(`${messageOf(error).replace(/\.?$/, ".")} `);
    } finally {
      this.network.disabled = false;
      if (hadFocus && document.activeElement === document.body) this.network.focus();
    }
  }

  /** Begins with a game whose end is shown. */
  begin(record: GameRecord, side: Side): void {
    this.record = record;
    this.side.value = side;
    if (side !== "both") this.turn(side);
    this.refresh();
  }

  say(text: string): void {
    this.status.textContent = text;
    this.status.classList.remove("problem");
  }

  /** Shows how much of a file has come. The percentages are for the eye: a screen reader would read out each. */
  private sayLoading(text: string, bytes: number): (received: number) => void {
    const share = create("span", { "aria-hidden": "true" });
    const show = (): void => {
      this.say(text);
      this.status.append(share);
    };
    show();
    return (received) => {
      share.textContent = ` ${Math.round((100 * received) / bytes)} %`;
      if (!share.isConnected) show();
    };
  }

  fail(error: unknown): void {
    this.say(messageOf(error));
    this.status.classList.add("problem");
  }

  get chosenSide(): Side {
    const { value } = this.side;
    return value === "white" || value === "black" ? value : "both";
  }

  private get isNetworksTurn(): boolean {
    return this.chosenSide !== "both" && this.game.position.turn !== this.chosenSide;
  }

  private turn(orientation: Color): void {
    this.board.turn(orientation);
    this.analysis.panel.orient(orientation);
  }

  private step(ply: number): void {
    this.record.show(ply);
    this.refresh();
  }

  private play(move: NormalMove): void {
    this.record.play(move);
    this.refresh();
  }

  private takeBack(): void {
    this.record.takeBack(this.chosenSide);
    this.refresh();
  }

  /** Shows the position and starts what is to be searched in it. The status line begins with `news`. */
  private refresh(news = ""): void {
    this.engine.stop();
    this.game = this.record.history();
    const end = this.game.end();
    const canMove = !this.isNetworksTurn && this.game.position.hasDests();
    this.board.show({ game: this.game, last: this.record.last, isMovable: canMove });
    this.sheet.show(this.record);
    this.field.enable(canMove);
    this.fen.textContent = this.record.fen;
    this.analysis.show(this.record, this.game, this.loaded !== undefined);
    if (end) this.say(`${news}${capital(end.reason)}. ${end.winner ? `${capital(end.winner)} wins.` : "The game is drawn."}`);
    if (!this.loaded) return;
    if (!end && this.isNetworksTurn && this.record.isAtEnd) return void this.answer(this.loaded, news);
    if (!end) this.say(`${news}${capital(this.game.position.turn)} to move.`);
    if (this.analysis.isOn) void this.analysis.run().catch((error: unknown) => this.fail(error));
  }

  /** Lets the network move. The status line begins with `news`. */
  private async answer(opponent: HTMLOptionElement, news: string): Promise<void> {
    const { record, game: { entry } } = this;
    const name = opponentName(opponent);
    this.say(`${news}${name.charAt(0).toUpperCase()}${name.slice(1)} is thinking …`);
    const budget = { player: "opponent", ...readBudget(this.strength.value) } as const;
    try {
      const found = await this.engine.search(record.start, record.moves, budget, (report) => this.analysis.keep(entry, report));
      if (!found) return;
      this.analysis.keep(entry, found);
      const { move, san } = found.lines[0]!;
      record.play(move);
      this.refresh(`${news}${san[0]!}. `);
    } catch (error) {
      this.fail(error);
    }
  }
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
