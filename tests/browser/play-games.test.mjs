// Whole games on the page "Play", and games without a connection.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PLAY, at, clickMove, moves, movesAre, says, setUp, type } from "./board.mjs";
import { Showcase, launch, open, overflows, seriousFaults, visit } from "./showcase.mjs";
import { chooseMove, follow, positionOf } from "./visitor.mjs";

let browser;
let showcase;

before(async () => {
  [browser, showcase] = await Promise.all([launch(), Showcase.start()]);
});

after(async () => {
  await browser?.close();
  await showcase?.stop();
});

const on = (...page) => visit({ browser, showcase }, ...page);
const fen = (page) => page.textContent("#fen");

const START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/** What the page says when a game has ended. */
const ENDED = /(Checkmate\. (White|Black) wins|(Stalemate|Insufficient material|Threefold repetition|Fifty-move rule)\. The game is drawn)\.$/;

/** Waits until the visitor is to move, and gives that position; undefined if the game has ended. */
async function next(page, side) {
  const status = await page.waitForFunction(([turn, ended]) => {
    const text = document.getElementById("status").textContent;
    return text.endsWith(turn) || new RegExp(ended).test(text) ? text : undefined;
  }, [`${side} to move.`, ENDED.source]);
  return ENDED.test(await status.jsonValue()) ? undefined : positionOf(await fen(page));
}

/** Plays a game from the start to its end, which the page names. */
async function playGame(page, side, make) {
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

describe("a whole game", () => {
  test("is played by mouse", () =>
    on(PLAY, "play-whole-mouse", async (page) => {
      await says(page, "White to move.");
      await playGame(page, "White", async ({ from, to, promotion }) => {
        await clickMove(page, from, to);
        if (promotion) await page.getByRole("button", { name: promotion }).click();
      });
    }));

  test("is played by keyboard, on a narrow and dark page", () =>
    on(PLAY, "play-whole-keyboard", async (page) => {
      await says(page, "White to move.");
      let count = 0;
      await playGame(page, "Black", async ({ san, uci }) => {
        count += 1;
        await page.focus("#typed");
        await page.keyboard.type(count % 2 === 0 ? san : uci);
        await page.keyboard.press("Enter");
      });
      assert.equal(await overflows(page), false);
      assert.deepEqual(await seriousFaults(page), []);
    }, { viewport: { width: 390, height: 800 }, colorScheme: "dark" }));
});

describe("without a connection", () => {
  test("a page that has loaded plays, promotes and analyses", async () => {
    const view = await open(browser, showcase.url);
    const { page } = view;
    const failed = [];
    page.context().on("requestfailed", (request) => failed.push(request.url()));
    await view.visit(at({ fen: "4k3/P7/8/8/8/8/8/4K3 w - - 0 1" }));
    await says(page, "White to move.");
    await page.waitForLoadState("networkidle");
    await page.context().setOffline(true);
    await clickMove(page, "a7", "a8");
    await page.getByRole("button", { name: "queen" }).click();
    await movesAre(page, 2);
    await says(page, "White to move.");
    await page.check("#analyse");
    await page.locator("#lines tr").nth(4).waitFor();
    await page.click("#review");
    await page.getByRole("img", { name: "3 of 3 positions are evaluated" }).waitFor();
    await view.shot("play-offline");
    await setUp(page, START);
    await type(page, "e4");
    await movesAre(page, 2);
    assert.deepEqual([failed, view.complaints], [[], []]);
    await view.close();
  });
});
