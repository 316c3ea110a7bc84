// The board: chessground, with promotion.

import { Chessground } from "chessground";
import type { Api } from "chessground/api";
import type { DrawShape } from "chessground/draw";
import type { Key } from "chessground/types";
import { normalizeMove } from "chessops/chess";
import { chessgroundDests, chessgroundMove } from "chessops/compat";
import { makeFen } from "chessops/fen";
import { type Color, isNormal, type NormalMove } from "chessops/types";
import { makeSquare, parseSquare } from "chessops/util";
import type { GameHistory } from "../chess/history";
import { isPromotion } from "../chess/moves";
import { choosePromotion } from "./promotion";

/** What the board shows. */
export interface BoardView {
  readonly game: GameHistory;
  readonly last: NormalMove | undefined;
  /** Who may move a piece: the side to move, or nobody. */
  readonly isMovable: boolean;
}

/** A move that is drawn, thicker the larger its share. */
export interface Arrow {
  readonly move: NormalMove;
  /** 0 to 1. */
  readonly share: number;
  /** One of chessground's colours. */
  readonly brush: "green" | "blue" | "purple" | "red";
}

export class Board {
  private readonly ground: Api;
  private view: BoardView | undefined;
  /** Closes the promotion menu. */
  private menu = new AbortController();

  constructor(
    private readonly frame: HTMLElement,
    place: HTMLElement,
    private readonly played: (move: NormalMove) => void,
  ) {
    this.ground = Chessground(place, {
      coordinates: true,
      animation: { enabled: !matchMedia("(prefers-reduced-motion: reduce)").matches, duration: 150 },
      highlight: { lastMove: true, check: true },
      movable: { free: false, showDests: true, events: { after: (from, to) => void this.moved(from, to) } },
      premovable: { enabled: false },
      drawable: { enabled: false, visible: true },
    });
  }

  get orientation(): Color {
    return this.ground.state.orientation;
  }

  turn(orientation: Color): void {
    this.menu.abort();
    this.ground.set({ orientation });
    // The pawn whose promotion was asked for goes back.
    if (this.view) this.show(this.view);
  }

  show(view: BoardView): void {
    if (!this.view || !isSameChoice(this.view, view)) this.menu.abort();
    this.view = view;
    const { position } = view.game;
    this.ground.set({
      fen: makeFen(position.toSetup()),
      turnColor: position.turn,
      check: position.isCheck() ? position.turn : false,
      lastMove: view.last ? keys(view.last) : [],
      movable: {
        color: view.isMovable ? position.turn : undefined,
        dests: view.isMovable ? chessgroundDests(position) : new Map(),
      },
    });
    this.ground.state.dom.elements.wrap.setAttribute("aria-label", describe(view.game));
  }

  arrows(arrows: readonly Arrow[]): void {
    this.ground.setAutoShapes(arrows.map(({ move, share, brush }): DrawShape => {
      const [orig, dest] = keys(move);
      return { orig: orig!, dest: dest!, brush, modifiers: { lineWidth: 4 + 10 * share } };
    }));
  }

  private async moved(from: Key, to: Key): Promise<void> {
    const { view } = this;
    if (!view) return;
    const { position } = view.game;
    const squares = { from: parseSquare(from)!, to: parseSquare(to)! };
    if (!isPromotion(position, squares.from, squares.to)) {
      const move = normalizeMove(position, squares);
      if (isNormal(move)) this.played(move);
      return;
    }
    this.menu = new AbortController();
    const { signal } = this.menu;
    const promotion = await choosePromotion(this.frame, squares.to, position.turn, this.orientation, signal);
    if (promotion) this.played({ ...squares, promotion });
    else if (!signal.aborted) this.show(view);
  }
}

/** Whether the same moves can be made in the same position. */
function isSameChoice(a: BoardView, b: BoardView): boolean {
  const fen = ({ game }: BoardView): string => makeFen(game.position.toSetup());
  return a.isMovable === b.isMovable && fen(a) === fen(b);
}

/** Castling is shown as the king's and the rook's squares. */
function keys(move: NormalMove): Key[] {
  return chessgroundMove(move);
}

function describe({ position }: GameHistory): string {
  const place = (color: Color): string =>
    [...position.board].filter(([, piece]) => piece.color === color)
      .map(([square, { role }]) => `${role} ${makeSquare(square)}`).join(", ");
  return `White: ${place("white")}. Black: ${place("black")}.`;
}
