// A visitor of the page "Play" who knows the rules and wins material: games against weak networks come to an end.

import assert from "node:assert/strict";
// The board's own packages, which scripts/web fetches.
import { Chess } from "../../coordinator/web/node_modules/chessops/dist/esm/chess.js";
import { parseFen } from "../../coordinator/web/node_modules/chessops/dist/esm/fen.js";
import { makeSan, parseSan } from "../../coordinator/web/node_modules/chessops/dist/esm/san.js";
import { makeSquare, makeUci, squareRank } from "../../coordinator/web/node_modules/chessops/dist/esm/util.js";
import { moves } from "./board.mjs";

const WORTH = { pawn: 1, knight: 3, bishop: 3, rook: 5, queen: 9, king: 0 };

const positionOf = (fen) => Chess.fromSetup(parseFen(fen).unwrap()).unwrap();

export const START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/** What the page says when a game has ended. */
const ENDED = /(Checkmate\. (White|Black) wins|(Stalemate|Insufficient material|Threefold repetition|Fifty-move rule)\. The game is drawn)\.$/;

/** Waits until the visitor is to move, and gives that position; undefined if the game has ended. */
async function next(page, side) {
  const status = await page.waitForFunction(([turn, ended]) => {
    const text = document.getElementById("status").textContent;
    return text.endsWith(turn) || new RegExp(ended).test(text) ? text : undefined;
  }, [`${side} to move.`, ENDED.source]);
  return ENDED.test(await status.jsonValue()) ? undefined : positionOf(await page.textContent("#fen"));
}

/** Plays a game from the start to its end, which the page names. */
export async function playGame(page, side, make) {
  await page.selectOption("#strength", "0");
  await page.selectOption("#side", side.toLowerCase());
  for (let position = await next(page, side); position; position = await next(page, side)) {
    const before = (await moves(page)).length;
    await make(chooseMove(position));
    await page.waitForFunction((n) => document.querySelectorAll("#sheet button").length > n, before);
  }
  const played = await moves(page);
  const last = follow(positionOf(START), played);
  const status = await page.innerText("#status");
  assert.ok(played.length > 20, `a game of ${played.length} plies`);
  assert.equal(status.includes("Checkmate"), last.isCheckmate(), status);
  if (last.isCheckmate()) assert.match(status, last.turn === "white" ? /Black wins/ : /White wins/);
  const [sheet, current] = await Promise.all(["#moves", "#sheet [aria-current]"].map((part) => page.locator(part).boundingBox()));
  assert.ok(current.y >= sheet.y && current.y + current.height <= sheet.y + sheet.height, "the sheet shows the last move");
}

/** A move in the forms that the page takes. */
function chooseMove(position) {
  const rated = legalMoves(position).map((move) => ({ move, worth: worthOf(position, move) }));
  const { move } = rated.reduce((best, other) => (other.worth > best.worth ? other : best));
  return {
    from: makeSquare(move.from), to: makeSquare(move.to), promotion: move.promotion, uci: makeUci(move), san: makeSan(position, move),
  };
}

/** The position after moves of a score sheet; it throws if one is not legal. */
function follow(position, sans) {
  for (const san of sans) {
    const move = parseSan(position, san);
    if (!move) throw new Error(`${san} is not legal`);
    position.play(move);
  }
  return position;
}

/** Mate above all, then material after the best capture in answer, then checks and pawns that come closer to promotion. */
function worthOf(position, move) {
  const next = after(position, move);
  if (next.isCheckmate()) return 1_000;
  if (next.isEnd()) return -1_000;
  const answers = legalMoves(next).map((answer) => gain(next, answer));
  const isPawn = position.board.getRole(move.from) === "pawn";
  const advance = isPawn ? Math.abs(squareRank(move.to) - (position.turn === "white" ? 0 : 7)) : 0;
  return gain(position, move) - Math.max(0, ...answers) + (next.isCheck() ? 0.2 : 0) + 0.1 * advance;
}

function gain(position, { to, promotion }) {
  const taken = position.board.get(to);
  return (taken && taken.color !== position.turn ? WORTH[taken.role] : 0) + (promotion ? WORTH[promotion] - 1 : 0);
}

function after(position, move) {
  const next = position.clone();
  next.play(move);
  return next;
}

function legalMoves(position) {
  const moves = [];
  for (const [from, targets] of position.allDests()) {
    for (const to of targets) {
      const isPromotion = position.board.getRole(from) === "pawn" && [0, 7].includes(squareRank(to));
      moves.push({ from, to, ...(isPromotion && { promotion: "queen" }) });
    }
  }
  return moves;
}
