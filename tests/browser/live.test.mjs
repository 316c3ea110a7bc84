// How pages renew themselves: when their stream of events comes and goes, and what is in use meanwhile.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withShowcase } from "./showcase.mjs";

const EVENTS = "**/api/v1/events";
/** Longer than a page waits before it connects again, and than a hidden page keeps its stream. */
const LONG = 70_000;

const site = withShowcase();

/** The overview, with a clock that the test can put forward, its streams in `streams` and the number of their failures. */
async function openOverview() {
  const view = await site.open();
  const { page } = view;
  await page.clock.install();
  await page.addInitScript(() => {
    globalThis.streams = [];
    globalThis.failures = 0;
    globalThis.EventSource = class extends EventSource {
      constructor(...address) {
        super(...address);
        globalThis.streams.push(this);
        this.addEventListener("error", () => { globalThis.failures += 1; });
      }
    };
  });
  return view;
}

const isLive = (page) => page.locator("#live:not([hidden], .lost)", { hasText: "live" }).waitFor();

/** Waits until the latest stream is in a state, as EventSource counts them. */
const streamIs = (page, state) =>
  page.waitForFunction((expected) => globalThis.streams.at(-1).readyState === expected, state);
const [OPEN, CLOSED] = [1, 2];

const hide = (page, hidden) => page.evaluate((isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

const newest = (page) => page.locator("#latest tbody a").first().innerText();

/** Plays a job whose games are among the latest, which those of puzzles are not. */
async function play() {
  while (await site.showcase.more() === "puzzles");
}

/** Waits until something else than `old` is the newest game. */
const renews = (page, old) =>
  page.waitForFunction((before) => document.querySelector("#latest tbody a").innerText !== before, old);

describe("a page", () => {
  for (const status of [502, 429]) {
    test(`connects again after ${status}, and shows what came meanwhile`, async () => {
      const { page, visit, close } = await openOverview();
      await page.route(EVENTS, (route) => route.fulfill({ status }), { times: 1 });
      await visit("/");
      // The page may have connected again when somebody looks.
      await page.waitForFunction(() => globalThis.failures > 0);
      const old = await newest(page);
      await play();
      await page.clock.fastForward(LONG);
      await streamIs(page, OPEN);
      await isLive(page);
      await renews(page, old);
      await close();
    });
  }

  test("that is hidden gives up its stream, and shows what came once it is seen again", async () => {
    const { page, complaints, visit, close } = await openOverview();
    await visit("/");
    await isLive(page);
    await hide(page, true);
    await page.clock.fastForward(1_000);
    await streamIs(page, OPEN);
    await page.clock.fastForward(LONG);
    await streamIs(page, CLOSED);
    const old = await newest(page);
    await play();
    await hide(page, false);
    await streamIs(page, OPEN);
    await renews(page, old);
    assert.deepEqual(complaints, []);
    await close();
  });

  test("that is hidden for a moment keeps its stream", async () => {
    const { page, visit, close } = await openOverview();
    await visit("/");
    await isLive(page);
    await hide(page, true);
    await page.clock.fastForward(1_000);
    await hide(page, false);
    await page.clock.fastForward(LONG);
    await streamIs(page, OPEN);
    assert.equal(await page.evaluate(() => globalThis.streams.length), 1);
    await close();
  });

  test("that was asked for notices keeps its stream while it is hidden", async () => {
    const { page, visit, close } = await openOverview();
    await visit("/");
    await isLive(page);
    await page.locator("#notify").evaluate((button) => { button.dataset.on = "true"; });
    await hide(page, true);
    await page.clock.fastForward(LONG);
    await streamIs(page, OPEN);
    await close();
  });

  test("that is opened behind another one has no stream until it is seen", async () => {
    const { page, visit, close } = await openOverview();
    await page.addInitScript(() =>
      Object.defineProperty(document, "hidden", { configurable: true, get: () => true }));
    await visit("/");
    await streamIs(page, CLOSED);
    await hide(page, false);
    await streamIs(page, OPEN);
    await close();
  });
});

describe("a table", () => {
  test("that was clicked renews itself, and one that has the focus by keyboard does not", async () => {
    const { page, visit, close } = await openOverview();
    await visit("/");
    await isLive(page);
    const table = page.locator("#latest .scroll");
    const part = () => page.evaluate(() => document.activeElement.closest("[data-live]")?.id);
    await table.locator("th").first().click();
    assert.equal(await part(), "latest");
    const old = await newest(page);
    await play();
    await renews(page, old);
    // From the link before the table by Tab.
    await page.locator("#latest .more").focus();
    await page.keyboard.press("Tab");
    assert.equal(await part(), "latest");
    const shown = await newest(page);
    const games = await page.locator("#figures").innerText();
    await play();
    await page.waitForFunction((before) => document.getElementById("figures").innerText !== before, games);
    assert.equal(await newest(page), shown);
    await close();
  });
});
