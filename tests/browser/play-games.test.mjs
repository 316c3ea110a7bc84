// Whole games on the page "Play", and games without a connection.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PLAY, at, clickMove, movesAre, says, setUp, type } from "./board.mjs";
import { overflows, seriousFaults, withShowcase } from "./showcase.mjs";
import { START, playGame } from "./visitor.mjs";

const site = withShowcase();
const { on } = site;

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
    const view = await site.open();
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
