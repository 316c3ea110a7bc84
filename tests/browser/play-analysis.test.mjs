// Analysis on the page "Play".

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PLAY, at, drawn, moves, says, setUp, type } from "./board.mjs";
import { overflows, seriousFaults, withShowcase } from "./showcase.mjs";

const site = withShowcase();
const { on } = site;

/** Colours of chessground's arrows. */
const [GREEN, PURPLE, RED] = ["#15781B", "#68217a", "#882020"];

const NARROW = { viewport: { width: 390, height: 800 } };
const WINDOWS = {
  wide: {}, dark: { colorScheme: "dark" }, narrow: NARROW, "narrow-dark": { ...NARROW, colorScheme: "dark" },
};

describe("analysis", () => {
  test("shows values, lines and arrows, of all positions that are looked at", () =>
    on(PLAY, "play-analysis", async (page) => {
      await says(page, "White to move.");
      await page.selectOption("#side", "both");
      await page.check("#analyse");
      await page.locator("#lines tr").nth(4).waitFor();
      assert.match(await page.innerText("#summary"), /White wins .*visits, \d+ evaluations\/s/);
      assert.ok(await page.locator("#evaluation").isVisible());
      await page.locator(".cg-shapes line").first().waitFor();
      await type(page, "e4");
      await page.waitForFunction(() => /^[a-hNBRQKO]/.test(document.querySelector("#lines td b")?.innerText ?? ""));
      assert.deepEqual(await moves(page), ["e4"], "both sides are the visitor's");
    }));

  test("is cleared in the next position, and a game's end shows the result", () =>
    on(at({ fen: "7k/8/5K2/8/8/8/8/6Q1 w - - 0 1" }), "play-analysis-end", async (page) => {
      await says(page, "White to move.");
      await page.selectOption("#side", "both");
      await page.check("#analyse");
      await page.locator("#lines tr").first().waitFor();
      await page.evaluate(() => {
        window.summaries = [];
        const [summary, fen] = ["summary", "fen"].map((id) => document.getElementById(id));
        const before = fen.textContent;
        // The search of the first position may still go on.
        new MutationObserver(() => {
          if (fen.textContent !== before) window.summaries.push(summary.textContent);
        }).observe(summary, { childList: true });
      });
      await type(page, "Qg2");
      await page.locator("#summary", { hasText: "visits" }).waitFor();
      assert.match((await page.evaluate(() => window.summaries))[0], /^Thinking/);
      await page.click("#takeback");
      await type(page, "Qg7");
      await page.locator("#summary", { hasText: /^The game is over\.$/ }).waitFor();
      assert.equal(await page.getAttribute("#evaluation", "aria-label"), "result: White wins");
      assert.equal(await page.locator("#evaluation-white").evaluate((fill) => fill.style.height), "100%");
    }));

  test("draws a graph over the game, whose positions can be clicked", () =>
    on(PLAY, "play-graph", async (page) => {
      await says(page, "White to move.");
      await setUp(page, "1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0");
      await says(page, "Checkmate. White wins.");
      assert.equal(await page.locator("#graph").isVisible(), false);
      await page.check("#analyse");
      const told = page.waitForFunction(() => / of 8 positions/.test(document.getElementById("reviewed").textContent));
      await page.click("#review");
      await told;
      const curve = page.getByRole("img", { name: "8 of 8 positions are evaluated" });
      await curve.waitFor();
      await page.locator("#review", { hasText: "Analyse the game" }).waitFor();
      const { width, height } = await curve.boundingBox();
      await curve.click({ position: { x: width * 2.5 / 8, y: height / 2 } });
      assert.deepEqual(await page.locator("#sheet [aria-current]").allInnerTexts(), ["e5"]);
      assert.match(await page.innerText("#summary"), /^White wins .* visits/, "what was found is shown again");
    }));

  test("finds a mate", () =>
    on(at({ fen: "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1" }), "play-analysis-mate", async (page) => {
      await says(page, "White to move.");
      await page.check("#analyse");
      await page.locator("#lines tr", { hasText: "#2" }).first().waitFor();
      assert.match(await page.innerText("#lines tr:first-child"), /^Ra6/);
    }));

  test("draws the policy alone, if that is wanted", () =>
    on(PLAY, "play-policy", async (page) => {
      await says(page, "White to move.");
      await page.check("#analyse");
      const arrows = (color) => page.locator(`.cg-shapes line[stroke="${color}"]`);
      await arrows(GREEN).waitFor({ state: "attached" });
      await page.check("#policy");
      await arrows(PURPLE).first().waitFor({ state: "attached" });
      await drawn(arrows(GREEN), 0);
      await page.uncheck("#policy");
      await arrows(GREEN).waitFor({ state: "attached" });
      await drawn(arrows(PURPLE), 0);
    }));

  test("shows threats, if that is wanted: a mate, and none in check", () =>
    on(at({ fen: "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 3 3" }), "play-threat", async (page) => {
      await says(page, "Black to move.");
      await page.check("#analyse");
      assert.equal(await page.locator("#threat").isVisible(), false);
      await page.check("#threats");
      await page.locator("#threat", { hasText: "Threat: Qxf7#" }).waitFor();
      await drawn(page.locator(`.cg-shapes line[stroke="${RED}"]`), 1);
      await page.selectOption("#side", "both");
      await type(page, "a6");
      await type(page, "Bxf7");
      await page.locator("#threat", { hasText: "No threat is shown in check." }).waitFor();
      await drawn(page.locator(`.cg-shapes line[stroke="${RED}"]`), 0);
      await page.click("#takeback");
      await page.locator("#threat", { hasText: /^Threat/ }).waitFor();
      await type(page, "Qxf7");
      await says(page, "Checkmate. White wins.");
      assert.equal(await page.locator("#threat").isVisible(), false);
    }));

  test("draws the tree, whose branches open and fold and stay so while it grows", () =>
    on(at({ network: "small", fen: "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1" }), "play-tree", async (page) => {
      await says(page, "White to move.");
      await page.check("#analyse");
      assert.equal(await page.locator("#branches").isVisible(), false);
      await page.locator("#tree > summary").click();
      const best = page.locator("#branches > li:first-child > details");
      await best.filter({ hasText: "exd5" }).waitFor();
      assert.equal(await best.getAttribute("open"), "");
      await best.locator("> summary").focus();
      await page.keyboard.press("Enter");
      const visits = () => best.locator("> summary .n").last().innerText();
      const before = await visits();
      await page.waitForFunction((old) => document.querySelector("#branches summary .n:last-child").innerText !== old, before);
      assert.equal(await best.getAttribute("open"), null);
      assert.equal(await page.evaluate(() => document.activeElement.closest("#branches") !== null), true);
      await best.locator("> summary").click();
      await best.locator("> ul > li").first().waitFor();
    }));

  for (const [name, options] of Object.entries(WINDOWS)) {
    test(`has nothing that axe finds serious, and fits the window, ${name}`, () =>
      on(PLAY, `play-analysis-${name}`, async (page) => {
        await says(page, "White to move.");
        await setUp(page, "1. e4 e5 2. Qh5 Nc6 3. Bc4");
        await page.check("#analyse");
        await page.check("#threats");
        await page.click("#review");
        await page.getByRole("img", { name: "6 of 6 positions are evaluated" }).waitFor();
        await page.locator("#tree > summary").click();
        await page.locator("#branches > li").nth(4).waitFor();
        await page.locator("#threat", { hasText: "Qxf7#" }).waitFor();
        assert.deepEqual(await seriousFaults(page), []);
        assert.equal(await overflows(page), false);
      }, options));
  }
});
