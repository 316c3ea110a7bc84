// The page "Play" on a graphics card, which SwiftShader imitates: slowly, but by the same interface.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PLAY, clickMove, moves, movesAre, says, setUp, type } from "./board.mjs";
import { SOFTWARE_WEBGPU, withShowcase } from "./showcase.mjs";
import { playGame } from "./visitor.mjs";

const site = withShowcase(...SOFTWARE_WEBGPU);

/** Lets the page's devices be destroyed by a message. */
const LOSABLE = `{
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...options) {
    const device = await request.apply(this, options);
    new BroadcastChannel("lose").onmessage = () => device.destroy();
    return device;
  };
}\n`;

/** Opens the page, with the runtimes that it fetches. */
async function openBoard() {
  const view = await site.open();
  const { page } = view;
  const runtimes = [];
  page.context().on("request", (request) => {
    if (request.url().endsWith(".wasm")) runtimes.push(request.url().includes("jspi") ? "gpu" : "processor");
  });
  await page.context().route("**/worker-*.js", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: LOSABLE + await response.text() });
  });
  await view.visit(PLAY);
  await page.locator("#status", { hasText: "White to move." }).waitFor();
  return { ...view, runtimes };
}

const computes = (page, words) => page.locator("#computed", { hasText: words }).waitFor();

const takeGpu = async (page) => {
  await page.selectOption("#device", "gpu");
  await computes(page, "Your graphics card computes the network.");
};

test("Chromium has WebGPU here: without it the tests below would test the processor", async () => {
  const view = await site.open();
  await view.visit(PLAY);
  const found = await view.page.evaluate(async () => ({
    adapter: (await navigator.gpu?.requestAdapter())?.info.architecture,
    suspends: "Suspending" in WebAssembly,
  }));
  assert.deepEqual(found, { adapter: "swiftshader", suspends: true });
  await view.close();
});

describe("the graphics card", () => {
  test("computes a game's moves if the visitor wants it, and the next visit too", async () => {
    const { page, runtimes, complaints, shot, close } = await openBoard();
    await takeGpu(page);
    assert.deepEqual(runtimes, ["processor", "gpu"]);
    await page.selectOption("#strength", "10");
    await type(page, "e4");
    await movesAre(page, 2);
    await type(page, "a3");
    await movesAre(page, 4);
    assert.equal(await page.getAttribute("#computed", "data-device"), "gpu");
    await shot("play-webgpu");
    await page.reload();
    await computes(page, /the graphics card is tried|Your graphics card computes/);
    assert.equal(await page.inputValue("#device"), "gpu");
    assert.deepEqual(complaints, []);
    await close();
  });

  test("computes a whole game", async () => {
    const { page, complaints, shot, close } = await openBoard();
    await takeGpu(page);
    await playGame(page, "White", ({ uci }) => type(page, uci));
    assert.equal(await page.getAttribute("#computed", "data-device"), "gpu");
    await shot("play-webgpu-whole");
    assert.deepEqual(complaints, []);
    await close();
  });

  test("computes a game from a position, with a promotion that is taken back, and analyses it", async () => {
    const { page, complaints, shot, close } = await openBoard();
    await takeGpu(page);
    await page.selectOption("#strength", "10");
    await setUp(page, "4k3/P7/8/8/8/8/8/4K3 w - - 0 1");
    await clickMove(page, "a7", "a8");
    await page.getByRole("button", { name: "rook" }).click();
    await movesAre(page, 2);
    assert.equal((await moves(page))[0], "a8=R+");
    await page.click("#takeback");
    assert.deepEqual(await moves(page), []);
    await says(page, "White to move.");
    await page.check("#analyse");
    await page.locator("#lines tr", { hasText: "a8=" }).first().waitFor();
    assert.equal(await page.getAttribute("#computed", "data-device"), "gpu");
    await shot("play-webgpu-analysis");
    assert.deepEqual(complaints, []);
    await close();
  });

  test("that is lost while it thinks is replaced by the processor, and the game goes on", async () => {
    const { page, close } = await openBoard();
    await takeGpu(page);
    await page.evaluate(() => {
      const status = document.getElementById("status");
      new MutationObserver(() => {
        if (status.textContent.includes("is thinking")) new BroadcastChannel("lose").postMessage("now");
      }).observe(status, { childList: true, characterData: true, subtree: true });
    });
    await type(page, "e4");
    await computes(page, "Your processor computes the network: the graphics card stopped.");
    await movesAre(page, 2);
    await type(page, "a3");
    await movesAre(page, 4);
    await page.selectOption("#device", "processor");
    await computes(page, /^Your processor computes the network\.$/);
    await page.selectOption("#device", "gpu");
    await computes(page, "Your processor computes the network: the graphics card failed.");
    await close();
  });

  test("that is only imitated is not taken by itself, nor is its runtime fetched", async () => {
    const { page, runtimes, complaints, close } = await openBoard();
    await computes(page, "Your processor computes the network: the browser only imitates a graphics card.");
    await type(page, "e4");
    await movesAre(page, 2);
    assert.deepEqual(runtimes, ["processor"]);
    assert.deepEqual(complaints, []);
    await close();
  });
});
