// What the page "Play" fetches and how fast it plays and evaluates the network that comes with Rookery, 6x64:
//
//     node tests/browser/play-speed.mjs http://127.0.0.1:8080/runs/main/play [FLAG OF CHROMIUM …]
//
// It says how soon the network moves when the page is visited again, and how many positions each device evaluates a
// second: the processor with one thread and with two. Without flags the graphics card is imitated by SwiftShader, whose
// speed says nothing of a card.

import { availableParallelism, loadavg } from "node:os";
import { SOFTWARE_WEBGPU, launch, open } from "./showcase.mjs";

const [address, ...flags] = process.argv.slice(2);
if (!address) {
  console.error("usage: node tests/browser/play-speed.mjs URL [FLAG OF CHROMIUM …]");
  process.exit(2);
}
const { origin, pathname } = new URL(address);
const path = `${pathname}?network=small`;

const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1);

/** A page of a fresh context, which waits for as long as it takes. */
async function openPage(browser) {
  const opened = await open(browser, origin);
  opened.page.setDefaultTimeout(600_000);
  return opened;
}

const isReady = (page) => page.locator("#status", { hasText: "White to move." }).waitFor();

/** How soon the network moves, at the strength that is chosen at first, when the files are in the browser's cache. */
async function measureFirstMove(browser) {
  const { page, visit, close } = await openPage(browser);
  await visit(path);
  await isReady(page);
  const begun = performance.now();
  await page.reload();
  await page.locator("#status", { hasText: /./ }).waitFor();
  await page.selectOption("#side", "black");
  await page.locator("#status", { hasText: "Black to move." }).waitFor();
  const visits = await page.inputValue("#strength");
  console.log(`cached: the network's first move, of ${visits} visits, is on the board ${seconds(begun)} s after a reload`);
  await close();
}

/** What is fetched, and how fast a device evaluates. The page leaves half of the processors to the rest of the machine. */
async function measureSpeed(browser, device, threads) {
  const { page, visit, close } = await openPage(browser);
  const told = `Object.defineProperty(navigator, "hardwareConcurrency", { value: ${2 * threads} });`;
  let bytes = 0;
  await page.route(/\/assets\/board\/worker-.*\.js$/, async (route) => {
    const response = await route.fetch();
    const headers = { ...response.headers() };
    delete headers["content-encoding"];
    delete headers["content-length"];
    await route.fulfill({ response, headers, body: told + await response.text() });
  });
  page.context().on("requestfinished", async (request) => {
    if (request.url().includes("/assets/board/")) bytes += (await request.sizes()).responseBodySize;
  });
  const begun = performance.now();
  await visit(path);
  await isReady(page);
  const ready = seconds(begun);
  const chosen = performance.now();
  await page.selectOption("#device", device);
  await page.locator(`#computed[data-device=${device}]`, { hasNotText: "is tried" }).waitFor();
  const taken = seconds(chosen);
  await page.selectOption("#side", "both");
  await page.check("#analyse");
  const shown = await page.waitForFunction(() => {
    const [, visits, speed] = /([\d,]+) visits, (\d+) evaluations/.exec(document.querySelector("#summary").textContent) ?? [];
    return Number(visits?.replaceAll(",", "") ?? 0) > 300 && `${speed} evaluations/s over ${visits} visits`;
  });
  console.log(`${device}, threads ${threads}: ${(bytes / 1e6).toFixed(2)} MB, `
    + `ready after ${ready} s, device after ${taken} s more, ${await shown.jsonValue()}`);
  await close();
}

const browser = await launch(...(flags.length > 0 ? flags : SOFTWARE_WEBGPU));
console.log(`${availableParallelism()} processors, load average ${loadavg().map((load) => load.toFixed(1)).join(" ")}`);
await measureFirstMove(browser);
for (const threads of [1, 2]) await measureSpeed(browser, "processor", threads);
await measureSpeed(browser, "gpu", 1);
await browser.close();
